// Two kinds of programs get past every preloaded library: no call of theirs reaches MPIsec, MPI_Init included, and their traffic would be
// in clear (S1).
//
//   - One that contains its MPI library is ended before it starts. `mpisec exec` refuses it, too, but cannot see what a script starts.
//   - One that opens the MPI library itself and looks up MPI_Send with dlsym() in that very handle cannot be stopped from here; it is
//     reported when it ends.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/elf.hpp"
#include "base/error_line.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {
namespace {

bool initialized_without_us() {
    for (const char* soname :
         {"libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi.so.40"}) {
        void* library = dlopen(soname, RTLD_NOLOAD | RTLD_LAZY);
        if (!library) continue;
        auto* initialized = reinterpret_cast<int (*)(int*)>(dlsym(library, "PMPI_Initialized"));
        int flag = 0;
        if (initialized && initialized(&flag) == 0 && flag) return true;
    }
    return false;
}

/// Not where it is linked into a program itself, as fuzz targets do.
bool is_preloaded() {
    Dl_info self;
    return dladdr(reinterpret_cast<const void*>(&is_preloaded), &self) != 0 &&
           std::string_view(self.dli_fname).find("libmpisec-") != std::string_view::npos;
}

__attribute__((constructor)) void refuse_mpi_of_its_own() {
    if (!is_preloaded() || library_is_loaded() || !contains_mpi_library("/proc/self/exe")) return;
    write_error_line(std::string("MPIsec: ") + program_invocation_name +
                     " contains an MPI library, which MPIsec cannot get between: its messages would not be "
                     "encrypted. Link it with the shared MPI library.");
    _exit(EXIT_FAILURE);
}

__attribute__((destructor)) void say_escape() {
    if (gate.phase.load() != Phase::before || !initialized_without_us()) return;
    std::fflush(nullptr);
    write_error_line(
        "MPIsec: this program called its MPI library directly, past MPIsec (dlopen and dlsym on the library "
        "itself): its messages were NOT encrypted. It must call MPI through its dynamic symbols.");
    std::_Exit(EXIT_FAILURE);
}

}  // namespace
}  // namespace mpisec::shim
