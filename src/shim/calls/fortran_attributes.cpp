// MPI_Win_get_attr from Fortran. Where a window crosses nodes, the MPI library knows only a window of this process alone
// (shim/rma/window.hpp), and the Fortran bindings do not ask MPI_Win_get_attr for its attributes: MPICH's call a function of the library's,
// which keyvals of Fortran get values from instead of addresses, Open MPI's look them up themselves. Their answers are corrected here.
// (Bindings for the standard ABI are not known yet.)
#include <mpi.h>

#if !defined(MPISEC_STANDARD_ABI)
#include <dlfcn.h>

#include <optional>

#include "shim/pmpi/real.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {
namespace {

/// The value that Fortran programs get (MPI standard section 12.2.6); nothing for other windows and attributes. `keyval`: C's.
std::optional<MPI_Aint> window_attribute(MPI_Win win, int keyval) {
    if (gate.phase.load() != Phase::closed) return std::nullopt;
    const auto window = rma::find(win);
    if (!window) return std::nullopt;
    switch (keyval) {
        case MPI_WIN_BASE:
            return reinterpret_cast<MPI_Aint>(window->memory.base());
        case MPI_WIN_SIZE:
            return window->target(window->rank).size;
        case MPI_WIN_DISP_UNIT:
            return window->target(window->rank).unit;
        case MPI_WIN_CREATE_FLAVOR:
            return window->flavor;
        case MPI_WIN_MODEL:
            return window->model;
        default:
            return std::nullopt;
    }
}

}  // namespace
}  // namespace mpisec::shim

using namespace mpisec::shim;

#define MPISEC_EXPORT extern "C" __attribute__((visibility("default")))

#if defined(OPEN_MPI)

using FortranLookUp = void (*)(const MPI_Fint*, const MPI_Fint*, MPI_Aint*, MPI_Fint*, MPI_Fint*);

MPISEC_EXPORT void pmpi_win_get_attr_(const MPI_Fint* win, const MPI_Fint* keyval, MPI_Aint* value,
                                      MPI_Fint* flag, MPI_Fint* error) {
    void* found = dlsym(RTLD_NEXT, "pmpi_win_get_attr_");
    // In a library of its own, which Python may have opened privately. A null handle would find this function.
    if (!found)
        if (void* library = dlopen("libmpi_mpifh.so.40", RTLD_NOLOAD | RTLD_LAZY))
            found = dlsym(library, "pmpi_win_get_attr_");
    if (!found) abort_job("Open MPI's library for Fortran was not found for MPI_WIN_GET_ATTR");
    const auto look_up = reinterpret_cast<FortranLookUp>(found);
    look_up(win, keyval, value, flag, error);
    if (*flag == 0) return;
    if (const auto answer = window_attribute(real.Win_f2c(*win), *keyval)) *value = *answer;
}

#define MPISEC_ALSO(name) \
    MPISEC_EXPORT decltype(pmpi_win_get_attr_) name __attribute__((alias("pmpi_win_get_attr_")));
// As Fortran compilers write the name.
MPISEC_ALSO(pmpi_win_get_attr)
MPISEC_ALSO(pmpi_win_get_attr__)
MPISEC_ALSO(PMPI_WIN_GET_ATTR)
MPISEC_ALSO(mpi_win_get_attr)
MPISEC_ALSO(mpi_win_get_attr_)
MPISEC_ALSO(mpi_win_get_attr__)
MPISEC_ALSO(MPI_WIN_GET_ATTR)

#else

MPISEC_EXPORT int MPII_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag, int kind) {
    using LookUp = decltype(&MPII_Win_get_attr);
    if (!gate.resolved.load(std::memory_order_acquire)) resolve_real();
    const auto look_up = reinterpret_cast<LookUp>(library_symbol("MPII_Win_get_attr"));
    const int code = look_up(win, keyval, value, flag, kind);
    if (code != MPI_SUCCESS || !*flag) return code;
    // Keyvals of Fortran are those of C plus one.
    if (const auto answer = window_attribute(win, keyval - 1)) *static_cast<MPI_Aint*>(value) = *answer;
    return code;
}

#endif
#endif
