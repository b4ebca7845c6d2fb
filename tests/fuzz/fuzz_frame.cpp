// The first bytes of a received message: nonce, lengths, and the associated data built from what they claim.
#include <tuple>

#include "check.hpp"
#include "wire/frame.hpp"

using namespace mpisec;
using namespace mpisec::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const auto bytes = input.take<Nonce>();
    NonceFields fields{};
    if (!parse_nonce(bytes.data(), fields)) return 0;
    FUZZ_CHECK(fields.kind == Kind::small || fields.kind == Kind::large_header);
    FUZZ_CHECK(fields.epoch <= max_epoch);
    FUZZ_CHECK(make_nonce(fields) == bytes);  // nothing in the nonce is ignored

    // Two messages have the same associated data only when they agree in all that it binds.
    struct Bound {
        ContextId context;
        std::int32_t source, destination, tag;
        std::uint64_t length;
        auto all() const { return std::tie(context, source, destination, tag, length); }
    };
    const Bound one = input.take<Bound>(), other = input.take<Bound>();
    auto ad = [&](const Bound& bound) {
        return associated_data(fields.kind, bound.context, bound.source, bound.destination, bound.tag,
                               bound.length);
    };
    FUZZ_CHECK((ad(one) == ad(other)) == (one.all() == other.all()));
    return 0;
}
