#include "cli/preload.hpp"

#include <sstream>

namespace mpisec::cli {

Result<std::string> preload_with(const std::string& shim, const std::string& present) {
    if (shim.find_first_of(" :") != std::string::npos)
        return fail("LD_PRELOAD can not name " + shim + ": move MPIsec to a path without spaces and colons");
    std::string listed = present;
    for (char& c : listed)
        if (c == ':') c = ' ';  // ld.so(8): either separates
    std::istringstream names(listed);
    for (std::string name; names >> name;) {
        if (name == shim) return present;
        std::string file = name.substr(name.rfind('/') + 1);
        if (file.starts_with("libmpisec-"))
            return fail("LD_PRELOAD already has " + name + ", which is not " + shim +
                        ": unset it, `mpisec exec` sets it itself");
    }
    return present.empty() ? shim : shim + ":" + present;
}

}  // namespace mpisec::cli
