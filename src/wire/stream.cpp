#include "wire/stream.hpp"

#include <algorithm>

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

}  // namespace mpisec::wire
