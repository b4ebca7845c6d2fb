// A large message's header and the plan that follows from it: whatever the header says, the segments cover
// the message once and no index, offset or size wraps.
#include <algorithm>

#include "check.hpp"
#include "wire/stream.hpp"

using namespace mpisec;
using namespace mpisec::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::size_t threshold = input.take<std::uint32_t>();
    std::uint8_t bytes[large_header_bytes], again[large_header_bytes];
    for (std::uint8_t& byte : bytes) byte = input.take<std::uint8_t>();
    LargeHeader header{};
    if (!decode(bytes, threshold, header)) return 0;
    encode(header, again);
    FUZZ_CHECK(std::equal(std::begin(bytes), std::end(bytes), std::begin(again)));

    const SegmentPlan plan{header.total, header.first_bytes, header.segment_bytes};
    const std::uint64_t count = plan.count(), last = count - 1;
    FUZZ_CHECK(count >= 2);
    FUZZ_CHECK(plan.size(0) <= threshold);
    FUZZ_CHECK(plan.is_last(last) && !plan.is_last(0));
    FUZZ_CHECK(plan.size(last) >= 1 && plan.size(last) <= header.segment_bytes);
    FUZZ_CHECK(plan.offset(last) + plan.size(last) == header.total);
    const std::uint64_t somewhere = input.take<std::uint64_t>() % last;
    FUZZ_CHECK(plan.size(somewhere) == (somewhere == 0 ? header.first_bytes : header.segment_bytes));
    FUZZ_CHECK(plan.offset(somewhere) + plan.size(somewhere) == plan.offset(somewhere + 1));
    return 0;
}
