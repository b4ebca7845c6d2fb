#include "shim/p2p/notices.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <unordered_map>

#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/pmpi/status.hpp"
#include "shim/runtime/state.hpp"
#include "wire/skips.hpp"

namespace mpisec::shim {
namespace {

constexpr std::chrono::seconds longest_farewell{5};

struct Untold {
    std::deque<wire::CounterRun> runs;  ///< in the order of cancelling
    std::deque<wire::CallNotice> calls;
    std::unique_ptr<wire::SkipNotice> notice =
        std::make_unique<wire::SkipNotice>();  ///< or as long as a call's
    std::unique_ptr<Operation> telling;        ///< sends `notice`, which stays as long
    std::uint64_t sent = 0;
};

/// The notice that is being received, into which buffer, and from whom.
struct Hearing {
    std::unique_ptr<Operation> receiving;
    wire::SkipNotice notice;
    int source = 0;
};

}  // namespace

/// Under the Guard.
struct Notices {
    std::unordered_map<std::int32_t, Untold> untold_by_peer;
    std::uint64_t heard = 0;  ///< notices
    Hearing hearing;
};

namespace {

/// Takes what is to be told next to `notice`; its bytes, 0 when there is nothing.
std::size_t next_notice(Untold& untold) {
    if (!untold.calls.empty()) {
        const wire::EncodedCall call = wire::encode_call(untold.calls.front());
        untold.calls.pop_front();
        std::ranges::copy(call, untold.notice->begin());
        return call.size();
    }
    if (untold.runs.empty()) return 0;
    const auto end = untold.runs.begin() +
                     static_cast<std::ptrdiff_t>(std::min(untold.runs.size(), wire::most_skipped_runs));
    const std::vector<wire::CounterRun> first(untold.runs.begin(), end);
    untold.runs.erase(untold.runs.begin(), end);
    *untold.notice = wire::encode_skips(first);
    return untold.notice->size();
}

/// True while there is something to tell, or being told.
bool tell(std::int32_t peer, Untold& untold) {
    if (untold.telling && untold.telling->advance()) untold.telling.reset();
    if (untold.telling) return true;
    if (!realm_of(peer).job_secret) {  // its realm is gone
        untold.runs.clear();
        untold.calls.clear();
    }
    const std::size_t bytes = next_notice(untold);
    if (bytes == 0) return false;
    const std::uint64_t counted = outgoing(peer).sent;
    untold.telling = begin_send({SendSpec::Mode::synchronous, untold.notice->data(),
                                 static_cast<MPI_Count>(bytes), constants.byte, rank_in_realm(peer),
                                 notice_tag(), realm_of(peer).channel, "a notice of MPIsec"});
    outgoing(peer).sent = counted;
    if (!untold.telling->complete() || untold.telling->outcome().error == MPI_SUCCESS) ++untold.sent;
    return true;
}

/// One notice of this realm from the rank `peer`, which may be MPI_ANY_SOURCE, if one has come whole. Does not wait: somebody
/// may announce a message and never send it.
bool hear_one(const Realm& realm, int peer) {
    Hearing& hearing = process.notices->hearing;
    if (!hearing.receiving) {
        int flag = 0;
        MPI_Status found;
        if (real.Iprobe(peer, notice_tag(), realm.channel, &flag, &found) != MPI_SUCCESS || !flag)
            return false;
        const int from = from_named_source(peer, found).MPI_SOURCE;
        hearing.source = realm.first + from;
        const std::uint64_t counted = incoming(hearing.source).opened;
        hearing.receiving =
            begin_receive({hearing.notice.data(), static_cast<MPI_Count>(hearing.notice.size()),
                           constants.byte, from, notice_tag(), realm.channel, "a notice of MPIsec"});
        incoming(hearing.source).opened = counted;
    }
    PeerReceiveState& pair = incoming(hearing.source);
    const std::uint64_t counted = pair.opened;
    if (!hearing.receiving->advance()) return false;
    pair.opened = counted;  // like what was not counted as sent; nor is it where it was not sealed
    const Outcome outcome = hearing.receiving->outcome();
    hearing.receiving.reset();
    ++process.notices->heard;
    if (outcome.error != MPI_SUCCESS) return false;
    const auto call_heard = process.call_heard.load(std::memory_order_relaxed);
    if (outcome.bytes == wire::call_notice_bytes && call_heard) {
        call_heard(hearing.source, wire::decode_call(hearing.notice.data()));
        return true;
    }
    if (outcome.bytes != hearing.notice.size()) return false;
    for (const wire::CounterRun& run : wire::decode_skips(hearing.notice))
        for (std::uint64_t counter = run.first; counter <= run.last; ++counter) pair.replay.insert(counter);
    return true;
}

}  // namespace

void skip_counter(std::int32_t world_peer, std::uint64_t counter) {
    Guard guard;
    std::deque<wire::CounterRun>& runs = process.notices->untold_by_peer[world_peer].runs;
    if (!runs.empty() && runs.back().last + 1 == counter)
        runs.back().last = counter;
    else
        runs.push_back({counter, counter});
    notices_untold.store(true, std::memory_order_relaxed);
}

void tell_call(std::int32_t world_peer, const wire::CallNotice& call) {
    Guard guard;
    std::deque<wire::CallNotice>& calls = process.notices->untold_by_peer[world_peer].calls;
    std::erase_if(calls, [&](const wire::CallNotice& older) { return older.context == call.context; });
    calls.push_back(call);
    notices_untold.store(true, std::memory_order_relaxed);
}

void tell_notices() {
    Guard guard;
    // A notice is a message, too, and comes here when it is started.
    if (!notices_untold.exchange(false, std::memory_order_relaxed)) return;
    bool more = false;
    for (auto& [peer, untold] : process.notices->untold_by_peer) more = tell(peer, untold) || more;
    notices_untold.store(more, std::memory_order_relaxed);
}

void hear_notices(std::int32_t world_source) {
    Guard guard;
    while (hear_one(realm_of(world_source), rank_in_realm(world_source))) {
    }
}

void hear_notices(const Realm& realm) {
    Guard guard;
    if (!realm.job_secret) return;  // it is gone, and its channel with it
    while (hear_one(realm, MPI_ANY_SOURCE)) {
    }
}

std::vector<std::uint64_t> notices_sent() {
    Guard guard;
    notices_untold.store(false, std::memory_order_relaxed);  // what is sent from now on is in no sum
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(state.world.size));
    for (const auto& [peer, untold] : process.notices->untold_by_peer)
        if (peer < state.world.size) sent[static_cast<std::size_t>(peer)] = untold.sent;
    return sent;
}

void finish_notices(std::uint64_t expected) {
    const auto limit = std::chrono::steady_clock::now() + longest_farewell;
    Guard guard;
    auto& [untold_by_peer, heard, hearing] = *process.notices;
    for (bool busy = true; busy && std::chrono::steady_clock::now() < limit;) {
        busy = heard < expected;
        if (busy) hear_one(state.world, MPI_ANY_SOURCE);
        for (auto& [peer, untold] : untold_by_peer) {
            if (untold.telling && untold.telling->advance()) untold.telling.reset();
            busy = busy || untold.telling;
        }
    }
    forget_notices();
}

void forget_notices() {
    Guard guard;
    auto& [untold_by_peer, heard, hearing] = *process.notices;
    // MPI may still read the buffer of one that was lost, so that one stays.
    for (auto& [peer, untold] : untold_by_peer)
        if (untold.telling && !untold.telling->advance()) {
            (void)untold.telling.release();
            (void)untold.notice.release();
        }
    (void)hearing.receiving.release();
    untold_by_peer.clear();
    heard = 0;
    notices_untold.store(false, std::memory_order_relaxed);
}

}  // namespace mpisec::shim
