// How a datatype was made (MPI standard section 5.1.13), described alike for both kinds of constructors: those that take counts of int, and
// the large-count ones (_c), about which MPI_Type_get_envelope must not be asked.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mpisec::shim {

class TypeContents {
  public:
    explicit TypeContents(MPI_Datatype type);
    ~TypeContents();
    TypeContents(const TypeContents&) = delete;
    TypeContents& operator=(const TypeContents&) = delete;

    std::int64_t integer(std::size_t i) const { return integers_[i]; }
    std::int64_t address(std::size_t i) const { return addresses_[i]; }

    /// MPI_COMBINER_NAMED: predefined. MPI_UNDEFINED: the library does not say.
    int combiner = MPI_UNDEFINED;
    /// Empty where the type is made of no other types.
    std::vector<MPI_Datatype> inner;

  private:
    void read(MPI_Datatype type);
    void arrange(const std::vector<MPI_Count>& counts);

    // As MPI_Type_get_contents gives them for the constructor with counts of int.
    std::vector<std::int64_t> integers_, addresses_;
};

/// MPI_UNDEFINED where the library does not say.
int combiner_of(MPI_Datatype type);
inline bool is_named(MPI_Datatype type) {
    return combiner_of(type) == MPI_COMBINER_NAMED;
}
/// What MPI_Type_create_f90_real and the like return is predefined, too, though it has no name (MPI standard section 19.1.5).
constexpr bool is_predefined_combiner(int combiner) {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}
inline bool is_predefined_type(MPI_Datatype type) {
    return is_predefined_combiner(combiner_of(type));
}

}  // namespace mpisec::shim
