// Sends and receives of Route::verified (same_node.hpp): MPI gets the user's own arguments, as for a plain message; the record is left
// before, and compared after.
#include <unordered_map>

#include "shim/p2p/same_node.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/plain.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/pmpi/status.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// For each handle, the record of its last send to oneself: what cancel_verified() needs. Under the Guard.
struct SentToSelf {
    std::unordered_map<MPI_Request, LeftRecord> last;
};

namespace {

// In bytes; set where measured times change (docs/adr/0011-same-node-records.md). MPICH looks for messages of the node and of the network
// by turns, so a receiver that waits for the record instead of the message gets both sooner; Open MPI seldom looks at the network, so there
// the message is not delayed.
#ifdef OPEN_MPI
constexpr std::size_t recorded_first = 0, expected_first = 0;
constexpr std::size_t at_once = 64;  // longer sends wait until the receiver has the message
#else
constexpr std::size_t recorded_first = 512;   ///< the record is left before MPI has the message
constexpr std::size_t expected_first = 4096;  ///< a receive waits a little for the record before MPI is asked
constexpr std::size_t at_once = 4096;         ///< a blocking send does not wait for its receiver
#endif

/// Leaves the record, then lets `start` hand the message to MPI.
template <class Start>
int recorded(const SendSpec& spec, const Communicator& comm, const TypeFacts& facts, Start start,
             LeftRecord* left) {
    announce(spec, comm);
    const LeftRecord record = leave_record(spec, comm, facts);
    if (left) *left = record;
    const int code = start();
    if (code != MPI_SUCCESS) [[unlikely]]
        withdraw(record);
    return code;
}

/// Announces the message, lets `start` hand it to MPI, and leaves its record, which is also stored in *left. The records of short messages
/// are left first.
template <class Start>
int announced(const SendSpec& spec, const Communicator& comm, Start start, LeftRecord* left = nullptr) {
    TypeFacts facts;
    if (!facts_of(spec, facts)) [[unlikely]]
        return start();  // MPI refuses the type
    if (static_cast<std::size_t>(spec.count) * facts.size <= recorded_first)
        return recorded(spec, comm, facts, start, left);
    announce(spec, comm);
    const int code = start();
    if (code != MPI_SUCCESS) [[unlikely]] {
        retract(spec, comm);
        return code;
    }
    const LeftRecord record = leave_record(spec, comm, facts);
    if (left) *left = record;
    return code;
}

/// MPI libraries cancel sends to oneself (MPICH does, in a communicator of one rank), and do it at once; a send to another rank goes on.
void withdraw_if_cancelled(MPI_Request request, const LeftRecord& record) {
    int complete = 0, cancelled = 0;
    MPI_Status status;
    if (real.Request_get_status(request, &complete, &status) != MPI_SUCCESS || !complete) return;
    real.Test_cancelled(&status, &cancelled);
    if (cancelled) withdraw(record);
}

/// One start of a persistent send.
class VerifiedSend final : public PlainOperation {
  public:
    VerifiedSend(Communicator* comm, int started, MPI_Request request, const LeftRecord& record)
        : PlainOperation(comm, started, request), record_(record) {}
    void cancel() override {
        if (complete_) return;
        PlainOperation::cancel();
        withdraw_if_cancelled(*sole_request(), record_);
    }

  private:
    LeftRecord record_;
};

class VerifiedReceive final : public Operation {
  public:
    VerifiedReceive(const ReceiveSpec& spec, Communicator* comm, const TypeFacts& facts)
        : Operation(comm), spec_(spec), facts_(facts) {
        if (!facts.contiguous) spec_.type = keep_type(spec.type);
    }
    ~VerifiedReceive() override {
        if (posted_) comm_->unpost(*posted_);
        if (!facts_.contiguous) release_type(spec_.type);
        leave_work_list(*this);
        drop_comm();
    }

    void post() {
        posted_ = std::make_unique<PostedReceive>();
        posted_->owner = this;
        posted_->source = spec_.peer;
        posted_->tag = spec_.tag;
        comm_->post(*posted_);
        started(ireceive_plain(spec_, &request_));
    }
    void post_matched(MPI_Message message, std::unique_ptr<PostedReceive> posted) {
        posted_ = std::move(posted);
        posted_->owner = this;
        started(call_counted(MPISEC_BOTH(Imrecv), spec_.buf, spec_.count, spec_.type, &message, &request_));
    }

    MPI_Request* sole_request() override { return &request_; }
    void sole_request_done(int code, const MPI_Status& status) override {
        request_ = constants.request_null;
        const std::uint64_t position = posted_->position;
        const int named = posted_->source;
        comm_->unpost(*posted_);
        posted_.reset();
        MPI_Status shown = from_named_source(named, status);
        int cancelled = 0;
        if (code == MPI_SUCCESS && cancel_asked_)
            real.Test_cancelled(&status, &cancelled);  // see receiving.cpp
        outcome_.cancelled = cancelled != 0;
        if (cancelled) return finish();
        const Judgement judged =
            judge(*comm_, position, {spec_.buf, spec_.count, spec_.type, facts_}, code, shown);
        outcome_.source = shown.MPI_SOURCE;
        outcome_.tag = shown.MPI_TAG;
        outcome_.bytes = wire_bytes_of(shown);
        finish(judged.code, judged.raised);
    }
    void cancel() override {
        if (complete_) return;
        cancel_asked_ = true;
        real.Cancel(&request_);
    }
    WaitInfo wait_info() const override { return {spec_.call, spec_.peer, spec_.tag}; }

  private:
    void started(int code) {
        if (code == MPI_SUCCESS) return;
        comm_->unpost(*posted_);
        posted_.reset();
        finish(code, true);
    }
    void step() override {
        int flag = 0;
        MPI_Status status;
        const int code = real.Test(&request_, &flag, &status);
        if (flag || code != MPI_SUCCESS) sole_request_done(code, status);
    }

    ReceiveSpec spec_;
    TypeFacts facts_;
    std::unique_ptr<PostedReceive> posted_;
    MPI_Request request_{};
    bool cancel_asked_ = false;
};

/// MPI's blocking receive, or one that keeps other operations moving.
int receive_plain(const ReceiveSpec& spec, MPI_Status* status) {
    if (may_block())
        return call_counted(MPISEC_BOTH(Recv), spec.buf, spec.count, spec.type, spec.peer, spec.tag,
                            spec.comm, status);
    MPI_Request request;
    return complete_plain(ireceive_plain(spec, &request), &request, status);
}

}  // namespace

int send_verified(const SendSpec& spec, Communicator& comm) {
    if (spec.mode == SendSpec::Mode::buffered) {
        int code = MPI_SUCCESS;
        {
            Guard guard;
            // MPICH 5 returns MPI_SUCCESS where a handler of the program's has heard that there is no room.
            ErrorsReturned returned(spec.comm);
            code = announced(spec, comm, [&] { return send_plain(spec); });  // MPI takes a copy
        }
        return raise(&comm, code, spec.call);
    }
    TypeFacts facts;
    const bool known = facts_of(spec, facts);
    const std::size_t n = static_cast<std::size_t>(spec.count) * facts.size;
    const bool waits = spec.mode == SendSpec::Mode::synchronous && n > recorded_first;
    if (may_block() && known && n <= at_once && !waits) [[likely]]
        return announced(spec, comm, [&] { return send_plain(spec); });
    MPI_Request request;
    int code = MPI_SUCCESS;
    {
        Guard guard;
        code = announced(spec, comm, [&] { return isend_plain(spec, &request); });
    }
    return complete_plain(code, &request, MPI_STATUS_IGNORE);
}

int isend_verified(const SendSpec& spec, Communicator& comm, MPI_Request* request) {
    Guard guard;
    LeftRecord record{};
    const int code = announced(
        spec, comm, [&] { return isend_plain(spec, request); }, &record);
    if (code == MPI_SUCCESS && comm.peer(spec.peer) == state.world.rank)
        process.sent_to_self->last[*request] = record;
    return code;
}

int cancel_verified(MPI_Request* request) {
    Guard guard;
    const int code = real.Cancel(request);
    const auto& last = process.sent_to_self->last;
    auto found = last.find(*request);
    if (code == MPI_SUCCESS && found != last.end()) withdraw_if_cancelled(*request, found->second);
    return code;
}

std::unique_ptr<Operation> start_verified_send(const SendSpec& spec, Communicator& comm) {
    MPI_Request request = constants.request_null;
    LeftRecord record{};
    const int code = announced(
        spec, comm, [&] { return isend_plain(spec, &request); }, &record);
    return std::make_unique<VerifiedSend>(&comm, code, request, record);
}

int receive_verified(const ReceiveSpec& spec, Communicator& comm, MPI_Status* status) {
    TypeFacts facts;
    if (!facts_of(spec, facts)) [[unlikely]]
        return receive_plain(spec, status);  // MPI refuses the type
    if (nothing_else()) [[likely]] {
        const std::uint64_t position = comm.next_position++;
        MPI_Status own;
        MPI_Status& shown = status == MPI_STATUS_IGNORE ? own : *status;
        const std::size_t capacity = static_cast<std::size_t>(spec.count) * facts.size;
        if (capacity <= expected_first && may_block() && spec.peer != MPI_ANY_SOURCE)
            expect_record(comm, spec.peer);
        const int code = receive_plain(spec, &shown);
        shown = from_named_source(spec.peer, shown);
        const Judgement judged = judge(comm, position, {spec.buf, spec.count, spec.type, facts}, code, shown);
        return judged.raised ? judged.code : raise(&comm, judged.code);
    }
    std::unique_ptr<Operation> operation;
    {
        Guard guard;
        operation = start_verified_receive(spec, comm);
    }
    return complete_and_raise(*operation, status);
}

int receive_matched_verified(const ReceiveSpec& spec, Communicator& comm, MPI_Message* message,
                             MPI_Status* status) {
    TypeFacts facts;
    if (!facts_of(spec, facts))
        return call_counted(MPISEC_BOTH(Mrecv), spec.buf, spec.count, spec.type, message, status);
    const std::uint64_t position = comm.next_position++;
    MPI_Status own;
    MPI_Status& shown = status == MPI_STATUS_IGNORE ? own : *status;
    int code = MPI_SUCCESS;
    if (may_block()) {
        code = call_counted(MPISEC_BOTH(Mrecv), spec.buf, spec.count, spec.type, message, &shown);
    } else {
        MPI_Request request;
        code = complete_plain(
            call_counted(MPISEC_BOTH(Imrecv), spec.buf, spec.count, spec.type, message, &request), &request,
            &shown);
    }
    const Judgement judged = judge(comm, position, {spec.buf, spec.count, spec.type, facts}, code, shown);
    return judged.raised ? judged.code : raise(&comm, judged.code);
}

std::unique_ptr<Operation> start_verified_receive(const ReceiveSpec& spec, Communicator& comm) {
    TypeFacts facts;
    if (!facts_of(spec, facts)) return std::make_unique<FailedOperation>(&comm, MPI_ERR_TYPE);
    auto operation = std::make_unique<VerifiedReceive>(spec, &comm, facts);
    operation->post();
    return operation;
}

std::unique_ptr<Operation> start_verified_mrecv(const ReceiveSpec& spec, Communicator& comm,
                                                MPI_Message message, std::unique_ptr<PostedReceive> posted) {
    TypeFacts facts;
    if (!facts_of(spec, facts)) {
        comm.unpost(*posted);
        return std::make_unique<FailedOperation>(&comm, MPI_ERR_TYPE);
    }
    auto operation = std::make_unique<VerifiedReceive>(spec, &comm, facts);
    operation->post_matched(message, std::move(posted));
    return operation;
}

}  // namespace mpisec::shim
