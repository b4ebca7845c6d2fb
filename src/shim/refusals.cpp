#include "shim/refusals.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "shim/constants.hpp"
#include "shim/operation.hpp"
#include "shim/pair.hpp"
#include "shim/real.hpp"
#include "shim/state.hpp"

namespace mpisec::shim {
namespace {

constexpr std::uint64_t no_counter = std::numeric_limits<std::uint64_t>::max();

constexpr unsigned most_unanswered = 8;  // per sender

/// counter(8) tag(4) context(16)
using Refusal = std::array<std::uint8_t, 28>;
/// counter(8) large header(16)
using Rest = std::array<std::uint8_t, 8 + wire::large_header_bytes>;

// Below the tally's tag; barriers end below these (meet.cpp).
int refusal_tag() {
    return state.tag_upper_bound - 1;
}
int rest_tag() {
    return state.tag_upper_bound - 2;
}

std::vector<LargeSend*> large_sends;  // under the Guard; oldest first

template <class Payload>
void send_notice(const Payload& payload, std::int32_t peer, int tag) {
    const std::uint64_t counted = outgoing(peer).sent;
    detach(begin_send({SendSpec::Mode::standard, payload.data(), static_cast<MPI_Count>(payload.size()),
                       constants.byte, peer, tag, state.world.channel, "a notice of MPIsec"}));
    outgoing(peer).sent = counted;  // may stay unread: not for the tally (S8)
}

/// Receives notices of one kind, one at a time, as they come.
template <class Payload>
class Mailbox {
  public:
    /// True when a whole one has come; then `payload` and `source` are it. `peer` may be MPI_ANY_SOURCE.
    bool poll(int peer, int tag) {
        if (!receiving_) {
            int flag = 0;
            MPI_Status found;
            if (real.Iprobe(peer, tag, state.world.channel, &flag, &found) != MPI_SUCCESS || !flag)
                return false;
            source = found.MPI_SOURCE;
            receiving_ =
                begin_receive({payload.data(), static_cast<MPI_Count>(payload.size()), constants.byte, source,
                               tag, state.world.channel, "a notice of MPIsec"});
        }
        if (!receiving_->advance()) return false;
        const bool good =
            receiving_->outcome().error == MPI_SUCCESS && receiving_->outcome().bytes == payload.size();
        receiving_.reset();
        if (good) --incoming(source).opened;  // like what was not counted as sent
        return good;
    }
    /// At the end; MPI may still write to the buffer of a receive under way, so that one stays.
    void clear() { (void)receiving_.release(); }

    Payload payload{};
    std::int32_t source = 0;

  private:
    std::unique_ptr<Operation> receiving_;
};

Mailbox<Refusal> refusals;  // under the Guard, like the next
Mailbox<Rest> rests;

class Discard final : public Operation {
  public:
    Discard(std::int32_t world_source, const wire::LargeHeader& header)
        : Operation(nullptr),
          source_(world_source),
          pipeline_(no_key.data(), {header.total, state.settings.threshold, header.segment_bytes},
                    world_source, header.channel_tag, nullptr) {}
    ~Discard() override { leave_work_list(*this); }
    bool needs_progress() const override { return true; }
    Whereabouts whereabouts() const override {
        return {"the rest of a refused message", source_, MPI_ANY_TAG};
    }

  private:
    void step() override {
        if (pipeline_.advance()) finish();
    }
    static constexpr std::array<std::uint8_t, aead::max_key_bytes> no_key{};  // nothing is opened
    std::int32_t source_;
    ReceivePipeline pipeline_;
};

/// On the work list from the first refusal on: the sender's answer comes when the program is anywhere.
class Watch final : public Operation {
  public:
    Watch() : Operation(nullptr) {}
    ~Watch() override { leave_work_list(*this); }
    bool needs_progress() const override { return true; }

  private:
    void step() override {
        if (!rests.poll(MPI_ANY_SOURCE, rest_tag())) return;
        unsigned& unanswered = incoming(rests.source).refusals;
        if (unanswered > 0) --unanswered;
        wire::LargeHeader header{};
        if (!wire::decode(rests.payload.data() + 8, state.settings.threshold, header)) return;
        // A message accepted meanwhile has its receiver; any other is not to be accepted any more.
        if (incoming(rests.source).replay.insert(load_le<std::uint64_t>(rests.payload.data())))
            throw_away(rests.source, header);
    }
};

std::unique_ptr<Operation> watch;  // under the Guard

/// Which send the refusal speaks of: the one with its counter, or else, the attacker having changed that too,
/// the oldest to this place.
LargeSend* refused_send(std::int32_t world_peer, const Refusal& refusal) {
    auto first = [&](auto fits) {
        auto found = std::find_if(large_sends.begin(), large_sends.end(), [&](const LargeSend* send) {
            return send->world_peer == world_peer && !send->told && fits(*send);
        });
        return found == large_sends.end() ? nullptr : *found;
    };
    const auto counter = load_le<std::uint64_t>(refusal.data());
    if (LargeSend* same = first([&](const LargeSend& send) { return send.counter == counter; })) return same;
    const auto tag = load_le<std::int32_t>(refusal.data() + 8);
    return first([&](const LargeSend& send) {
        return send.tag == tag &&
               std::memcmp(send.context.data(), refusal.data() + 12, send.context.size()) == 0;
    });
}

}  // namespace

LargeSend::LargeSend(std::int32_t peer, const wire::ContextId& of, int with_tag, std::uint64_t number,
                     const wire::LargeHeader& plan)
    : world_peer(peer), context(of), tag(with_tag), counter(number), header(plan) {
    large_sends.push_back(this);
    ++outgoing(world_peer).large_sends;
}

LargeSend::~LargeSend() {
    std::erase(large_sends, this);
    --outgoing(world_peer).large_sends;
}

void tell_refused(const Communicator& comm, int source, int tag, const std::uint8_t* nonce) {
    if (comm.handle == state.world.channel) return;
    Guard guard;
    const std::int32_t world_source = comm.peers[static_cast<std::size_t>(source)].world;
    wire::NonceFields claimed{};
    const std::uint64_t counter = nonce && wire::parse_nonce(nonce, claimed) ? claimed.counter : no_counter;
    if (incoming(world_source).refusals >= most_unanswered) return;
    ++incoming(world_source).refusals;
    Refusal refusal;
    store_le(refusal.data(), counter);
    store_le(refusal.data() + 8, static_cast<std::int32_t>(tag));
    std::copy(comm.context.begin(), comm.context.end(), refusal.begin() + 12);
    send_notice(refusal, world_source, refusal_tag());
    if (watch) return;
    watch = std::make_unique<Watch>();
    enlist(*watch);
}

void answer_refusals(std::int32_t world_peer) {
    if (!refusals.poll(world_peer, refusal_tag())) return;
    LargeSend* send = refused_send(refusals.source, refusals.payload);
    Rest rest{};  // a header of zeros says: a message that leaves nobody waiting
    if (send) {
        send->told = true;
        store_le(rest.data(), send->counter);
        wire::encode(send->header, rest.data() + 8);
    }
    send_notice(rest, refusals.source, rest_tag());
}

void throw_away(std::int32_t world_source, const wire::LargeHeader& header) {
    detach(std::make_unique<Discard>(world_source, header));
}

void forget_refusals() {
    Guard guard;
    refusals.clear();
    rests.clear();
    watch.reset();
}

}  // namespace mpisec::shim
