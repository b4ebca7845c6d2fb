#include "shim/pool.hpp"

#include <bit>
#include <cstdlib>
#include <vector>

#include "shim/errors.hpp"
#include "shim/state.hpp"

namespace mpisec::shim {
namespace {

constexpr unsigned smallest = 9;  // 512 bytes
constexpr unsigned largest = 21;  // 2 MiB: beyond, the system's allocator maps pages anyway
constexpr std::size_t overhead =
    128;  // nonces, headers and tags around plaintexts whose sizes are powers of two
constexpr std::size_t most_kept_bytes = 32u << 20;  // per size class

std::vector<std::uint8_t*>& free_list(unsigned size_class) {
    static std::vector<std::uint8_t*> lists[largest + 1];
    return lists[size_class];
}

}  // namespace

Buffer::Buffer(std::size_t bytes) {
    const std::size_t payload = bytes > overhead ? bytes - overhead : 1;
    size_class_ = payload <= (1u << smallest) ? smallest : static_cast<unsigned>(std::bit_width(payload - 1));
    if (size_class_ <= largest) {
        Guard guard;
        auto& list = free_list(size_class_);
        if (!list.empty()) {
            data_ = list.back();
            list.pop_back();
            return;
        }
        bytes = (std::size_t{1} << size_class_) + overhead;
    }
    data_ = static_cast<std::uint8_t*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    if (!data_) abort_job("out of memory for a sealed message of " + std::to_string(bytes) + " bytes");
}

void Buffer::give_back() {
    if (size_class_ <= largest) {
        Guard guard;
        auto& list = free_list(size_class_);
        if ((list.size() + 1) << size_class_ <= most_kept_bytes) {
            list.push_back(data_);
            return;
        }
    }
    std::free(data_);
}

void empty_pool() {
    for (unsigned size_class = smallest; size_class <= largest; ++size_class) {
        for (std::uint8_t* data : free_list(size_class)) std::free(data);
        free_list(size_class).clear();
    }
}

}  // namespace mpisec::shim
