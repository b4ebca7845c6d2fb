// Which family of MPI libraries this is compiled for, where the difference is one of behaviour and not of declarations.
#pragma once

namespace mpisec::shim {

#if defined(OPEN_MPI)
inline constexpr bool is_open_mpi = true;
#else
inline constexpr bool is_open_mpi = false;
#endif

}  // namespace mpisec::shim
