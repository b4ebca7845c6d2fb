#include "wire/stream.hpp"

#include <algorithm>
#include <bit>

namespace mpisec::wire {

namespace {

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
    return a / b + (a % b != 0);
}

}  // namespace

std::uint64_t SegmentPlan::equal_segments() const {
    const std::uint64_t until = tapering ? taper_unit * ((segment_bytes / taper_unit - 1) * 3 / 2) : 0;
    const std::uint64_t rest = total - threshold;
    return rest > until ? ceil_div(rest - until, segment_bytes) : 0;
}

std::uint64_t SegmentPlan::after_equal() const {
    const std::uint64_t rest = total - threshold, equal = equal_segments();
    return ceil_div(rest, segment_bytes) <= equal ? 0 : rest - equal * segment_bytes;
}

std::uint64_t SegmentPlan::shorter(std::uint64_t left) {
    return std::min(left, taper_unit * ceil_div(left * 2, 3 * taper_unit));
}

std::uint64_t SegmentPlan::count() const {
    std::uint64_t count = 1 + equal_segments();
    for (std::uint64_t left = after_equal(); left > 0; left -= shorter(left)) ++count;
    return count;
}

std::uint64_t SegmentPlan::offset(std::uint64_t index) const {
    if (index == 0) return 0;
    const std::uint64_t equal = equal_segments();
    if (index <= equal) return threshold + (index - 1) * segment_bytes;
    std::uint64_t left = after_equal();
    for (std::uint64_t next = equal + 1; next < index; ++next) left -= shorter(left);
    return total - left;
}

std::uint64_t SegmentPlan::size(std::uint64_t index) const {
    if (index == 0) return threshold;
    const std::uint64_t left = total - offset(index);
    return index <= equal_segments() ? std::min(segment_bytes, left) : shorter(left);
}

SegmentPlan automatic_plan(std::uint64_t total, std::uint64_t threshold, Sealer sealer) {
    constexpr std::uint64_t KiB = 1024;
    switch (sealer) {
        case Sealer::workers:
            return {total, threshold,
                    std::clamp<std::uint64_t>(std::bit_floor(total / 8), 128 * KiB, 512 * KiB)};
        case Sealer::crowded:
            return {total, threshold,
                    std::clamp<std::uint64_t>(std::bit_floor(total / 2), 512 * KiB, 1024 * KiB)};
        case Sealer::caller:
            break;
    }
    return {total, threshold, 512 * KiB, true};
}

}  // namespace mpisec::wire
