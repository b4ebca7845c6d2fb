#include "shim/p2p/rejected_messages.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/notice_receive.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

constexpr std::uint64_t no_counter = std::numeric_limits<std::uint64_t>::max();

// Per sender: notices that MPI holds, and rejections whose notices wait here to be sent.
constexpr std::size_t most_unanswered = 8, most_untold = 4096;
// Sends to one rank that are remembered after their segments have left.
constexpr std::size_t most_remembered = 64;

/// counter(8) tag(4) context(16)
using Rejection = std::array<std::uint8_t, 28>;
/// counter(8) large header(20)
using Rest = std::array<std::uint8_t, 8 + wire::large_header_bytes>;

template <class Payload>
void send_notice(const Payload& payload, std::int32_t peer, int tag) {
    if (!realm_of(peer).job_secret) return;  // its realm is gone
    const std::uint64_t counted = outgoing(peer).sent;
    detach(
        begin_send({SendSpec::Mode::standard, payload.data(), static_cast<MPI_Count>(payload.size()),
                    constants.byte, rank_in_realm(peer), tag, realm_of(peer).channel, "a notice of MPIsec"}));
    outgoing(peer).sent = counted;  // may stay unread, so it is not counted in the message audit (S8)
}

/// Begins to receive a notice from `peer`, which may be MPI_ANY_SOURCE.
template <class Payload>
bool begin(NoticeReceive<Payload>& notice, int peer, int tag) {
    constexpr const char* call = "a notice of MPIsec";
    if (peer != MPI_ANY_SOURCE) return notice.begin(realm_of(peer), rank_in_realm(peer), tag, call);
    const std::vector<Realm*> realms = protected_realms();
    return std::ranges::any_of(realms,
                               [&](Realm* realm) { return notice.begin(*realm, MPI_ANY_SOURCE, tag, call); });
}

/// Whether a whole notice has arrived.
template <class Payload>
bool has_arrived(NoticeReceive<Payload>& notice, int peer, int tag) {
    if (!notice.begun() && !begin(notice, peer, tag)) return false;
    if (notice.advance() != NoticeReceive<Payload>::State::arrived) return false;
    if (notice.outcome.error != MPI_SUCCESS || notice.outcome.bytes != notice.bytes.size()) return false;
    --incoming(notice.source).opened;  // the sender does not count it as sent either
    return true;
}

class Discard final : public Operation {
  public:
    Discard(std::int32_t world_source, const wire::LargeHeader& header)
        : Operation(nullptr),
          source_(world_source),
          pipeline_(no_key.data(), {header.total, header.first_bytes, header.segment_bytes}, world_source,
                    header.channel_tag, nullptr) {}
    ~Discard() override { leave_work_list(*this); }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return {"the rest of a rejected message", source_, MPI_ANY_TAG}; }

  private:
    void step() override {
        if (pipeline_.advance()) finish();
    }
    static constexpr std::array<std::uint8_t, aead::max_key_bytes> no_key{};  // nothing is opened
    std::int32_t source_;
    ReceivePipeline pipeline_;
};

std::uint64_t claimed_counter(const Rejection& rejection) {
    return load_le<std::uint64_t>(rejection.data());
}

/// A rejection that is not told yet, because receives posted before that of the message are under way.
struct Held {
    Communicator* comm;
    RejectedAt at;
    Rejection rejection;
};

/// Rejections of one sender's messages.
struct Told {
    std::list<Held> held;
    std::list<Rejection> untold;
    std::list<Rejection> unanswered;  ///< answers arrive in this order
    /// Counters that were thrown away because a rejection claimed them. A rejection that claims none is not kept: whoever injects such a
    /// message can cost one genuine message, not one after the other.
    std::unordered_map<std::uint64_t, Rejection> named;
};

}  // namespace

/// Under the Guard.
struct RejectedMessages {
    // By world rank; oldest first. Remembered are sends whose segments MPI has taken completely, unmatched perhaps (MPICH over OFI does
    // so), before the receiver could say that it has rejected the message.
    std::vector<LargeSend*> large_sends;
    std::unordered_map<std::int32_t, std::deque<Announcement>> remembered;
    NoticeReceive<Rejection> rejections;
    NoticeReceive<Rest> rests;
    std::unordered_map<std::int32_t, Told> told_by_source;  ///< by world rank
    std::unique_ptr<Operation> watch;
};

namespace {

void tell_next(std::int32_t world_source) {
    auto& [held, untold, unanswered, named] = process.rejected_messages->told_by_source[world_source];
    if (untold.empty() || unanswered.size() >= most_unanswered) return;
    send_notice(untold.front(), world_source, rejection_tag());
    unanswered.splice(unanswered.end(), untold, untold.begin());
}

/// Whether a receive that MPI matched earlier can have got an earlier message of this source and tag, and has not ended. Such receives are
/// advanced, even if the program waits for none of them. A receive that the program has yet to post for a message that it probed is not
/// waited for.
bool earlier_ones_are_under_way(const Communicator& comm, const RejectedAt& at) {
    bool under_way = false;
    for (const PostedReceive* receive = comm.oldest; receive && receive->position < at.position;
         receive = receive->newer) {
        if (!receive->can_match(at.source, at.tag) || !receive->owner) continue;
        under_way = true;
        receive->owner->urged = true;
        enlist(*receive->owner);
    }
    return under_way;
}

void tell_held() {
    for (auto& [world_source, told] : process.rejected_messages->told_by_source) {
        for (auto each = told.held.begin(); each != told.held.end();) {
            if (earlier_ones_are_under_way(*each->comm, each->at)) {
                ++each;
                continue;
            }
            told.untold.push_back(each->rejection);
            release(*each->comm);
            each = told.held.erase(each);
            tell_next(world_source);
        }
    }
}

/// On the work list from the first rejection on: the sender's answer can arrive wherever the program is.
class Watch final : public Operation {
  public:
    Watch() : Operation(nullptr) {}
    ~Watch() override { leave_work_list(*this); }
    bool needs_progress() const override { return true; }

  private:
    void step() override {
        tell_held();
        NoticeReceive<Rest>& rests = process.rejected_messages->rests;
        if (!has_arrived(rests, MPI_ANY_SOURCE, rest_tag())) return;
        auto& [held, untold, unanswered, named] = process.rejected_messages->told_by_source[rests.source];
        if (unanswered.empty()) return;
        std::list<Rejection> answered;
        answered.splice(answered.begin(), unanswered, unanswered.begin());
        wire::LargeHeader header{};
        if (wire::decode(rests.bytes.data() + 8, realm_of(rests.source).threshold, header)) {
            const auto counter = load_le<std::uint64_t>(rests.bytes.data());
            PeerReceiveState& pair = incoming(rests.source);
            if (pair.replay.insert(counter)) {
                pair.unaccounted.found_one();
                const Rejection& rejection = answered.front();
                if (claimed_counter(rejection) == counter && named.size() < most_untold)
                    named.emplace(counter, rejection);
                throw_away(rests.source, header);
            } else {  // that message was accepted: the sender must look further
                untold.splice(untold.begin(), answered);
            }
        }
        tell_next(rests.source);
    }
};

/// The send that the rejection refers to: the one with its counter or, if the attacker has changed that too, the oldest with its tag and
/// communicator; each is named once.
Announcement* rejected_send(std::int32_t world_peer, const Rejection& rejection) {
    auto oldest = [&](auto fits) {
        Announcement* found = nullptr;
        auto look_at = [&](Announcement& send) {
            const bool older = !found || send.counter < found->counter;
            if (send.world_peer == world_peer && !send.settled && older && fits(send)) found = &send;
        };
        for (Announcement& send : process.rejected_messages->remembered[world_peer]) look_at(send);
        for (LargeSend* send : process.rejected_messages->large_sends) look_at(*send);
        return found;
    };
    const std::uint64_t counter = claimed_counter(rejection);
    if (auto* same = oldest([&](const Announcement& send) { return send.counter == counter; })) return same;
    const auto tag = load_le<std::int32_t>(rejection.data() + 8);
    return oldest([&](const Announcement& send) {
        return send.tag == tag &&
               std::memcmp(send.context.data(), rejection.data() + 12, send.context.size()) == 0;
    });
}

}  // namespace

LargeSend::LargeSend(const Announcement& announcement) : Announcement(announcement) {
    process.rejected_messages->large_sends.push_back(this);
    ++outgoing(world_peer).large_sends;
}

LargeSend::~LargeSend() {
    std::erase(process.rejected_messages->large_sends, this);
    --outgoing(world_peer).large_sends;
    if (settled) return;
    std::deque<Announcement>& to_peer = process.rejected_messages->remembered[world_peer];
    to_peer.push_back(*this);
    if (to_peer.size() > most_remembered) to_peer.pop_front();
}

void tell_rejected(Communicator& comm, const RejectedAt& at, const std::uint8_t* nonce) {
    if (comm.is_channel || !comm.has_peer(at.source)) return;
    Guard guard;
    const std::int32_t world_source = comm.peer(at.source);
    wire::NonceFields claimed{};
    const std::uint64_t counter = nonce && wire::parse_nonce(nonce, claimed) ? claimed.counter : no_counter;
    Told& told = process.rejected_messages->told_by_source[world_source];
    if (told.held.size() + told.untold.size() >= most_untold) return;
    Rejection& rejection = told.held.emplace_back(Held{&comm, at, {}}).rejection;
    hold(comm);
    store_le(rejection.data(), counter);
    store_le(rejection.data() + 8, static_cast<std::int32_t>(at.tag));
    std::copy(comm.context.begin(), comm.context.end(), rejection.begin() + 12);
    tell_held();
    std::unique_ptr<Operation>& watch = process.rejected_messages->watch;
    if (watch) return;
    watch = std::make_unique<Watch>();
    enlist(*watch);
}

void tell_misnamed(std::int32_t world_source, std::uint64_t counter) {
    Guard guard;
    auto& told_by_source = process.rejected_messages->told_by_source;
    const auto source = told_by_source.find(world_source);
    if (source == told_by_source.end()) return;
    auto& [held, untold, unanswered, named] = source->second;
    const auto found = named.find(counter);
    if (found == named.end()) return;
    store_le(untold.emplace_back(found->second).data(), no_counter);
    named.erase(found);
    tell_next(world_source);
}

void answer_rejections(std::int32_t world_peer) {
    NoticeReceive<Rejection>& rejections = process.rejected_messages->rejections;
    if (!has_arrived(rejections, world_peer, rejection_tag())) return;
    Announcement* send = rejected_send(rejections.source, rejections.bytes);
    Rest rest{};  // a header of zeros means: a message that leaves nobody waiting
    if (send) {
        send->settled = true;
        store_le(rest.data(), send->counter);
        wire::encode(send->header, rest.data() + 8);
    }
    send_notice(rest, rejections.source, rest_tag());
}

void throw_away(std::int32_t world_source, const wire::LargeHeader& header) {
    detach(std::make_unique<Discard>(world_source, header));
}

void forget_rejections() {
    Guard guard;
    RejectedMessages& all = *process.rejected_messages;
    all.rejections.forget();
    all.rests.forget();
    for (auto& [source, told] : all.told_by_source)
        for (const Held& held : told.held) release(*held.comm);
    all.told_by_source.clear();
    all.remembered.clear();
    all.watch.reset();
}

}  // namespace mpisec::shim
