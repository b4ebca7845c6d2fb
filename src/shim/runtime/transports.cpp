#include "shim/runtime/transports.hpp"

#include <link.h>

#include <set>
#include <string>
#include <string_view>

#include "base/transports.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

void report_transports() {
    if (state.world.rank_on_node != 0) return;
    std::set<std::string> found;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* names) {
            std::string_view file = object->dlpi_name ? object->dlpi_name : "";
            file.remove_prefix(file.rfind('/') + 1);
            const TransportLibrary* library = transport_library(file);
            if (library && !library->under_mpi)
                static_cast<std::set<std::string>*>(names)->insert(std::string(library->title) + " (" +
                                                                   std::string(file) + ")");
            return 0;
        },
        &found);
    for (const std::string& library : found)
        say("MPI_Finalize: the program has loaded " + library +
            ": what that sent to other nodes was not protected by MPIsec");
}

}  // namespace mpisec::shim
