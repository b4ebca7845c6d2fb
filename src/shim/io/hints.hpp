// Hints between the program, which gives them to all ranks of a file, and the library, which sees a file of each rank alone.
#pragma once

#include <mpi.h>

#include "shim/io/file.hpp"

namespace mpisec::shim::io {

/// Hints as the library gets them.
///
/// ROMIO writes data with gaps by reading it with the gaps and writing all of it back, under a lock that its writes without gaps do not take:
/// between processes that know nothing of each other that would undo what another process writes into a gap. So ROMIO may do that only where
/// the program says "enable"; "automatic", which show_hints() shows, does not count as the program's wish.
///
/// Which nodes have aggregators is not for a file of one rank, which would not open where this rank's node has none.
class Hints {
  public:
    /// `opens`: the file has no hints yet.
    Hints(MPI_Info given, bool opens);
    ~Hints();
    Hints(const Hints&) = delete;
    Hints& operator=(const Hints&) = delete;

    MPI_Info get() const { return info_; }
    /// To be called when the library has taken them.
    void note_in(File& file) const;

  private:
    enum class Sieving { as_before, programs, ours };
    void copy();

    const MPI_Info given_;
    const bool opens_;
    MPI_Info info_;
    Sieving sieving_;
};

/// Shows the program what it would see without MPIsec.
void show_hints(const File& file, MPI_Info info);

}  // namespace mpisec::shim::io
