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

std::uint64_t automatic_segment_bytes(std::uint64_t total, bool oversubscribed) {
    return oversubscribed ? std::clamp<std::uint64_t>(std::bit_floor(total / 2), 512 * 1024, 1024 * 1024)
                          : std::clamp<std::uint64_t>(std::bit_floor(total / 8), 128 * 1024, 512 * 1024);
}

}  // namespace mpisec::wire
