// The replay set against a plain set, with counters near each other, near zero and near the top.
#include "../unit/wire/models.hpp"
#include "check.hpp"
#include "wire/replay.hpp"

using namespace mpisec;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    wire::ReplaySet set;
    wire::ReplayModel model;
    for (int step = 0; !input.empty() && step < 200; ++step) {
        std::uint64_t counter = input.take<std::uint8_t>();
        if (counter >= 0xF0) counter = ~std::uint64_t{0} - (counter - 0xF0);
        if (counter == 0x80) counter = input.take<std::uint64_t>();
        FUZZ_CHECK(set.contains(counter) == model.accepted.contains(counter));
        FUZZ_CHECK(set.insert(counter) == model.insert(counter));
        FUZZ_CHECK(set.contains(counter));
        FUZZ_CHECK(set.base() == model.base());
        FUZZ_CHECK(set.runs() == model.runs());
    }
    return 0;
}
