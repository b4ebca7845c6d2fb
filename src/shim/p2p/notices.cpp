#include "shim/p2p/notices.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/notice_receive.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/state.hpp"
#include "wire/skips.hpp"

namespace mpisec::shim {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds longest_farewell{5};

struct Untold {
    std::deque<wire::CounterRun> runs;  ///< in the order of cancelling
    std::deque<wire::CallNotice> calls;
    std::unique_ptr<wire::SkipNotice> notice =
        std::make_unique<wire::SkipNotice>();  ///< or a notice of a call, at its beginning
    std::unique_ptr<Operation> telling;        ///< sends `notice`, which must live as long
    std::uint64_t sent = 0;
};

}  // namespace

/// Under the Guard.
struct Notices {
    std::map<std::int32_t, Untold> untold_by_peer;  ///< may grow while a notice is being sent
    std::uint64_t heard = 0;                        ///< notices received, of those that count
    NoticeReceive<wire::SkipNotice> hearing;
    bool busy = false;  ///< hearing or telling (Turn)
};

namespace {

/// Sending a notice may wait for room inside a node; that wait advances everything and can come here again: then nothing is done.
class Turn {
  public:
    Turn() : mine_(!std::exchange(process.notices->busy, true)) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
        if (mine_) process.notices->busy = false;
    }
    explicit operator bool() const { return mine_; }

  private:
    bool mine_;
};

struct NextNotice {
    std::size_t bytes = 0;  ///< 0 when there is nothing
    bool counts = true;
};

/// Moves what is to be told next into `notice`.
NextNotice next_notice(Untold& untold) {
    if (!untold.calls.empty()) {
        const bool asks = untold.calls.front().asks();
        const wire::EncodedCall call = wire::encode_call(untold.calls.front());
        untold.calls.pop_front();
        std::ranges::copy(call, untold.notice->begin());
        return {call.size(), asks};
    }
    if (untold.runs.empty()) return {};
    const auto end = untold.runs.begin() +
                     static_cast<std::ptrdiff_t>(std::min(untold.runs.size(), wire::most_skipped_runs));
    const std::vector<wire::CounterRun> first(untold.runs.begin(), end);
    untold.runs.erase(untold.runs.begin(), end);
    *untold.notice = wire::encode_skips(first);
    return {untold.notice->size(), true};
}

/// True while something is still to be told, or is being told.
bool tell(std::int32_t peer, Untold& untold) {
    if (untold.telling && untold.telling->advance()) untold.telling.reset();
    if (untold.telling) return true;
    if (!realm_of(peer).job_secret) {  // its realm is gone
        untold.runs.clear();
        untold.calls.clear();
    }
    const auto [bytes, counts] = next_notice(untold);
    if (bytes == 0) return false;
    const std::uint64_t counted = outgoing(peer).sent;
    untold.telling = begin_send({SendSpec::Mode::synchronous, untold.notice->data(),
                                 static_cast<MPI_Count>(bytes), constants.byte, rank_in_realm(peer),
                                 notice_tag(), realm_of(peer).channel, "a notice of MPIsec"});
    outgoing(peer).sent = counted;
    const bool begun = !untold.telling->complete() || untold.telling->outcome().error == MPI_SUCCESS;
    if (begun && counts) ++untold.sent;
    return true;
}

/// Returns false for an invalid notice. It counts nevertheless, because it may have been changed on the way.
bool take(const NoticeReceive<wire::SkipNotice>& hearing) {
    const bool good = hearing.outcome.error == MPI_SUCCESS;
    if (good && hearing.outcome.bytes == wire::call_notice_bytes) {
        const wire::CallNotice call = wire::decode_call(hearing.bytes.data());
        if (call.asks()) ++process.notices->heard;
        if (const auto call_heard = process.call_heard.load(std::memory_order_relaxed))
            call_heard(hearing.source, call);
        return true;
    }
    ++process.notices->heard;
    if (!good || hearing.outcome.bytes != hearing.bytes.size()) return false;
    for (const wire::CounterRun& run : wire::decode_skips(hearing.bytes))
        for (std::uint64_t counter = run.first; counter <= run.last; ++counter)
            incoming(hearing.source).replay.insert(counter);
    return true;
}

/// Takes one notice of this realm from the rank `peer`, which may be MPI_ANY_SOURCE, if one has arrived completely. Does not wait.
bool hear_one(const Realm& realm, int peer) {
    const Turn turn;
    if (!turn) return false;
    auto& hearing = process.notices->hearing;
    using State = NoticeReceive<wire::SkipNotice>::State;
    if (!hearing.begun() && !hearing.begin(realm, peer, notice_tag(), "a notice of MPIsec")) return false;
    PeerReceiveState& pair = incoming(hearing.source);
    const std::uint64_t counted = pair.opened;
    const State state = hearing.advance();
    if (state == State::under_way) return false;
    if (state == State::overdue) {
        ++process.notices->heard;
        return false;
    }
    pair.opened = counted;  // not counted by the sender either; an unsealed one never is
    return take(hearing);
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
    std::erase_if(calls, [&](const wire::CallNotice& older) { return older.superseded_by(call); });
    calls.push_back(call);
    notices_untold.store(true, std::memory_order_relaxed);
}

void tell_notices() {
    Guard guard;
    const Turn turn;  // a notice is itself a message, so starting one comes here again
    if (!turn || !notices_untold.exchange(false, std::memory_order_relaxed)) return;
    bool more = false;
    for (auto& [peer, untold] : process.notices->untold_by_peer) more = tell(peer, untold) || more;
    if (more) notices_untold.store(true, std::memory_order_relaxed);
}

void hear_notices(std::int32_t world_source) {
    Guard guard;
    while (hear_one(realm_of(world_source), rank_in_realm(world_source))) {
    }
}

void hear_notices(const Realm& realm) {
    Guard guard;
    if (!realm.job_secret) return;  // the realm is gone, and its channel with it
    while (hear_one(realm, MPI_ANY_SOURCE)) {
    }
}

std::vector<std::uint64_t> notices_sent() {
    Guard guard;
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(state.world.size));
    for (auto& [peer, untold] : process.notices->untold_by_peer) {
        if (peer < state.world.size) sent[static_cast<std::size_t>(peer)] = untold.sent;
        untold.runs.clear();  // they would be in no sum
        std::erase_if(untold.calls, [](const wire::CallNotice& call) { return call.asks(); });
    }
    return sent;
}

void finish_notices(std::uint64_t expected) {
    const auto limit = Clock::now() + longest_farewell;
    Guard guard;
    process.call_heard.store(nullptr, std::memory_order_relaxed);  // nobody waits for an answer any more
    for (bool left = true; left && Clock::now() < limit;) {
        hear_one(state.world, MPI_ANY_SOURCE);
        left = process.notices->heard < expected;
        for (auto& [peer, untold] : process.notices->untold_by_peer) {
            if (untold.telling && untold.telling->advance()) untold.telling.reset();
            left = left || untold.telling;
        }
    }
    forget_notices();
}

void forget_notices() {
    Guard guard;
    Notices& notices = *process.notices;
    // MPI may still read the buffer of a notice that was lost, so that buffer stays.
    for (auto& [peer, untold] : notices.untold_by_peer)
        if (untold.telling && !untold.telling->advance()) {
            (void)untold.telling.release();
            (void)untold.notice.release();
        }
    notices.hearing.forget();
    notices.untold_by_peer.clear();
    notices.heard = 0;
    notices_untold.store(false, std::memory_order_relaxed);
}

}  // namespace mpisec::shim
