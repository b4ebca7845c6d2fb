#include "wire/stream.hpp"

#include <algorithm>
#include <bit>

namespace mpisec::wire {

std::uint64_t SegmentPlan::count() const {
    return 1 + (total - threshold - 1) / segment_bytes +
           1;  // segment 0, then the rest in segment_bytes, rounded up
}

std::uint64_t SegmentPlan::offset(std::uint64_t index) const {
    return index == 0 ? 0 : threshold + (index - 1) * segment_bytes;
}

std::uint64_t SegmentPlan::size(std::uint64_t index) const {
    return index == 0 ? threshold : std::min(segment_bytes, total - offset(index));
}

std::uint64_t automatic_segment_bytes(std::uint64_t total, Cutting cutting) {
    constexpr std::uint64_t kib = 1024;
    switch (cutting) {
        case Cutting::fast_cipher:
            return 512 * kib;
        case Cutting::shared_cores:
            return std::clamp(std::bit_floor(total / 2), 512 * kib, 1024 * kib);
        default:
            return std::clamp(std::bit_floor(total / 8), 128 * kib, 512 * kib);
    }
}

}  // namespace mpisec::wire
