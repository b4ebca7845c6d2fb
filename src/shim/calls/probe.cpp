// Probes (M3, M4). A plain or small sealed message that a probe shows stays in MPI: its length tells the plaintext's. A message as long as
// the first part of a large one is taken out with a matched probe, opened, and queued, where later probes and receives look first. A
// matched probe takes out every sealed message: MPICH acknowledges a synchronous send when its message is received, and can give that
// acknowledgement to another send with the same tag; the sender of the first part of a large message, for example, would then wait for as
// long as the program keeps the message of the probe.
#include <unordered_map>

#include "shim/calls/entry.hpp"
#include "shim/p2p/backoff.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/staged.hpp"
#include "shim/p2p/unexpected_queue.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/plain.hpp"
#include "shim/pmpi/status.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

/// A message handle that the program got from a matched probe and that stands for a sealed message.
struct Matched {
    Communicator* comm = nullptr;
    std::unique_ptr<PostedReceive>
        posted;                ///< from this node, with a record, still in MPI: its place among the receives
    ReceivedMessage received;  ///< else: the message, taken out of MPI
    MPI_Request empty_send{};  ///< then: the send of the empty message behind the handle
};

}  // namespace

/// Under the Guard.
struct MatchedMessages {
    std::unordered_map<MPI_Message, Matched> all;
};

namespace {

Outcome outcome_of(const ReceivedMessage& received) {
    return {received.source, received.tag, received.total, false, received.error, false};
}

/// The probe `spec` has shown the sealed message `found`, which stays in MPI.
void note_shown(const ReceiveSpec& spec, Communicator& comm, const MPI_Status& found) {
    if (spec.tag == MPI_ANY_TAG) comm.shown_first = {found.MPI_SOURCE, found.MPI_TAG, comm.next_position};
}

/// The program gets `message`, which is of this node, stays in MPI, and has its place among the receives from here on.
void keep_matched(Communicator& comm, MPI_Message message, const MPI_Status& found) {
    Matched matched;
    matched.comm = &comm;
    matched.posted = std::make_unique<PostedReceive>();
    matched.posted->source = found.MPI_SOURCE;
    matched.posted->tag = found.MPI_TAG;
    comm.post(*matched.posted);
    hold(comm);
    process.matched_messages->all[message] = std::move(matched);
}

/// Whether the message that `status` describes must be taken out of MPI to know what it is.
bool must_open(const Communicator& comm, const MPI_Status& status) {
    if (comm.is_local(status.MPI_SOURCE)) return false;
    const std::size_t bytes = wire_bytes_of(status);
    return looks_large(comm, bytes) || bytes < wire::small_overhead;
}

/// Shows a message that stays in MPI.
void show(const Communicator& comm, const MPI_Status& found, MPI_Status* status) {
    if (status == MPI_STATUS_IGNORE) return;
    const int kept = status->MPI_ERROR;
    *status = found;
    status->MPI_ERROR = kept;
    if (comm.is_local(found.MPI_SOURCE)) return;
    real.Status_set_elements_x(status, constants.byte,
                               static_cast<MPI_Count>(small_plaintext_bytes(wire_bytes_of(found))));
}

/// Makes a message handle of the MPI library that is unique while the program has it: that of an empty message to oneself, matched.
int make_message(MPI_Message* message, MPI_Request* empty_send) {
    // The request is kept until the message is received: MPICH 4.0 crashes if it is freed before.
    if (int code = real.Isend(nullptr, 0, constants.byte, 0, 0, state.private_self, empty_send);
        code != MPI_SUCCESS)
        return code;
    return real.Mprobe(0, 0, state.private_self, message, MPI_STATUS_IGNORE);
}

/// Whether MPI has nothing that this message's sender sent before it, whatever its tag.
bool is_first_of_source(const Communicator& comm, const MPI_Status& message) {
    int flag = 0;
    MPI_Status first{};
    return real.Iprobe(message.MPI_SOURCE, MPI_ANY_TAG, comm.handle, &flag, &first) == MPI_SUCCESS && flag &&
           first.MPI_TAG == message.MPI_TAG;
}

int iprobe(const ReceiveSpec& spec, Communicator& comm, int* flag, MPI_Status* status) {
    Guard guard;
    *flag = 1;
    if (!comm.unexpected.empty()) {
        if (ReceivedMessage* unexpected = find_unexpected(comm, spec.peer, spec.tag)) {
            write_status(outcome_of(*unexpected), status);
            return MPI_SUCCESS;
        }
    }
    MPI_Status found{};  // libraries leave in it whether it is of something cancelled
    int code = real.Iprobe(spec.peer, spec.tag, spec.comm, flag, &found);
    if (code != MPI_SUCCESS || !*flag) return code;
    found = from_named_source(spec.peer, found);
    if (!must_open(comm, found)) {
        show(comm, found, status);
        if (!comm.is_local(found.MPI_SOURCE)) note_shown(spec, comm, found);
        return MPI_SUCCESS;
    }
    MPI_Message message;
    const int source = found.MPI_SOURCE;
    const bool is_first = spec.tag == MPI_ANY_TAG || is_first_of_source(comm, found);
    code = real.Improbe(source, found.MPI_TAG, spec.comm, flag, &message, &found);
    if (code != MPI_SUCCESS || !*flag) return code;
    found = from_named_source(source, found);
    ReceivedMessage* received = nullptr;
    if (code = enqueue_unexpected(comm, message, found, spec.tag == MPI_ANY_TAG, received);
        code != MPI_SUCCESS)
        return code;
    received->is_first = is_first;
    write_status(outcome_of(*received), status);  // if it was not accepted, the receive raises the error
    return MPI_SUCCESS;
}

int improbe(const ReceiveSpec& spec, Communicator& comm, int* flag, MPI_Message* message,
            MPI_Status* status) {
    Guard guard;
    *flag = 1;
    Matched matched;
    matched.comm = &comm;
    if (comm.unexpected.empty() || !take_unexpected(comm, spec.peer, spec.tag, matched.received)) {
        MPI_Status found{};
        int code = real.Improbe(spec.peer, spec.tag, spec.comm, flag, message, &found);
        if (code != MPI_SUCCESS || !*flag) return code;
        found = from_named_source(spec.peer, found);
        if (comm.is_local(found.MPI_SOURCE)) {
            show(comm, found, status);
            if (comm.verifies) keep_matched(comm, *message, found);
            return MPI_SUCCESS;
        }
        ReceivedMessage* received = nullptr;
        if (code = enqueue_unexpected(comm, *message, found, spec.tag == MPI_ANY_TAG, received);
            code != MPI_SUCCESS)
            return code;
        matched.received = std::move(*received);
        comm.unexpected.remove_if([&](const ReceivedMessage& mine) { return &mine == received; });
    }
    write_status(outcome_of(matched.received), status);
    if (int code = make_message(message, &matched.empty_send); code != MPI_SUCCESS) return code;
    hold(comm);
    process.matched_messages->all[*message] = std::move(matched);
    return MPI_SUCCESS;
}

template <class Attempt>
int until_found(const ReceiveSpec& spec, Attempt attempt) {
    WaitScope waiting(spec.call, spec.peer, spec.tag);
    Backoff backoff;
    while (true) {
        int flag = 0;
        const int code = attempt(&flag);
        if (flag || code != MPI_SUCCESS) return code;
        progress();
        backoff.pause();
    }
}

/// Probes show such messages as MPI does: what is to be verified is verified when it is received.
bool stays_in_mpi(const Route& route) {
    return route.kind == Route::plain || route.kind == Route::verified;
}

ReceiveSpec spec_of(int source, int tag, MPI_Comm comm, const char* call) {
    return {nullptr, 0, constants.byte, source, tag, comm, call};
}

/// Starts the receive of a message handle of MPIsec's; null when the handle is the MPI library's own.
std::unique_ptr<Operation> start_mrecv(const ReceiveSpec& spec, MPI_Message* message) {
    Guard guard;
    auto& matched_messages = process.matched_messages->all;
    auto found = matched_messages.find(*message);
    if (found == matched_messages.end()) return nullptr;
    Matched matched = std::move(found->second);
    matched_messages.erase(found);
    MPI_Message handle = *message;
    *message = constants.message_null;
    std::unique_ptr<Operation> operation;
    if (matched.posted) {
        operation = start_verified_mrecv(spec, *matched.comm, handle, std::move(matched.posted));
    } else {
        real.Mrecv(nullptr, 0, constants.byte, &handle,
                   MPI_STATUS_IGNORE);  // the empty message behind the handle
        real.Wait(&matched.empty_send, MPI_STATUS_IGNORE);
        operation = start_delivery(spec, *matched.comm, std::move(matched.received));
    }
    release(*matched.comm);
    return operation;
}

/// The same, also for the MPI library's own handle.
std::unique_ptr<Operation> start_mrecv_any(const ReceiveSpec& spec, MPI_Message* message) {
    if (std::unique_ptr<Operation> operation = start_mrecv(spec, message)) return operation;
    MPI_Request request = constants.request_null;
    const int started = call_counted(MPISEC_BOTH(Imrecv), spec.buf, spec.count, spec.type, message, &request);
    return std::make_unique<PlainOperation>(nullptr, started, request);
}

}  // namespace

int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
    const Route route = route_receive(source, tag, comm, 0);
    if (route.kind == Route::invalid) return raise_route(route, "MPI_Probe");
    const ReceiveSpec spec = spec_of(source, tag, comm, "MPI_Probe");
    if (stays_in_mpi(route)) {
        if (may_block()) return real.Probe(source, tag, comm, status);
        return until_found(spec, [&](int* flag) { return real.Iprobe(source, tag, comm, flag, status); });
    }
    return until_found(spec, [&](int* flag) { return iprobe(spec, *route.comm, flag, status); });
}

int Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    progress();
    const Route route = route_receive(source, tag, comm, 0);
    if (route.kind == Route::invalid) return raise_route(route, "MPI_Iprobe");
    if (stays_in_mpi(route)) return real.Iprobe(source, tag, comm, flag, status);
    return iprobe(spec_of(source, tag, comm, "MPI_Iprobe"), *route.comm, flag, status);
}

int Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
    const Route route = route_receive(source, tag, comm, 0);
    if (route.kind == Route::invalid) return raise_route(route, "MPI_Mprobe");
    const ReceiveSpec spec = spec_of(source, tag, comm, "MPI_Mprobe");
    if (route.kind == Route::plain) {
        if (may_block()) return real.Mprobe(source, tag, comm, message, status);
        return until_found(spec,
                           [&](int* flag) { return real.Improbe(source, tag, comm, flag, message, status); });
    }
    return until_found(spec, [&](int* flag) { return improbe(spec, *route.comm, flag, message, status); });
}

int Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
    progress();
    const Route route = route_receive(source, tag, comm, 0);
    if (route.kind == Route::invalid) return raise_route(route, "MPI_Improbe");
    if (route.kind == Route::plain) return real.Improbe(source, tag, comm, flag, message, status);
    return improbe(spec_of(source, tag, comm, "MPI_Improbe"), *route.comm, flag, message, status);
}

int Mrecv(void* buf, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
    const ReceiveSpec spec{buf, count, type, MPI_ANY_SOURCE, MPI_ANY_TAG, constants.comm_self, "MPI_Mrecv"};
    if (needs_staging(spec)) [[unlikely]]
        return receive_staged(spec, status, [message](const ReceiveSpec& room, MPI_Status* shown) {
            return Mrecv(room.buf, room.count, room.type, message, shown);
        });
    std::unique_ptr<Operation> operation = start_mrecv(spec, message);
    if (!operation) {
        if (may_block()) return call_counted(MPISEC_BOTH(Mrecv), buf, count, type, message, status);
        MPI_Request request;
        return complete_plain(call_counted(MPISEC_BOTH(Imrecv), buf, count, type, message, &request),
                              &request, status);
    }
    complete_operation(*operation);
    const Outcome& outcome = operation->outcome();
    write_status(outcome, status);
    return outcome.raised ? outcome.error : raise(operation->comm(), outcome.error);
}

int Imrecv(void* buf, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
    Guard guard;
    const ReceiveSpec spec{buf, count, type, MPI_ANY_SOURCE, MPI_ANY_TAG, constants.comm_self, "MPI_Imrecv"};
    if (needs_staging(spec)) [[unlikely]] {
        *request = give_request(start_staged_receive(
            spec, [message](const ReceiveSpec& room) { return start_mrecv_any(room, message); }));
        return MPI_SUCCESS;
    }
    std::unique_ptr<Operation> operation = start_mrecv(spec, message);
    if (!operation) return call_counted(MPISEC_BOTH(Imrecv), buf, count, type, message, request);
    *request = give_request(std::move(operation));
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim
