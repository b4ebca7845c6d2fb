// Sending one message (docs/protocol.md, "Small message", "Large message"):
//
//   1 route          same node or MPI_PROC_NULL: the user's own arguments go to MPI (M1); else sealed
//   2 pack           only when the datatype is not one run of bytes (M8)
//   3 sequence       the pair's next counter, which belongs to this message for ever (S4)
//   4 seal           small: the whole message; large: header and segment 0, into a pooled buffer
//   5 hand to MPI    with the user's own mode, tag and communicator, so that MPI's matching rules are MPI's
//   6 pipeline       large: the other segments on the private channel, sealed while earlier ones are sent
//
// Steps 3 to 5 are under the Guard: MPI must see messages in the order of their counters.
#include <algorithm>
#include <cstring>
#include <optional>

#include "shim/p2p/buffered.hpp"
#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/notices.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/rejected_messages.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/plain.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/stats.hpp"
#include "shim/runtime/threads.hpp"
#include "shim/runtime/trace.hpp"
#include "shim/sockets/handed_over.hpp"

namespace mpisec::shim {

using Mode = SendSpec::Mode;

namespace {

/// MPIsec's own notices need no order, and some are never received.
wire::WayBack back_from(Communicator& comm, std::int32_t world_peer, int tag, std::uint64_t counter) {
    return comm.is_channel ? wire::WayBack{} : comm.predecessors.back_from(world_peer, tag, counter);
}

}  // namespace

void skip(const SendSpec& spec, Communicator& comm, std::int32_t world_peer, std::uint64_t counter) {
    {
        SealingScope alone(spec.call);
        comm.predecessors.forget(world_peer, spec.tag, counter);
    }
    skip_counter(world_peer, counter);
}

std::uint64_t seal_small(std::uint8_t* wire, const std::uint8_t* plaintext, std::size_t n, Communicator& comm,
                         std::int32_t world_peer, int tag) {
    PeerSendState& pair = outgoing(world_peer);
    const SendSequence sequence = take_sequence_number(pair, n);
    const wire::Nonce nonce = wire::make_nonce({wire::Kind::small, sequence.epoch, sequence.counter,
                                                back_from(comm, world_peer, tag, sequence.counter)});
    const wire::AssociatedData ad =
        wire::associated_data(wire::Kind::small, comm.context, pair.source, pair.destination, tag, n);
    std::memcpy(wire, nonce.data(), nonce.size());
    StatsTimer timer(comm.traffic, Stats::seal_small, n);
    if (!sequence.keys->aead.seal(wire + nonce.size(), plaintext, n, nonce.data(), ad.data(), ad.size()))
        abort_job("the crypto library failed to seal a message of " + std::to_string(n) +
                  " bytes; nothing was sent");
    return sequence.counter;
}

namespace {

// Whether the end of a synchronous send tells that all of it has arrived. MPICH's receivers answer when they have the whole message; Open
// MPI's when it is matched, while the rest still travels.
#ifdef OPEN_MPI
constexpr bool end_tells_of_arrival = false;
#else
constexpr bool end_tells_of_arrival = true;
#endif

class SealedSend final : public Operation {
  public:
    SealedSend(const SendSpec& spec, Communicator* comm, const TypeFacts& facts)
        : Operation(comm), spec_(spec), world_peer_(comm->peer(spec.peer)) {
        n_ = static_cast<std::size_t>(spec.count) * facts.size;
        first_bytes_ = first_bytes();
        plaintext_ = static_cast<const std::uint8_t*>(spec.buf);
        if (spec.mode == Mode::buffered) place_ = place_in_buffer(comm);
        if (!facts.contiguous && n_ > 0) {
            packed_ = Buffer(n_);
            plaintext_ = packed_.data();
            if (int code = pack(spec.buf, spec.count, spec.type, facts, packed_.data());
                code != MPI_SUCCESS) {
                finish(code);
                return;
            }
        } else if (spec.mode == Mode::buffered && first_bytes_ < n_) {
            packed_ = Buffer(n_);  // sealing goes on after the user's buffer is free again
            plaintext_ = packed_.data();
            std::memcpy(packed_.data(), spec.buf, n_);
        }
        if (choice_) began_ = trace_clock();
        first_bytes_ < n_ ? start_large() : start_small();
    }
    ~SealedSend() override {
        if (choice_) choice_->end();
        if (spec_.mode == Mode::buffered) release_buffer(place_, n_);
        leave_work_list(*this);
        drop_comm();
    }

    MPI_Request* sole_request() override { return pipeline_ ? nullptr : &request_; }
    void sole_request_done(int code, const MPI_Status& status) override {
        int cancelled = 0;
        if (code == MPI_SUCCESS) real.Test_cancelled(&status, &cancelled);
        outcome_.cancelled = cancelled != 0;
        if (outcome_.cancelled) {
            --outgoing(world_peer_).sent;
            skip(spec_, *comm_, world_peer_, counter_);
            tell_notices();  // a message that names it as its predecessor may be under way
        }
        first_done(code);
    }
    void cancel() override {
        if (!pipeline_ && !complete_)
            real.Cancel(&request_);  // a large message continues: MPI allows a cancel to fail
    }
    void stop_workers() override {
        if (pipeline_) pipeline_->abandon();
    }
    /// If the two ways are compared, the end of a message in one part must be noticed as soon as that of a message in several.
    bool needs_progress() const override { return pipeline_ || choice_; }
    WaitInfo wait_info() const override { return {spec_.call, spec_.peer, spec_.tag}; }

  private:
    void start_small() {
        wire_ = Buffer(wire::small_wire_bytes(n_));
        {
            SealingScope alone(spec_.call);
            counter_ = seal_small(wire_.data(), plaintext_, n_, *comm_, world_peer_, spec_.tag);
        }
        packed_ = Buffer();
        if (choice_) sealed_ = trace_clock();
        hand_over(is_timed_ ? Mode::synchronous : spec_.mode, wire::small_wire_bytes(n_));
    }

    void start_large() {
        waits_for_match_ = outgoing(world_peer_).large_sends >= eager_large_sends;
        const std::size_t wire_bytes = wire::large_first_wire_bytes(first_bytes_);
        seal_large(wire_bytes);
        if (choice_) sealed_ = trace_clock();
        hand_over(waits_for_match_ ? Mode::synchronous : spec_.mode, wire_bytes);
        if (!complete_) step();
    }

    /// Bytes of each further segment, from the table; 0 when none of its rules applies.
    std::uint64_t ruled_segment() const {
        const bool table_counts =
            !state.world.oversubscribed && state.settings.pipeline == config::Settings::Pipeline::automatic;
        return table_counts ? state.messages.segment_of(n_) : 0;
    }
    /// Whether the first part may have the longer of two lengths.
    bool has_choice() const {
        return end_tells_of_arrival && !state.fault_tolerant && comm_->short_first < comm_->threshold &&
               !state.settings.segment && !spec_.copies && engine_of_process().workers() == 0 &&
               ruled_segment() == 0;
    }
    /// Bytes of the first part; the whole length of a message that travels in one part.
    std::size_t first_bytes() {
        if (n_ <= comm_->short_first) return n_;
        if (state.settings.pipeline == config::Settings::Pipeline::off)
            return std::min<std::uint64_t>(n_, comm_->threshold);
        if (!has_choice()) return comm_->short_first;
        choice_ = &outgoing(world_peer_).first_part;
        number_ = choice_->begin();
        FirstPartTrial& trial = choice_->of_length(n_);
        // A ready or buffered send must not be made to tell of its arrival.
        const bool may_wait = spec_.mode == Mode::standard || spec_.mode == Mode::synchronous;
        const bool tries = may_wait && choice_->is_alone(number_);
        is_timed_ = tries && trial.wants_time();
        const bool takes_long = tries ? trial.takes_long() : trial.long_wins();
        if (!takes_long || looks_large(*comm_, wire::small_wire_bytes(n_))) return comm_->short_first;
        return std::min<std::uint64_t>(n_, comm_->threshold);
    }
    /// The receiver opens the last part when everything has arrived; it opens as fast as this process seals.
    void note_time() {
        if (!is_timed_ || waits_for_match_ || !choice_->is_alone(number_)) return;
        const bool is_long = first_bytes_ > comm_->short_first;
        const std::uint64_t last = pipeline_ ? pipeline_->plan().size(pipeline_->plan().count() - 1) : n_;
        const auto opening = static_cast<float>(sealed_ - began_) * static_cast<float>(last) /
                             static_cast<float>(first_bytes_);
        const float took = static_cast<float>(trace_clock() - began_) + opening;
        choice_->of_length(n_).note(is_long, took / static_cast<float>(n_));
    }

    /// Plaintext bytes of each further segment (MPISEC_PIPELINE, MPISEC_SEGMENT, MPISEC_TUNING).
    std::uint64_t segment_bytes() const {
        const config::Settings& settings = state.settings;
        const std::uint64_t rest = n_ - first_bytes_;
        const std::uint64_t whole = std::clamp(rest, shortest_whole, longest_whole);
        if (settings.pipeline == config::Settings::Pipeline::off) return whole;
        if (settings.segment) return settings.segment;
        if (const std::uint64_t ruled = ruled_segment(); ruled) return std::min(ruled, whole);
        // Where many messages are under way, the others hide what one alone could not.
        if (waits_for_match_ && cutting() == wire::Cutting::workers)
            return std::clamp(rest, shortest_whole, longest_of_many);
        return wire::automatic_segment_bytes(n_, first_bytes_, cutting());
    }
    wire::Cutting cutting() const {
        if (state.world.oversubscribed) return wire::Cutting::shared_cores;
        if (engine_of_process().workers() > 0) return wire::Cutting::workers;
        return wire::cutting_for(realm_of(world_peer_).cipher_speed);
    }

    /// Seals the header and segment 0.
    void seal_large(std::size_t wire_bytes) {
        SealingScope alone(spec_.call);
        PeerSendState& pair = outgoing(world_peer_);
        const SendSequence sequence = take_sequence_number(pair, n_);
        counter_ = sequence.counter;
        const std::uint64_t segment = segment_bytes();
        const wire::LargeHeader header{
            n_, static_cast<std::uint32_t>(first_bytes_), static_cast<std::uint32_t>(segment),
            static_cast<std::int32_t>(pair.next_channel++ % static_cast<std::uint32_t>(segment_tags()))};
        const wire::SegmentPlan plan{n_, first_bytes_, segment};
        std::uint8_t key[aead::max_key_bytes];
        keys::message_key(sequence.keys->message_secret, sequence.counter, key);
        pipeline_ = std::make_unique<SendPipeline>(key, plan, world_peer_, header.channel_tag, plaintext_,
                                                   is_timed_ || spec_.mode == Mode::synchronous);
        pipeline_->count_as(comm_->traffic);
        pipeline_->copied_by(spec_.copies);
        keys::wipe(key, sizeof key);
        pipeline_->name_message(counter_);
        if (!waits_for_match_) pipeline_->start_workers();
        announced_.emplace(Announcement{world_peer_, comm_->context, spec_.tag, sequence.counter, header});

        wire_ = Buffer(wire_bytes);
        const wire::Nonce nonce =
            wire::make_nonce({wire::Kind::large_header, sequence.epoch, sequence.counter,
                              back_from(*comm_, world_peer_, spec_.tag, sequence.counter)});
        const wire::AssociatedData ad = wire::associated_data(
            wire::Kind::large_header, comm_->context, pair.source, pair.destination, spec_.tag, wire_bytes);
        std::uint8_t plain_header[wire::large_header_bytes];
        wire::encode(header, plain_header);
        std::memcpy(wire_.data(), nonce.data(), nonce.size());
        if (!sequence.keys->aead.seal(wire_.data() + nonce.size(), plain_header, sizeof plain_header,
                                      nonce.data(), ad.data(), ad.size()) ||
            !pipeline_->seal_first(wire_.data() + wire::sealed_header_bytes))
            abort_job("the crypto library failed to seal a message of " + std::to_string(n_) +
                      " bytes; nothing was sent");
    }

    /// MPI's procedure for the mode. Buffered sends are standard ones from MPIsec's own copy (buffered.hpp).
    static auto start_of(Mode mode) {
        switch (mode) {
            case Mode::synchronous:
                return real.Issend;
            case Mode::ready:
                return real.Irsend;
            default:
                return real.Isend;
        }
    }

    void hand_over(Mode mode, std::size_t bytes) {
        note_sealed(wire_.data(), bytes);
        const int code = start_of(mode)(wire_.data(), static_cast<int>(bytes), constants.byte, spec_.peer,
                                        spec_.tag, comm_->handle, &request_);
        if (code != MPI_SUCCESS) {
            skip(spec_, *comm_, world_peer_, counter_);
            pipeline_.reset();                           // workers may have begun to read the user's buffer
            if (announced_) announced_->settled = true;  // nothing of it is there to be rejected
            announced_.reset();
            return finish(code, true);
        }
        ++outgoing(world_peer_).sent;
    }

    void first_done(int code) {
        request_ = constants.request_null;
        first_done_ = true;
        if (pipeline_ && waits_for_match_) pipeline_->limit_in_flight();
        if (pipeline_) {
            pipeline_error_ = code;
            raised_ = code != MPI_SUCCESS;
            return;
        }
        if (code == MPI_SUCCESS && !outcome_.cancelled) note_time();
        finish(code, code != MPI_SUCCESS);
    }

    void step() override {
        if (!first_done_) {
            int flag = 0;
            MPI_Status status;
            const int code = test_request(request_, flag, &status);
            if (code != MPI_SUCCESS || flag) sole_request_done(code, status);
            if (complete_) return;
        }
        if (!pipeline_) return;
        if (const int code = failures_.now_and_then([this] { return failure_of_peer(*comm_, world_peer_); });
            code != MPI_SUCCESS)
            return give_up(code);
        if (waits_for_match_ && !first_done_) return;
        // Goes on to the end after an error too: MPI and the workers still use the buffers of segments under way.
        if (pipeline_->advance(pipeline_error_) && first_done_) {
            if (pipeline_error_ == MPI_SUCCESS) note_time();
            finish(pipeline_error_, raised_);
            if (waits_for_match_) announced_->settled = true;
            announced_.reset();
            packed_ = Buffer();
        } else if (++polls_ % polls_between_looks == 0) {
            answer_rejections(world_peer_);
        }
    }

    /// The receiver has died, or the communicator was revoked. MPI may still use what it was given.
    void give_up(int code) {
        pipeline_->abandon();
        (void)pipeline_.release();
        (void)new Buffer(std::move(packed_));
        (void)new Buffer(std::move(wire_));
        announced_.reset();
        finish(code);
    }

    // For the rest of a message when it is sent as one segment. MPI libraries count bytes as int, and segments shorter than these would be
    // sent synchronously (segments.cpp).
    static constexpr std::uint64_t shortest_whole = 128 * 1024, longest_of_many = 1u << 20,
                                   longest_whole = 1u << 30;
    static constexpr unsigned polls_between_looks = 256;  // a look asks MPI once more
    // This many large messages to one rank send segments before they are received; further ones wait until their first part is matched. MPI
    // libraries tolerate few unexpected messages (MPICH 5.0 over OFI's tcp;ofi_rxm hangs at 65 from one sender), and a program that stays
    // below that number without MPIsec must stay below it here.
    static constexpr unsigned eager_large_sends = 2;

    SendSpec spec_;
    BufferPlace place_;  ///< of a buffered send
    std::int32_t world_peer_;
    std::uint64_t counter_ = 0;
    std::size_t n_ = 0;
    std::size_t first_bytes_ = 0;  ///< of the first part; n_ where it is the only one
    const std::uint8_t* plaintext_ = nullptr;
    Buffer packed_;
    Buffer wire_;
    MPI_Request request_{};
    bool first_done_ = false;
    std::unique_ptr<SendPipeline> pipeline_;
    int pipeline_error_ = MPI_SUCCESS;
    bool raised_ = false;  ///< that error is the first part's, for which MPI has run the error handler
    std::optional<LargeSend> announced_;  ///< while segments may be outstanding
    unsigned polls_ = 0;
    FailureWatch failures_;
    FirstPartChoice* choice_ = nullptr;     ///< null where there is no choice
    bool is_timed_ = false;                 ///< sent synchronously: its end tells that all has arrived
    std::uint64_t number_ = 0;              ///< of this message in choice_
    std::uint64_t began_ = 0, sealed_ = 0;  ///< ns: when sealing the first part began and ended
    /// A large message that must not send segments before its first part is matched.
    bool waits_for_match_ = false;
};

}  // namespace

std::unique_ptr<Operation> start_send(const SendSpec& spec, const Route& route) {
    if (notices_untold.load(std::memory_order_relaxed)) [[unlikely]]
        tell_notices();
    TypeFacts facts;
    if (!facts_of(spec, facts)) return std::make_unique<FailedOperation>(route.comm, MPI_ERR_TYPE);
    auto operation = std::make_unique<SealedSend>(spec, route.comm, facts);
    enlist(*operation);
    return operation;
}

int isend_plain(const SendSpec& spec, MPI_Request* request) {
    auto start = [&](auto small, auto big) {
        return call_counted(small, big, spec.buf, spec.count, spec.type, spec.peer, spec.tag, spec.comm,
                            request);
    };
    switch (spec.mode) {
        case Mode::synchronous:
            return start(MPISEC_BOTH(Issend));
        case Mode::buffered:
            return start(MPISEC_BOTH(Ibsend));
        case Mode::ready:
            return start(MPISEC_BOTH(Irsend));
        default:
            return start(MPISEC_BOTH(Isend));
    }
}

int send_plain(const SendSpec& spec) {
    auto call = [&](auto small, auto big) {
        return call_counted(small, big, spec.buf, spec.count, spec.type, spec.peer, spec.tag, spec.comm);
    };
    switch (spec.mode) {
        case Mode::synchronous:
            return call(MPISEC_BOTH(Ssend));
        case Mode::buffered:
            return call(MPISEC_BOTH(Bsend));
        case Mode::ready:
            return call(MPISEC_BOTH(Rsend));
        default:
            return call(MPISEC_BOTH(Send));
    }
}

}  // namespace mpisec::shim
