// The MPI library underneath: a table of its PMPI_ procedures, found at run time. The shim does not link an
// MPI library and never names one of its data symbols (docs/architecture.md, "Living under a program").
#pragma once

#include <mpi.h>

#include <atomic>

#include "shim/process/process.hpp"

namespace mpisec::shim {

inline constexpr Real& real = process.real;
inline constexpr Gate& gate = process.gate;

/// Fills `real` with dlsym(RTLD_NEXT), else from the MPI library already in the process, then the constants. Ends the process with a
/// sentence when there is no MPI library, or one of another family than this shim was built for. Thread-safe; cheap once it has been done.
void resolve_real();

/// Whether there is an MPI library in the process, so that resolve_real() would not end the process for want of one.
bool library_is_loaded();

/// The address of a symbol of the MPI library, functions and data alike; null when it has none of that name.
void* library_symbol(const char* name);

/// The rest of called_by_library(), for an address in the library's code.
[[gnu::cold]] bool called_directly(const char* caller);

/// True when the MPI library itself makes this call, from its own code. An address in that code is not
/// enough: a user's callback that the library calls (an attribute's delete function) and that ends in a tail
/// call to MPI_Send returns there too, and must stay sealed (S1). The library calls its own MPI_X by a direct
/// call into its procedure linkage table; it calls callbacks indirectly.
inline bool called_by_library(const void* return_address) {
    if (!gate.resolved.load(std::memory_order_acquire)) [[unlikely]]
        resolve_real();
    const char* caller = static_cast<const char*>(return_address);
    if (caller < gate.text_begin || caller >= gate.text_end) [[likely]]
        return false;
    return called_directly(caller);
}

/// The rest of pass_gate(), for the rare phases. Between MPI_Init and the end of the key exchange only the thread that called MPI_Init
/// passes; others wait. Ends the process in a forked child, and where MPI was initialized past MPIsec.
[[gnu::cold, gnu::noinline]] bool pass_gate_slowly(const char* procedure);

/// True when there is nothing to protect: the call may go down unchanged.
inline bool pass_gate(const char* procedure) {
    const Phase phase = gate.phase.load(std::memory_order_relaxed);
    if (phase == Phase::closed) [[likely]]
        return false;
    return phase == Phase::open || pass_gate_slowly(procedure);
}

/// True when the call must go to the MPI library unchanged.
inline bool pass_through(const void* return_address, const char* procedure) {
    return called_by_library(return_address) || pass_gate(procedure);
}

}  // namespace mpisec::shim
