// Hints by which a program asserts something about its own calls on a communicator (MPI 4.1, section 7.4.4): that messages may overtake
// each other, that it uses no wildcards, that lengths are exact. The assertions do not hold for MPIsec's messages on that communicator,
// and MPIsec relies on the order in which the library delivers (S2), so the library does not get these hints. Ignoring a hint is always
// allowed.
#pragma once

#include <mpi.h>

namespace mpisec::shim {

/// The hints that the library gets instead of `given`, as long as this object lives.
class HintsForLibrary {
  public:
    explicit HintsForLibrary(MPI_Info given);
    ~HintsForLibrary();
    HintsForLibrary(const HintsForLibrary&) = delete;
    HintsForLibrary& operator=(const HintsForLibrary&) = delete;

    MPI_Info get() const { return hints_; }
    /// Where the library answers in a hint, as MPI_Comm_split_type does, copies the answer to the program's own hints.
    void give_answer(const char* key) const;

  private:
    MPI_Info given_, hints_;
    bool copied_ = false;
};

}  // namespace mpisec::shim
