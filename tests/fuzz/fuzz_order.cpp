// The order tracker, pruned after each message, against a model that forgets nothing: the input posts
// receives, matches them to messages of this or another tag, and completes them in its own order.
#include <algorithm>
#include <set>

#include "../unit/wire/models.hpp"
#include "check.hpp"
#include "wire/order.hpp"
#include "wire/replay.hpp"

using namespace mpisec;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    wire::OrderTracker tracker;
    wire::OrderModel model;
    wire::ReplaySet replay;
    std::set<std::uint64_t> outstanding;
    std::uint64_t next_position = 0;
    for (int step = 0; !input.empty() && step < 300; ++step) {
        const auto what = input.take<std::uint8_t>();
        if (what & 1) {
            outstanding.insert(next_position++);
            continue;
        }
        if (outstanding.empty()) continue;
        const auto receive =
            std::next(outstanding.begin(), (what >> 2) % static_cast<int>(outstanding.size()));
        const std::uint64_t position = *receive, counter = input.take<std::uint8_t>();
        outstanding.erase(receive);
        if (!replay.insert(counter)) continue;
        if (what & 2)
            continue;  // of another tag: its counter is accepted, the order of ours does not concern it
        FUZZ_CHECK(tracker.record(position, counter) == model.record(position, counter));
        tracker.prune(outstanding.empty() ? next_position : *outstanding.begin(), replay.base());
        FUZZ_CHECK(tracker.size() <= model.records.size());
        FUZZ_CHECK(!outstanding.empty() || replay.runs() > 0 || tracker.empty());
    }
    return 0;
}
