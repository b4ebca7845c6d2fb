// The file that remembers calibrations, whatever is in it: it gives names, or nothing; a name leads to a
// library only when it is one of those that are there; and what is added is found again.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "aead/calibration.hpp"
#include "check.hpp"

using namespace mpisec;
using namespace mpisec::aead;

namespace {

/// A directory of its own, removed at the end.
struct Directory {
    Directory() {
        char name[] = "/tmp/mpisec-fuzz-XXXXXX";
        FUZZ_CHECK(mkdtemp(name));
        path = name;
        std::filesystem::create_directory(path + "/plugins");
    }
    ~Directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    std::string path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Directory directory;
    const std::string file = directory.path + "/calibration.json";
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    const CalibrationKey here{"cpu", "plugins", "cipher"}, elsewhere{"another", "plugins", "cipher"};
    const auto before = recall(file, here), other = recall(file, elsewhere);
    if (before)
        for (const std::string& name : *before) FUZZ_CHECK(!load(name, directory.path + "/plugins"));

    const Choice choice = {"small", "medium", "large"};
    remember(file, here, choice);
    FUZZ_CHECK(recall(file, here) == choice);
    // What it knew of another machine it still knows, but for what no reader could use.
    if (other) FUZZ_CHECK(recall(file, elsewhere));
    struct stat status {};
    FUZZ_CHECK(stat(file.c_str(), &status) == 0 && (status.st_mode & 0777) == 0600);
    unlink(file.c_str());
    return 0;
}
