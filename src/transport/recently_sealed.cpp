#include "transport/recently_sealed.hpp"

#include "base/bytes.hpp"

namespace mpisec::transport {
namespace {

/// Behind the longest nonce: ciphertext, which no two messages have in common.
constexpr std::size_t mark_at = 12;

}  // namespace

void RecentlySealed::note(const std::uint8_t* wire, std::size_t n) {
    if (n < shortest) return;
    Message& message = messages_[next_.fetch_add(1, std::memory_order_relaxed) % messages_.size()];
    std::uint64_t version = message.version.load(std::memory_order_relaxed);
    if (version % 2 != 0 ||
        !message.version.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel))
        return;
    message.bytes.store(n, std::memory_order_release);
    for (std::size_t i = 0; i < message.mark.size(); ++i)
        message.mark[i].store(load_le<std::uint64_t>(wire + mark_at + 8 * i), std::memory_order_release);
    message.version.store(version + 2, std::memory_order_release);
}

bool RecentlySealed::is_one_of_them(const std::uint8_t* bytes, std::size_t n) const {
    const auto first = load_le<std::uint64_t>(bytes + mark_at);
    const auto second = load_le<std::uint64_t>(bytes + mark_at + 8);
    for (const Message& message : messages_) {
        const std::uint64_t version = message.version.load(std::memory_order_acquire);
        if (version % 2 != 0 || n > message.bytes.load(std::memory_order_acquire) ||
            message.mark[0].load(std::memory_order_acquire) != first ||
            message.mark[1].load(std::memory_order_acquire) != second)
            continue;
        // Another thread may have begun to write here meanwhile: then the mark may be of one message and the length of another.
        if (message.version.load(std::memory_order_acquire) == version) return true;
    }
    return false;
}

std::size_t RecentlySealed::sealed_from(const std::uint8_t* bytes, std::size_t n) const {
    const std::size_t offset = begins_at(bytes, n);
    return offset == n ? n : longest_header;
}

std::size_t RecentlySealed::begins_at(const std::uint8_t* bytes, std::size_t n) const {
    if (n < shortest) return n;
    const std::size_t usual = last_offset_.load(std::memory_order_relaxed);
    if (is_one_of_them(bytes + usual, n - usual)) return usual;
    for (std::size_t offset = 0; offset <= longest_header; offset += 2)
        if (is_one_of_them(bytes + offset, n - offset)) {
            last_offset_.store(offset, std::memory_order_relaxed);
            return offset;
        }
    return n;
}

}  // namespace mpisec::transport
