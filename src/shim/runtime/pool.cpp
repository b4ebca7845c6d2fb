#include "shim/runtime/pool.hpp"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "shim/runtime/errors.hpp"

namespace mpisec::shim {

/// The buffers of 16 KiB and more, in use or not: sizes by address.
struct LargeBuffers {
    std::mutex lock;
    std::map<std::uintptr_t, std::size_t> sizes;
};

namespace {

constexpr std::size_t cache_line = 64, page_bytes = 4096;

/// Bytes from the beginning of a page, or of a cache line, to the data.
std::size_t offset_in_page(unsigned size_class) {
    return size_class >= pool::smallest_mid_page ? page_bytes / 2 : 0;
}

std::uintptr_t address(const void* data) {
    return reinterpret_cast<std::uintptr_t>(data);
}

void list_large(std::uint8_t* data, std::size_t bytes) {
    LargeBuffers& large = *process.large_buffers;
    const std::lock_guard guard(large.lock);
    large.sizes[address(data)] = bytes;
}

void give_to_system(std::uint8_t* data, unsigned size_class) {
    if (size_class >= pool::smallest_mid_page) {
        LargeBuffers& large = *process.large_buffers;
        const std::lock_guard guard(large.lock);
        large.sizes.erase(address(data));
    }
    std::free(data - offset_in_page(size_class));
}

}  // namespace

void Buffer::allocate(std::size_t bytes) {
    if (size_class_ <= pool::largest) bytes = (std::size_t{1} << size_class_) + pool::overhead;
    const std::size_t offset = offset_in_page(size_class_), alignment = offset > 0 ? page_bytes : cache_line;
    const std::size_t whole = (offset + bytes + alignment - 1) / alignment * alignment;
    auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(alignment, whole));
    if (!memory) abort_job("out of memory for a sealed message of " + std::to_string(bytes) + " bytes");
    data_ = memory + offset;
    if (size_class_ >= pool::smallest_mid_page) list_large(data_, bytes);
}

bool in_pool(const void* data, std::size_t n) {
    LargeBuffers& large = *process.large_buffers;
    const std::lock_guard guard(large.lock);
    auto behind = large.sizes.upper_bound(address(data));
    if (behind == large.sizes.begin()) return false;
    const auto [begin, bytes] = *std::prev(behind);
    return address(data) - begin <= bytes && n <= bytes - (address(data) - begin);
}

void Buffer::free_memory() {
    give_to_system(data_, size_class_);
}

void empty_pool() {
    for (unsigned size_class = pool::smallest; size_class <= pool::largest; ++size_class) {
        for (pool::Free* next = std::exchange(pool::unused.lists[size_class], nullptr); next;)
            give_to_system(reinterpret_cast<std::uint8_t*>(std::exchange(next, next->next)), size_class);
        pool::unused.kept[size_class] = 0;
    }
}

}  // namespace mpisec::shim
