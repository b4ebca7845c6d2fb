// What the MPI calls of a plain run move between nodes, for `mpisec profile`: counted here, told in a file when
// rank 0 leaves MPI_Finalize. Nothing is sealed. The wrappers that call this are generated (gen/profile.py).
#pragma once

#include <mpi.h>

#include <cstdint>

namespace mpisec::profile {

/// Where a call counts: not when the MPI library makes it inside another call.
class Call {
  public:
    Call();
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    explicit operator bool() const { return outermost_; }

  private:
    bool outermost_;
};

/// The library's own procedure, behind ours; ends the process when there is none.
void* real_procedure(const char* name);

std::uint64_t bytes_of(std::uint64_t count, MPI_Datatype type);

/// A message to `dest` of `comm`.
void sent(const char* traffic, std::uint64_t bytes, int dest, MPI_Comm comm);
/// Bytes that travel to `target` of the window, or from it.
void accessed(std::uint64_t there, std::uint64_t back, int target, MPI_Win win);
/// One call of a collective ("bcast"), with this rank's block or vector. Rank 0 of `comm` speaks for all.
void collective(const char* name, std::uint64_t bytes, MPI_Comm comm);
/// The same for requests that are started later, perhaps often: sent() or, without `dest`, collective().
void prepared(const char* what, std::uint64_t bytes, int dest, MPI_Comm comm, const MPI_Request* request);
void prepared(const char* what, std::uint64_t bytes, MPI_Comm comm, const MPI_Request* request);
void started(int count, const MPI_Request* requests);
/// Something that is counted and not predicted.
void unpredicted(const char* what);

// Handles may come again for something else.
void request_freed(const MPI_Request* request);
void comm_freed(const MPI_Comm* comm);
void win_freed(const MPI_Win* win);

void begin();  ///< after MPI_Init
void end();    ///< before MPI_Finalize: all ranks tell rank 0

/// Of `count` blocks of differing sizes, on average.
std::uint64_t mean_bytes(const int* counts, MPI_Datatype type, MPI_Comm comm);
std::uint64_t mean_bytes(const int* counts, const MPI_Datatype* types, MPI_Comm comm);
std::uint64_t own_bytes(const int* counts, MPI_Datatype type, MPI_Comm comm);
#if MPI_VERSION >= 4
std::uint64_t mean_bytes(const MPI_Count* counts, MPI_Datatype type, MPI_Comm comm);
std::uint64_t mean_bytes(const MPI_Count* counts, const MPI_Datatype* types, MPI_Comm comm);
std::uint64_t own_bytes(const MPI_Count* counts, MPI_Datatype type, MPI_Comm comm);
#endif

}  // namespace mpisec::profile
