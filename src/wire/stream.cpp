#include "wire/stream.hpp"

#include <algorithm>
#include <bit>

namespace mpisec::wire {

std::uint64_t SegmentPlan::count() const {
    // Segment 0, then the rest in segment_bytes, rounded up.
    return 1 + (total - first_bytes - 1) / segment_bytes + 1;
}

std::uint64_t SegmentPlan::offset(std::uint64_t index) const {
    return index == 0 ? 0 : first_bytes + (index - 1) * segment_bytes;
}

std::uint64_t SegmentPlan::size(std::uint64_t index) const {
    return index == 0 ? first_bytes : std::min(segment_bytes, total - offset(index));
}

namespace {

constexpr std::uint64_t kib = 1024;

/// Equal segments of 128 KiB or more, as near to `longest` as possible, after which at most 128 KiB are left.
std::uint64_t with_short_last(std::uint64_t rest, std::uint64_t longest) {
    constexpr std::uint64_t last = 128 * kib, page = 4 * kib;
    if (rest <= 2 * last) return last;  // else these 128 KiB would be cut, too, into what is over
    const std::uint64_t segments = (rest - last + longest - 1) / longest;
    const std::uint64_t bytes = (rest - last + segments - 1) / segments;
    return (bytes + page - 1) / page * page;
}

}  // namespace

Cutting cutting_for(aead::Speed cipher) {
    switch (cipher) {
        case aead::Speed::fast:
            return Cutting::fast_cipher;
        case aead::Speed::medium:
            return Cutting::medium_cipher;
        case aead::Speed::slow:
            break;
    }
    return Cutting::slow_cipher;
}

std::uint64_t automatic_first_bytes(aead::Speed cipher) {
    switch (cipher) {
        case aead::Speed::fast:
            return 256 * kib;
        case aead::Speed::medium:
            return 128 * kib;
        case aead::Speed::slow:
            break;
    }
    return 64 * kib;
}

std::uint64_t automatic_longest_first_bytes(aead::Speed cipher) {
    return cipher == aead::Speed::slow ? automatic_first_bytes(cipher) : 512 * kib;
}

std::uint64_t automatic_segment_bytes(std::uint64_t total, std::uint64_t first_bytes, Cutting cutting) {
    switch (cutting) {
        case Cutting::medium_cipher:
            return std::clamp(std::bit_floor(total / 4), 256 * kib, 512 * kib);
        case Cutting::fast_cipher:
            return 512 * kib;
        case Cutting::shared_cores:
            return std::clamp(std::bit_floor(total / 2), 512 * kib, 1024 * kib);
        case Cutting::workers:
            return with_short_last(total - first_bytes, std::clamp(total / 8, 256 * kib, 1024 * kib));
        case Cutting::slow_cipher:
            break;
    }
    return std::clamp(std::bit_floor(total / 8), 128 * kib, 512 * kib);
}

}  // namespace mpisec::wire
