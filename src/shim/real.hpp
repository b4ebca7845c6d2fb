// The MPI library underneath: a table of its PMPI_ procedures, found at run time. The shim does not link an MPI
// library and never names one of its data symbols (shared/mpi-notes.md, "Interposition").
#pragma once

#include <mpi.h>

namespace mpisec::shim {

/// One pointer per procedure that the family's mpi.h declares; null where the library that runs lacks it.
struct Real {
#define MPISEC_PROCEDURE(name) decltype(&::MPI_##name) name;
#include "real_table.inc"
#undef MPISEC_PROCEDURE
};
extern Real real;

/// State that the generated wrappers test before anything else. `resolved`: the table is filled. `bypass`: every rank of the job
/// is on this node, or MPI is not initialized yet or already finalized: nothing to protect, all calls go straight down.
struct Gate {
    bool resolved = false;
    bool bypass = true;
    const char* text_begin = nullptr;  ///< the MPI library's own code: calls from there are its internals (ROMIO, osc)
    const char* text_end = nullptr;
};
extern Gate gate;

/// Fills `real` with dlsym(RTLD_NEXT), else from the MPI library already in the process. Aborts with a sentence when there is none.
void resolve_real();

/// True when the call must go to the MPI library unchanged.
inline bool pass_through(const void* return_address) {
    if (__builtin_expect(!gate.resolved, 0)) resolve_real();
    const char* caller = static_cast<const char*>(return_address);
    return gate.bypass || (caller >= gate.text_begin && caller < gate.text_end);
}

}  // namespace mpisec::shim
