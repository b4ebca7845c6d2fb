// Started communication: what a request handle of the user stands for, and what a blocking call waits for.
//
// Any call of the program that makes progress advances operations (M5). Those that need MPIsec between two MPI messages (large messages,
// detached sends) are on the work list, which every blocking call and every test advances; the others complete with their one MPI request.
#pragma once

#include <mpi.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "shim/p2p/communicator.hpp"
#include "shim/p2p/datatype.hpp"
#include "shim/p2p/route.hpp"
#include "shim/p2p/segments.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// A status as MPI will show it (M3).
struct Outcome {
    int source = MPI_ANY_SOURCE;
    int tag = MPI_ANY_TAG;
    std::uint64_t bytes = 0;
    bool cancelled = false;
    int error = MPI_SUCCESS;
    bool raised = false;  ///< the MPI library's own call already ran the error handler
};

/// MPI standard section 3.2.5; does nothing for MPI_STATUS_IGNORE. MPI_ERROR is left alone.
void write_status(const Outcome& outcome, MPI_Status* status);

/// What a call waits for, for the stall report (S8) and error messages.
struct WaitInfo {
    const char* call = "";
    int peer = MPI_ANY_SOURCE;
    int tag = MPI_ANY_TAG;
};

/// Whose error handler a request's completion calls: the window's or the file's, if it has one.
struct ErrorOwner {
    MPI_Comm comm{};
    std::optional<MPI_Win> window{};
    std::optional<MPI_File> file{};
    std::shared_ptr<const Heir> heir{};  ///< keeps `comm` when the request is gone
};
int raise_at(const ErrorOwner& owner, int code, const char* call);

class Operation {
  public:
    virtual ~Operation() {
        if (at_end) at_end();
    }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    bool complete() const { return complete_; }
    const Outcome& outcome() const { return outcome_; }
    /// The communicator whose error handler is called; null for that of MPI_COMM_SELF.
    Communicator* comm() const { return comm_; }
    /// Moves on without blocking; true when complete. Under the Guard.
    bool advance() {
        if (!complete_) step();
        return complete_;
    }
    /// The one MPI request whose completion is all that this operation needs from MPI now; null when there is
    /// no such request.
    virtual MPI_Request* sole_request() { return nullptr; }
    /// Must be called when the caller has waited for sole_request() itself.
    virtual void sole_request_done(int /*code*/, const MPI_Status& /*status*/) {}
    virtual void cancel() {}
    /// Nobody will advance it any more. Returns when no worker uses the caller's memory; MPI may go on using it.
    virtual void stop_workers() {}
    /// Whether advance() must be called so that others make progress, not only for this operation's own completion.
    virtual bool needs_progress() const { return false; }
    virtual WaitInfo wait_info() const { return {}; }
    virtual ErrorOwner error_owner() const;

    bool listed = false;  ///< on the work list
    bool urged = false;   ///< others wait for it, so it needs progress
    /// Called on destruction: gives back what a freed persistent request or a buffered copy used.
    std::function<void()> at_end;

  protected:
    explicit Operation(Communicator* comm) : comm_(comm) {
        if (comm_) hold(*comm_);
    }
    virtual void step() = 0;
    void finish(int error = MPI_SUCCESS, bool raised = false) {
        outcome_.error = error;
        outcome_.raised = raised;
        complete_ = true;
    }
    void drop_comm() {
        if (comm_) release(*comm_);
        comm_ = nullptr;
    }

    Communicator* comm_;
    Outcome outcome_;
    bool complete_ = false;
};

}  // namespace mpisec::shim

/// An operation is destroyed under the Guard (M10): it gives back buffers, types, receives and its communicator.
template <>
struct std::default_delete<mpisec::shim::Operation> {
    default_delete() = default;
    template <std::derived_from<mpisec::shim::Operation> Derived>
    default_delete(const default_delete<Derived>&) noexcept {}
    void operator()(mpisec::shim::Operation* operation) const {
        mpisec::shim::Guard guard;
        delete operation;
    }
};

namespace mpisec::shim {

class CopiesFromDevice;
class CopiesToDevice;

/// A message, as the user's arguments describe it. `peer` is a rank of `comm`; for receives it can also be MPI_ANY_SOURCE.
struct SendSpec {
    enum class Mode : std::uint8_t { standard, synchronous, buffered, ready };
    Mode mode = Mode::standard;
    const void* buf = nullptr;
    MPI_Count count = 0;
    MPI_Datatype type{};
    int peer = 0;
    int tag = 0;
    MPI_Comm comm{};
    const char* call = "";
    /// For a large message whose bytes are still being copied to `buf`; only sealed messages have it (staged.hpp).
    CopiesFromDevice* copies = nullptr;
};
struct ReceiveSpec {
    void* buf = nullptr;
    MPI_Count count = 0;
    MPI_Datatype type{};
    int peer = 0;
    int tag = 0;
    MPI_Comm comm{};
    const char* call = "";
    /// Where the verified bytes of a large message are copied on to from `buf`, if anywhere (staged.hpp).
    CopiesToDevice* copies = nullptr;
    /// The caller that posts it looks at it in every pass, so the work list need not before a large message has arrived.
    bool looked_at = false;
};

/// Starts the message. Under the Guard, which orders counters as MPI will order the messages. The result may already be complete.
std::unique_ptr<Operation> start_send(const SendSpec& spec, const Route& route);
std::unique_ptr<Operation> start_receive(const ReceiveSpec& spec, const Route& route);

/// Seals a small message behind its nonce: writes n + 28 bytes to `wire`, with the next counter of the pair with `world_peer`, which it
/// returns. Under the Guard.
std::uint64_t seal_small(std::uint8_t* wire, const std::uint8_t* plaintext, std::size_t n, Communicator& comm,
                         std::int32_t world_peer, int tag);
/// The message with this counter will not arrive: MPI refused it, or it was cancelled.
void skip(const SendSpec& spec, Communicator& comm, std::int32_t world_peer, std::uint64_t counter);
/// Bytes of a buffer that can receive any first message of MPIsec and, when plain messages may match (M2), any of them that fits the user's
/// `capacity`.
std::size_t receive_room(const Communicator& comm, std::size_t capacity, bool mixed);

/// Bytes of a buffer to receive a message that a probe found and whose envelope claims `wire_bytes`: no more than any message of MPIsec
/// has, because the envelope cannot be trusted. Open MPI gets room for all of it, because it overruns a shorter buffer.
std::size_t probed_room(const Communicator& comm, std::size_t capacity, std::size_t wire_bytes);

/// Whether MPI reports a message from another node as longer than receive_room(): no message of MPIsec is, so it was extended on the way
/// (S2).
bool is_overlong(int code, const Communicator& comm, const MPI_Status& status);
/// Reports it and returns the error code.
int reject_overlong(Communicator& comm, const MPI_Status& status, std::uint64_t position);

/// Like start_send and start_receive, for a part of a larger call: plain messages become operations too.
std::unique_ptr<Operation> begin_send(const SendSpec& spec);
std::unique_ptr<Operation> begin_receive(const ReceiveSpec& spec);

/// The plain call that the specification describes, blocking or not.
int send_plain(const SendSpec& spec);
int isend_plain(const SendSpec& spec, MPI_Request* request);
int ireceive_plain(const ReceiveSpec& spec, MPI_Request* request);

/// For a message that a probe has taken out of MPI, and that this specification receives: it only has to be handed over (M4).
std::unique_ptr<Operation> start_delivery(const ReceiveSpec& spec, Communicator& comm,
                                          ReceivedMessage received);

/// Work list and progress.
void enlist(Operation& operation);  ///< if it needs progress
/// Lets it go on without the user; finished at MPI_Finalize at the latest.
void detach(std::unique_ptr<Operation> operation);
inline bool work_outstanding() {
    return process.work_count.load(std::memory_order_relaxed) != 0;
}
/// Whether nothing needs to be moved while a call waits, and no other thread can start something (M5, M10).
inline bool nothing_else() {
    return !state.thread_multiple && !work_outstanding();
}
/// Whether a call may wait inside MPI: nothing else needs to be moved, nobody else needs the core, which MPI libraries keep while they
/// wait, and what is waited for cannot have died, which the library notices for its own messages only.
inline bool may_block() {
    return nothing_else() && !state.yield_while_waiting && !state.fault_tolerant;
}
void progress();             ///< advances what is on the work list, in turns; takes the Guard
bool has_many_operations();  ///< so that some wait several passes of progress() for their turn
void finish_detached();      ///< waits for all detached operations
void leave_work_list(Operation& operation);
/// Gives up an operation whose end nobody awaits. MPI may use its memory until it ends, so unless it ends at once it is never freed.
void abandon(std::unique_ptr<Operation> operation);

/// Blocks until the operation is complete, and keeps everything else moving (M5).
void complete_operation(Operation& operation);
/// The same; then writes the status and raises the error, unless MPI has.
int complete_and_raise(Operation& operation, MPI_Status* status);
/// Blocks until the plain request is done, and keeps everything else moving; returns its error code. `started` is what the call that made
/// it returned.
int complete_plain(int started, MPI_Request* request, MPI_Status* status);
int finish_nonblocking(int started_error, MPI_Request* request);

}  // namespace mpisec::shim
