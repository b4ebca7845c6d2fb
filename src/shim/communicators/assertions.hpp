// What a program asserts of its own calls on a communicator by hints (MPI 4.1, section 7.4.4): that messages may overtake each other,
// that there are no wildcards, that lengths are exact. It does not hold for MPIsec's messages there, and MPIsec counts on the order in
// which the library delivers (S2), so the library does not hear of it. Ignoring a hint is always right.
#pragma once

#include <mpi.h>

namespace mpisec::shim {

/// The hints that the library gets instead of `given`, as long as this lives.
class HintsForLibrary {
  public:
    explicit HintsForLibrary(MPI_Info given);
    ~HintsForLibrary();
    HintsForLibrary(const HintsForLibrary&) = delete;
    HintsForLibrary& operator=(const HintsForLibrary&) = delete;

    MPI_Info get() const { return hints_; }
    /// Where the library answers in a hint, as MPI_Comm_split_type does, the program finds the answer in its own.
    void give_answer(const char* key) const;

  private:
    MPI_Info given_, hints_;
    bool copied_ = false;
};

}  // namespace mpisec::shim
