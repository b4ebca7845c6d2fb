// Receiving one message (docs/protocol.md, "What a receiver checks"):
//
//   1 route          only a plain message can match: the user's own arguments go to MPI (M1)
//   2 unexpected?    a probe may have taken the message out of MPI already (M4, unexpected_queue.hpp)
//   3 post           a bounce buffer, with the user's source and tag; its position is noted (Order)
//   4 matched        the status tells whether the message is plain (same node, M2) or sealed
//   5 verify         authenticate, check replay and order (verify.hpp)
//   6 deliver        small: opened into the user's buffer, or unpacked; large: the pipeline receives and
//                    opens the rest
#include <algorithm>
#include <cstring>

#include "shim/p2p/failures.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/rejected_messages.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/unexpected_queue.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/plain.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/pmpi/status.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/trace.hpp"

namespace mpisec::shim {

std::size_t receive_room(const Communicator& comm, std::size_t capacity, bool mixed) {
    // There is always room for the longest first message: one that does not fit the user's buffer must still be authenticated, and a large
    // one received to its end, before the receive ends in MPI_ERR_TRUNCATE. Pages that no message touches cost nothing. The few additional
    // bytes tell a message that was extended a little from one that is merely long.
    const std::size_t longest = wire::large_first_wire_bytes(comm.threshold) + 64;
    return mixed ? std::max(longest, capacity) : longest;
}

std::size_t probed_room(const Communicator& comm, std::size_t capacity, std::size_t wire_bytes) {
#ifdef OPEN_MPI
    (void)comm, (void)capacity;
    return std::min<std::size_t>(wire_bytes, INT_MAX);
#else
    return std::min(wire_bytes, receive_room(comm, capacity, false));
#endif
}

bool is_overlong(int code, const Communicator& comm, const MPI_Status& status) {
    int error_class = MPI_SUCCESS;
    real.Error_class(code, &error_class);
    return error_class == MPI_ERR_TRUNCATE && comm.has_peer(status.MPI_SOURCE) &&
           !comm.is_local(status.MPI_SOURCE);
}

int reject_overlong(Communicator& comm, const MPI_Status& status, std::uint64_t position) {
    if (!comm.is_channel) incoming(comm.peer(status.MPI_SOURCE)).unaccounted.add();
    tell_rejected(comm, {status.MPI_SOURCE, status.MPI_TAG, position}, nullptr);
    return report_violation(Violation::malformed, comm, status.MPI_SOURCE, status.MPI_TAG,
                            "longer than any of MPIsec's");
}

namespace {

class SealedReceive final : public Operation {
  public:
    SealedReceive(const ReceiveSpec& spec, Communicator* comm, const TypeFacts& facts)
        : Operation(comm), spec_(spec), facts_(facts) {
        capacity_ = static_cast<std::size_t>(spec.count) * facts.size;
        if (!facts.contiguous) spec_.type = keep_type(spec.type);
    }
    ~SealedReceive() override {
        if (posted_) comm_->unpost(*posted_);
        if (!facts_.contiguous) release_type(spec_.type);
        leave_work_list(*this);
        drop_comm();
    }

    void post(bool mixed) {
        const std::size_t room = receive_room(*comm_, capacity_, mixed);
        wire_ = Buffer(room);
        take_position();
        const int code =
            call_counted(MPISEC_BOTH(Irecv), static_cast<void*>(wire_.data()), static_cast<MPI_Count>(room),
                         constants.byte, spec_.peer, spec_.tag, comm_->handle, &request_);
        if (code != MPI_SUCCESS) finish(code, true);
    }

    void deliver(ReceivedMessage received) {
        received_ = std::move(received);
        wire_ = std::move(received_.wire);
        show(received_.source, received_.tag, received_.total);
        if (received_.error != MPI_SUCCESS) return finish(received_.error);
        received_.large ? start_pipeline() : finish(place(wire_.data() + aead::nonce_bytes, received_.total));
    }

    MPI_Request* sole_request() override { return pipeline_ ? nullptr : &request_; }
    void sole_request_done(int code, const MPI_Status& delivered) override {
        request_ = constants.request_null;
        const std::uint64_t position = posted_ ? posted_->position : 0;
        const bool any_tag = posted_ && posted_->tag == MPI_ANY_TAG;
        const MPI_Status status = posted_ ? from_named_source(posted_->source, delivered) : delivered;
        if (posted_) comm_->unpost(*posted_);
        posted_.reset();
        MPI_Count bytes = 0;
        if (code != MPI_SUCCESS && comm_->verifies && comm_->is_local(status.MPI_SOURCE))
            return matched_local(status, position, code);
        if (code != MPI_SUCCESS) {
            return is_overlong(code, *comm_, status) ? finish(reject_overlong(*comm_, status, position))
                                                     : finish(code, true);
        }
        if (was_cancelled(status)) {
            outcome_.cancelled = true;
            return finish();
        }
        real.Get_elements_x(&status, constants.byte, &bytes);
        matched(status, static_cast<std::size_t>(bytes), {position, any_tag});
    }
    void cancel() override {
        if (pipeline_ || complete_) return;
        cancel_asked_ = true;
        real.Cancel(&request_);
    }
    void stop_workers() override {
        if (pipeline_) pipeline_->abandon();
    }
    /// A message that takes a while to open is opened on arrival, while others travel, not only when the program waits for it.
    bool needs_progress() const override {
        constexpr std::uint64_t soon_opened = 4096;
        const std::uint64_t most =
            spec_.looked_at ? comm_->short_first : std::min(soon_opened, comm_->short_first);
        return pipeline_ || capacity_ > most;
    }
    WaitInfo wait_info() const override { return {spec_.call, spec_.peer, spec_.tag}; }

  private:
    void take_position() {
        posted_ = std::make_unique<PostedReceive>();
        posted_->owner = this;
        posted_->source = spec_.peer;
        posted_->tag = spec_.tag;
        comm_->post(*posted_);
    }

    void show(int source, int tag, std::uint64_t bytes) {
        outcome_.source = source;
        outcome_.tag = tag;
        outcome_.bytes = bytes;
    }

    /// Intel MPI sets the mark in the status of receives from MPI_ANY_SOURCE too that have got a message and that nobody has cancelled.
    bool was_cancelled(const MPI_Status& status) const {
        int cancelled = 0;
        if (cancel_asked_) real.Test_cancelled(&status, &cancelled);
        return cancelled != 0;
    }

    /// Step 4.
    void matched(const MPI_Status& status, std::size_t bytes, const Match& match) {
        show(status.MPI_SOURCE, status.MPI_TAG, bytes);
        if (comm_->is_local(status.MPI_SOURCE)) {
            if (comm_->verifies) return matched_local(status, match.position, MPI_SUCCESS);
            return finish(place(wire_.data(), bytes));
        }
        received_.source = status.MPI_SOURCE;
        received_.tag = status.MPI_TAG;
        auto* direct = facts_.contiguous ? static_cast<std::uint8_t*>(spec_.buf) : nullptr;
        verify(received_, *comm_, {wire_.data(), bytes}, {direct, direct ? capacity_ : 0}, match);
        outcome_.bytes = received_.total;
        if (received_.error != MPI_SUCCESS) return finish(received_.error);
        if (received_.large) return start_pipeline();
        const bool in_place = direct && received_.total <= capacity_;
        finish(in_place ? MPI_SUCCESS : place(wire_.data() + aead::nonce_bytes, received_.total));
    }

    /// For a message from this node: it is in wire_, and the record tells whether it was sent.
    void matched_local(MPI_Status status, std::uint64_t position, int code) {
        const auto room = static_cast<MPI_Count>(receive_room(*comm_, capacity_, true));
        const TypeFacts byte{1, true};
        const Judgement judged =
            judge(*comm_, position, {wire_.data(), room, constants.byte, byte}, code, status);
        show(status.MPI_SOURCE, status.MPI_TAG, wire_bytes_of(status));
        if (judged.code != MPI_SUCCESS) {
            outcome_.bytes = std::min<std::uint64_t>(outcome_.bytes, capacity_);
            return finish(judged.code, judged.raised);
        }
        finish(place(wire_.data(), outcome_.bytes));
    }

    /// Writes plaintext to the user's buffer. MPI_ERR_TRUNCATE when it is longer than the buffer (M3); then nothing is written.
    int place(const std::uint8_t* plaintext, std::size_t bytes) {
        if (bytes > capacity_) {
            outcome_.bytes = capacity_;
            return MPI_ERR_TRUNCATE;
        }
        if (!facts_.contiguous) return unpack(plaintext, bytes, spec_.buf, spec_.count, spec_.type, facts_);
        if (bytes > 0) std::memcpy(spec_.buf, plaintext, bytes);
        return MPI_SUCCESS;
    }

    /// Step 6 for a large message: its header has opened, segment 0 is in wire_.
    void start_pipeline() {
        auto* to = static_cast<std::uint8_t*>(spec_.buf);
        if (received_.total > capacity_) {
            to = nullptr;
        } else if (!facts_.contiguous) {
            packed_ = Buffer(received_.total);
            to = packed_.data();
        }
        const wire::SegmentPlan plan{received_.total, received_.header.first_bytes,
                                     received_.header.segment_bytes};
        const int world_peer = comm_->peer(received_.source);
        pipeline_ = std::make_unique<ReceivePipeline>(received_.message_key->data(), plan, world_peer,
                                                      received_.header.channel_tag, to);
        pipeline_->count_as(comm_->traffic);
        if (to == spec_.buf) pipeline_->copied_on_by(spec_.copies);
        received_.message_key.reset();
        pipeline_->name_message(received_.counter);
        pipeline_->open_first(wire_.data() + wire::sealed_header_bytes);
        step();
        enlist(*this);
    }

    /// The sender has died, or the communicator was revoked. MPI may still use what it was given.
    void give_up(int code) {
        pipeline_->abandon();
        (void)pipeline_.release();
        (void)new Buffer(std::move(packed_));
        (void)new Buffer(std::move(wire_));
        outcome_.bytes = 0;
        finish(code);
    }

    /// For a receive from MPI_ANY_SOURCE when a process that could have sent its message has died: the library would go on waiting
    /// (MPI_ERR_PROC_FAILED_PENDING). The receive ends, unless a message has arrived after all.
    void give_up_pending() {
        int flag = 0;
        MPI_Status status;
        cancel_asked_ = true;
        real.Cancel(&request_);
        if (real.Test(&request_, &flag, &status) != MPI_SUCCESS || !flag) return;
        sole_request_done(was_cancelled(status) ? failure_on(*comm_) : MPI_SUCCESS, status);
    }

    void step() override {
        if (!pipeline_) {
            int flag = 0;
            MPI_Status status;
            const int code = test_request(request_, flag, &status);
            if (is_failure(code) && request_ != constants.request_null) return give_up_pending();
            if (flag || code != MPI_SUCCESS) sole_request_done(code, status);
            return;
        }
        const int peer = comm_->peer(received_.source);
        if (const int code = failures_.now_and_then([&] { return failure_of_peer(*comm_, peer); });
            code != MPI_SUCCESS)
            return give_up(code);
        if (!pipeline_->advance()) return;
        const bool failed = pipeline_->failed();
        if (failed && state.fault_tolerant)
            if (const int code = failure_of_peer(*comm_, peer); code != MPI_SUCCESS) return give_up(code);
        pipeline_.reset();
        if (failed) {
            outcome_.bytes = 0;
            return finish(report_violation(Violation::forged, *comm_, outcome_.source, outcome_.tag,
                                           "in a segment of a large message"));
        }
        int code = MPI_SUCCESS;
        if (received_.total > capacity_) {
            outcome_.bytes = capacity_;
            code = MPI_ERR_TRUNCATE;
        } else if (packed_) {
            code = unpack(packed_.data(), received_.total, spec_.buf, spec_.count, spec_.type, facts_);
        }
        packed_ = Buffer();
        wire_ = Buffer();
        finish(code);
    }

    ReceiveSpec spec_;
    TypeFacts facts_;
    std::size_t capacity_ = 0;
    MPI_Request request_{};
    std::unique_ptr<PostedReceive> posted_;
    Buffer wire_;
    Buffer packed_;
    ReceivedMessage received_;
    std::unique_ptr<ReceivePipeline> pipeline_;
    FailureWatch failures_;
    bool cancel_asked_ = false;
};

}  // namespace

std::unique_ptr<Operation> start_receive(const ReceiveSpec& spec, const Route& route) {
    TypeFacts facts;
    if (!facts_of(spec, facts)) return std::make_unique<FailedOperation>(route.comm, MPI_ERR_TYPE);
    auto operation = std::make_unique<SealedReceive>(spec, route.comm, facts);
    if (!route.comm->unexpected.empty()) {
        ReceivedMessage received;
        if (take_unexpected(*route.comm, spec.peer, spec.tag, received)) {
            operation->deliver(std::move(received));
            return operation;
        }
    }
    operation->post(route.kind == Route::mixed);
    enlist(*operation);
    return operation;
}

std::unique_ptr<Operation> start_delivery(const ReceiveSpec& spec, Communicator& comm,
                                          ReceivedMessage received) {
    TypeFacts facts;
    if (!facts_of(spec, facts)) return std::make_unique<FailedOperation>(&comm, MPI_ERR_TYPE);
    auto operation = std::make_unique<SealedReceive>(spec, &comm, facts);
    operation->deliver(std::move(received));
    return operation;
}

int ireceive_plain(const ReceiveSpec& spec, MPI_Request* request) {
    return call_counted(MPISEC_BOTH(Irecv), spec.buf, spec.count, spec.type, spec.peer, spec.tag, spec.comm,
                        request);
}

}  // namespace mpisec::shim
