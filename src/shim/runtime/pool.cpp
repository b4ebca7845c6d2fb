#include "shim/runtime/pool.hpp"

#include <string>
#include <utility>

#include "shim/runtime/errors.hpp"

namespace mpisec::shim {

void Buffer::allocate(std::size_t bytes) {
    if (size_class_ <= pool::largest) bytes = (std::size_t{1} << size_class_) + pool::overhead;
    data_ = static_cast<std::uint8_t*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    if (!data_) abort_job("out of memory for a sealed message of " + std::to_string(bytes) + " bytes");
}

void empty_pool() {
    for (unsigned size_class = pool::smallest; size_class <= pool::largest; ++size_class) {
        for (pool::Free* next = std::exchange(pool::unused.lists[size_class], nullptr); next;)
            std::free(std::exchange(next, next->next));
        pool::unused.kept[size_class] = 0;
    }
}

}  // namespace mpisec::shim
