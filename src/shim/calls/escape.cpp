// A program can get past every preloaded library: it opens the MPI library itself and asks dlsym() of that
// very handle for MPI_Send. No call reaches MPIsec then, MPI_Init included, and its traffic is in clear (S1).
// That cannot be prevented from here, but it does not stay unnoticed.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

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
