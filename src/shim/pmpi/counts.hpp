// Count and displacement arrays that may be int (small twin) or MPI_Count / MPI_Aint (_c variant), read alike
// (M12).
#pragma once

#include <mpi.h>

#include <type_traits>

namespace mpisec::shim {

template <class Big>
class IntegerArray {
  public:
    IntegerArray(const int* small) : small_(small) {}
    template <class T, class = std::enable_if_t<std::is_same_v<T, Big> && !std::is_same_v<T, int>>>
    IntegerArray(const T* big) : big_(big) {}
    Big operator[](int i) const { return big_ ? big_[i] : small_ ? static_cast<Big>(small_[i]) : 0; }
    explicit operator bool() const { return big_ || small_; }
    const int* small() const { return small_; }
    const Big* big() const { return big_; }

  private:
    const int* small_ = nullptr;
    const Big* big_ = nullptr;
};

using Counts = IntegerArray<MPI_Count>;
using Displacements = IntegerArray<MPI_Aint>;

}  // namespace mpisec::shim
