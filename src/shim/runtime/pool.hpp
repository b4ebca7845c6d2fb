// Memory for data on its way: sealed messages, bounce buffers of receives. Kept per size class and reused.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "shim/runtime/state.hpp"

namespace mpisec::shim {

namespace pool {

inline constexpr unsigned smallest = 9;  // 512 bytes
/// 32 MiB, which MPISEC_PIPELINE=off uses whole: beyond, the system's allocator maps pages anyway.
inline constexpr unsigned largest = 25;
/// Nonces, headers and tags around plaintexts whose sizes are powers of two.
inline constexpr std::size_t overhead = 128;
/// From this class on (16 KiB) data begins in the middle of a page (docs/adr/0022-buffers-begin-in-the-middle-of-a-page.md).
inline constexpr unsigned smallest_mid_page = 14;
inline constexpr std::size_t most_kept_bytes = 32u << 20;  // per size class

inline unsigned size_class(std::size_t bytes) {
    const std::size_t payload = bytes > overhead ? bytes - overhead : 1;
    return payload <= (1u << smallest) ? smallest : static_cast<unsigned>(std::bit_width(payload - 1));
}
constexpr std::size_t most_kept(unsigned size_class) {
    return size_class <= largest ? most_kept_bytes >> size_class : 0;
}

using Free = FreeBuffers::Free;
inline constexpr FreeBuffers& unused = process.free_buffers;

}  // namespace pool

/// Bytes from the pool. Movable. Memory is taken and given back under the shim's Guard (M10), which the object takes itself.
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t bytes) : size_class_(pool::size_class(bytes)) {
        Guard guard;
        pool::Free*& first = pool::unused.lists[size_class_];
        if (!first) [[unlikely]] {
            allocate(bytes);
            return;
        }
        data_ = reinterpret_cast<std::uint8_t*>(first);
        first = first->next;
        pool::unused.kept[size_class_]--;
    }
    Buffer(Buffer&& other) noexcept : data_(other.data_), size_class_(other.size_class_) {
        other.data_ = nullptr;
    }
    Buffer& operator=(Buffer&& other) noexcept {
        std::uint8_t* data = data_;
        unsigned size_class = size_class_;
        data_ = other.data_;
        size_class_ = other.size_class_;
        other.data_ = data;
        other.size_class_ = size_class;
        return *this;
    }
    ~Buffer() {
        if (data_) give_back();
    }
    std::uint8_t* data() const { return data_; }
    explicit operator bool() const { return data_ != nullptr; }

  private:
    [[gnu::cold]] void allocate(std::size_t bytes);
    [[gnu::cold]] void free_memory();
    void give_back() {
        Guard guard;
        if (pool::unused.kept[size_class_] >= pool::most_kept(size_class_)) [[unlikely]]
            return free_memory();
        pool::unused.lists[size_class_] = new (data_) pool::Free{pool::unused.lists[size_class_]};
        pool::unused.kept[size_class_]++;
    }

    std::uint8_t* data_ = nullptr;
    unsigned size_class_ = 0;
};

/// Whether these bytes lie in a buffer of the pool with at least 16 KiB. What the MPI library carries to another node from there is sealed.
/// Any thread may ask.
bool in_pool(const void* data, std::size_t n);

/// Frees the buffers that nobody uses; at the end of the job (M14).
void empty_pool();

}  // namespace mpisec::shim
