// Blocking sends and receives. In the usual case, one message that is one run of bytes and always travels in one part, with nothing else
// under way, they are a blocking call of MPI on a pooled buffer; everything else is a started operation plus the progress loop (M5).
#include "shim/calls/entry.hpp"
#include "shim/p2p/backoff.hpp"
#include "shim/p2p/buffered.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/notices.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
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
#include "shim/runtime/threads.hpp"
#include "shim/runtime/watchdog.hpp"
#include "shim/sockets/handed_over.hpp"

namespace mpisec::shim {
namespace {

using Mode = SendSpec::Mode;

int send_small_blocking(const SendSpec& spec, Communicator& comm, std::size_t n) {
    const std::int32_t world_peer = comm.peer(spec.peer);
    if (notices_untold.load(std::memory_order_relaxed)) [[unlikely]]
        tell_notices();
    Buffer wire(wire::small_wire_bytes(n));
    std::uint64_t counter;
    {
        SealingScope alone(spec.call);
        counter = seal_small(wire.data(), static_cast<const std::uint8_t*>(spec.buf), n, comm, world_peer,
                             spec.tag);
    }
    WaitScope waiting(spec.call, spec.peer, spec.tag);
    auto* call = spec.mode == Mode::synchronous ? real.Ssend
                 : spec.mode == Mode::ready     ? real.Rsend
                                                : real.Send;
    note_sealed(wire.data(), wire::small_wire_bytes(n));
    const int code = call(wire.data(), static_cast<int>(wire::small_wire_bytes(n)), constants.byte, spec.peer,
                          spec.tag, spec.comm);
    if (code == MPI_SUCCESS) [[likely]]
        ++outgoing(world_peer).sent;
    else
        skip(spec, comm, world_peer, counter);
    return code;
}

int send_buffered(const SendSpec& spec, const Route& route) {
    bool raised = false;
    int code;
    {
        Guard guard;
        code = start_buffered(spec, route, raised);
    }
    return raised ? code : raise(route.comm, code);
}

/// Every send for which `send` has no short way.
[[gnu::noinline]] int send_otherwise(const SendSpec& spec, const Route& route) {
    const bool null = spec.peer == MPI_PROC_NULL;
    const bool of_this_node = route.kind == Route::plain || route.kind == Route::verified;
    if (state.fault_tolerant && !null && route.comm && route.comm->has_peer(spec.peer))
        // The library would accept a short message although nobody waits for it.
        if (const int code = failure_of_peer(*route.comm, route.comm->peer(spec.peer)); code != MPI_SUCCESS)
            return raise(route.comm, code, spec.call);
    if (of_this_node && spec.mode == Mode::buffered && !null && buffers_plain_messages(route.comm))
        return send_buffered(spec, route);
    if (route.kind == Route::plain) {
        if (spec.mode == Mode::buffered || null || may_block()) return send_plain(spec);
        MPI_Request request;
        return complete_plain(isend_plain(spec, &request), &request, MPI_STATUS_IGNORE);
    }
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): only a plain or an invalid route may lack its communicator
    if (route.kind == Route::verified) return send_verified(spec, *route.comm);
    if (route.kind == Route::invalid) return raise_route(route, spec.call);
    if (spec.mode == Mode::buffered) return send_buffered(spec, route);
    std::unique_ptr<Operation> operation;
    {
        Guard guard;
        operation = start_send(spec, route);
    }
    return complete_and_raise(*operation, MPI_STATUS_IGNORE);
}

int send_from_device(const SendSpec& spec);

/// Inlined, so that the mode and the arguments stay in registers. Between ranks of one node MPIsec must not be noticeable, so that way is
/// short too.
[[gnu::always_inline]] inline int send(const SendSpec& spec) {
    if (needs_staging(spec)) [[unlikely]]
        return send_from_device(spec);
    const Route route = route_send(spec.peer, spec.tag, spec.comm, spec.count);
    if (route.kind == Route::sealed && spec.mode != Mode::buffered && may_block()) [[likely]] {
        TypeFacts facts;
        if (!facts_of(spec, facts)) [[unlikely]]
            return raise(route.comm, MPI_ERR_TYPE, spec.call);
        const std::size_t n = static_cast<std::size_t>(spec.count) * facts.size;
        if (facts.contiguous && n <= route.comm->short_first) [[likely]]
            return send_small_blocking(spec, *route.comm, n);
    } else if (route.kind == Route::plain && spec.mode == Mode::standard && may_block()) {
        return call_counted(MPISEC_BOTH(Send), spec.buf, spec.count, spec.type, spec.peer, spec.tag,
                            spec.comm);
    }
    return send_otherwise(spec, route);
}

[[gnu::cold, gnu::noinline]] int send_from_device(const SendSpec& spec) {
    const StagedSend staged(spec);
    return staged.error == MPI_SUCCESS ? send(staged.spec) : raise_not_copied(spec, staged.error);
}

/// What a blocking receive of MPI delivered beside the bytes, and its position among the communicator's receives. Small enough for two
/// registers.
struct Delivered {
    const MPI_Status& status;
    std::uint64_t position;
};

int receive_delivered(const ReceiveSpec& spec, Communicator& comm, std::size_t capacity, Buffer wire,
                      Delivered delivered, MPI_Status* status) {
    const std::size_t bytes = wire_bytes_of(delivered.status);
    ReceivedMessage received;
    received.source = delivered.status.MPI_SOURCE;
    received.tag = delivered.status.MPI_TAG;
    verify(received, comm, {wire.data(), bytes},
           {static_cast<std::uint8_t*>(spec.buf), spec.buf ? capacity : 0},
           {delivered.position, spec.tag == MPI_ANY_TAG});
    if (received.large && received.error == MPI_SUCCESS) {
        received.wire = std::move(wire);
        std::unique_ptr<Operation> operation = start_delivery(spec, comm, std::move(received));
        return complete_and_raise(*operation, status);
    }
    int code = received.error;
    if (code == MPI_SUCCESS && received.total > capacity) code = MPI_ERR_TRUNCATE;
    if (status != MPI_STATUS_IGNORE) {
        const int kept = status->MPI_ERROR;
        *status = delivered.status;
        status->MPI_ERROR = kept;
        real.Status_set_elements_x(status, constants.byte,
                                   static_cast<MPI_Count>(std::min<std::uint64_t>(received.total, capacity)));
    }
    return raise(&comm, code, spec.call);
}

/// MPI_Mprobe, which keeps the core while it waits, or a loop that does not keep it.
int wait_for_message(const ReceiveSpec& spec, MPI_Message* message, MPI_Status* matched) {
    if (may_block()) return real.Mprobe(spec.peer, spec.tag, spec.comm, message, matched);
    Backoff backoff;
    for (;;) {
        int flag = 0;
        const int code = real.Improbe(spec.peer, spec.tag, spec.comm, &flag, message, matched);
        if (code != MPI_SUCCESS || flag) return code;
        backoff.pause();
    }
}

/// The same for MPI_Recv.
int receive_bytes(const ReceiveSpec& spec, std::uint8_t* wire, std::size_t room, MPI_Status* delivered) {
    const int n = static_cast<int>(room);
    if (may_block()) return real.Recv(wire, n, constants.byte, spec.peer, spec.tag, spec.comm, delivered);
    MPI_Request request;
    const int code = real.Irecv(wire, n, constants.byte, spec.peer, spec.tag, spec.comm, &request);
    return complete_plain(code, &request, delivered);
}

/// A receive from MPI_ANY_SOURCE where both plain and sealed messages may arrive (M2): the match decides before anything is received.
int receive_mixed_blocking(const ReceiveSpec& spec, Communicator& comm, std::size_t capacity,
                           MPI_Status* status) {
    MPI_Message message;
    MPI_Status matched;
    if (int code = wait_for_message(spec, &message, &matched); code != MPI_SUCCESS) return code;
    if (comm.is_local(matched.MPI_SOURCE)) {
        if (comm.verifies) return receive_matched_verified(spec, comm, &message, status);
        if (may_block())
            return call_counted(MPISEC_BOTH(Mrecv), spec.buf, spec.count, spec.type, &message, status);
        MPI_Request request;
        const int code =
            call_counted(MPISEC_BOTH(Imrecv), spec.buf, spec.count, spec.type, &message, &request);
        return complete_plain(code, &request, status);
    }
    const std::uint64_t position = comm.next_position++;
    const std::size_t bytes = probed_room(comm, capacity, wire_bytes_of(matched));
    Buffer wire(bytes + 1);
    if (int code = real.Mrecv(wire.data(), static_cast<int>(bytes), constants.byte, &message, &matched);
        code != MPI_SUCCESS)
        return is_overlong(code, comm, matched) ? raise(&comm, reject_overlong(comm, matched, position))
                                                : code;
    return receive_delivered(spec, comm, capacity, std::move(wire), {matched, position}, status);
}

int receive_sealed_blocking(const ReceiveSpec& spec, Communicator& comm, std::size_t capacity,
                            MPI_Status* status) {
    const std::size_t room = receive_room(comm, capacity, false);
    Buffer wire(room);
    const std::uint64_t position = comm.next_position++;
    MPI_Status delivered;
    const int code = receive_bytes(spec, wire.data(), room, &delivered);
    delivered = from_named_source(spec.peer, delivered);
    if (code == MPI_SUCCESS)
        return receive_delivered(spec, comm, capacity, std::move(wire), {delivered, position}, status);
    return is_overlong(code, comm, delivered) ? raise(&comm, reject_overlong(comm, delivered, position))
                                              : code;
}

int receive(const ReceiveSpec& spec, MPI_Status* status) {
    if (needs_staging(spec)) [[unlikely]]
        return receive_staged(spec, status, receive);
    const Route route = route_receive(spec.peer, spec.tag, spec.comm, spec.count);
    if (route.kind == Route::plain) {
        // A receive from MPI_PROC_NULL waits for nothing (and MPICH 4.0 fills in its status in MPI_Recv only).
        if (may_block() || spec.peer == MPI_PROC_NULL)
            return call_counted(MPISEC_BOTH(Recv), spec.buf, spec.count, spec.type, spec.peer, spec.tag,
                                spec.comm, status);
        MPI_Request request;
        return complete_plain(ireceive_plain(spec, &request), &request, status);
    }
    if (route.kind == Route::verified) return receive_verified(spec, *route.comm, status);
    if (route.kind == Route::invalid) return raise_route(route, spec.call);
    TypeFacts facts;
    if (!facts_of(spec, facts)) return raise(route.comm, MPI_ERR_TYPE, spec.call);
    if (facts.contiguous && nothing_else() && route.comm->unexpected.empty()) {
        const std::size_t capacity = static_cast<std::size_t>(spec.count) * facts.size;
        WaitScope waiting(spec.call, spec.peer, spec.tag);
        return route.kind == Route::mixed ? receive_mixed_blocking(spec, *route.comm, capacity, status)
                                          : receive_sealed_blocking(spec, *route.comm, capacity, status);
    }
    std::unique_ptr<Operation> operation;
    {
        Guard guard;
        operation = start_receive(spec, route);
    }
    return complete_and_raise(*operation, status);
}

/// Waits for both halves of MPI_Sendrecv and similar calls.
int conclude_both(Operation& sending, Operation& receiving, MPI_Status* status) {
    complete_operation(receiving);
    complete_operation(sending);
    const int received = complete_and_raise(receiving, status);
    const int sent = complete_and_raise(sending, MPI_STATUS_IGNORE);
    return received != MPI_SUCCESS ? received : sent;
}

}  // namespace

int Send(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    return send({Mode::standard, buf, count, type, dest, tag, comm, "MPI_Send"});
}
int Ssend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    return send({Mode::synchronous, buf, count, type, dest, tag, comm, "MPI_Ssend"});
}
int Bsend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    return send({Mode::buffered, buf, count, type, dest, tag, comm, "MPI_Bsend"});
}
int Rsend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    return send({Mode::ready, buf, count, type, dest, tag, comm, "MPI_Rsend"});
}
int Recv(void* buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
         MPI_Status* status) {
    return receive({buf, count, type, source, tag, comm, "MPI_Recv"}, status);
}

int Sendrecv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
             void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
             MPI_Comm comm, MPI_Status* status) {
    const Route there = route_send(dest, sendtag, comm, sendcount);
    const Route back = route_receive(source, recvtag, comm, recvcount);
    if (there.kind == Route::invalid) return raise_route(there, "MPI_Sendrecv");
    if (back.kind == Route::invalid) return raise_route(back, "MPI_Sendrecv");
    const ReceiveSpec receive_spec{recvbuf, recvcount, recvtype, source, recvtag, comm, "MPI_Sendrecv"};
    const SendSpec send_spec{Mode::standard, sendbuf, sendcount, sendtype,
                             dest,           sendtag, comm,      "MPI_Sendrecv"};
    if (there.kind == Route::plain && back.kind == Route::plain && may_block() && sendcount <= INT_MAX &&
        recvcount <= INT_MAX && !needs_staging(send_spec) && !needs_staging(receive_spec))
        return real.Sendrecv(sendbuf, static_cast<int>(sendcount), sendtype, dest, sendtag, recvbuf,
                             static_cast<int>(recvcount), recvtype, source, recvtag, comm, status);
    std::unique_ptr<Operation> receiving, sending;
    {
        Guard guard;
        receiving = begin_receive(receive_spec);
        sending = begin_send(send_spec);
    }
    return conclude_both(*sending, *receiving, status);
}

int Sendrecv_replace(void* buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag, int source,
                     int recvtag, MPI_Comm comm, MPI_Status* status) {
    const Route there = route_send(dest, sendtag, comm, count);
    const Route back = route_receive(source, recvtag, comm, count);
    if (there.kind == Route::invalid) return raise_route(there, "MPI_Sendrecv_replace");
    if (back.kind == Route::invalid) return raise_route(back, "MPI_Sendrecv_replace");
    const ReceiveSpec receive_spec{buf, count, type, source, recvtag, comm, "MPI_Sendrecv_replace"};
    if (there.kind == Route::plain && back.kind == Route::plain && may_block() &&
        !needs_staging(receive_spec))
        return call_counted(MPISEC_BOTH(Sendrecv_replace), buf, count, type, dest, sendtag, source, recvtag,
                            comm, status);
    TypeFacts facts;
    if (!buffer_facts(buf, type, facts))
        return raise(there.comm ? there.comm : back.comm, MPI_ERR_TYPE, "MPI_Sendrecv_replace");
    const std::size_t n = static_cast<std::size_t>(count) * facts.size;
    Buffer copy(n + 1);
    if (int code = pack(buf, count, type, facts, copy.data()); code != MPI_SUCCESS) return code;
    std::unique_ptr<Operation> receiving, sending;
    {
        Guard guard;
        sending = begin_send({Mode::standard, copy.data(), static_cast<MPI_Count>(n), constants.packed, dest,
                              sendtag, comm, "MPI_Sendrecv_replace"});
        receiving = begin_receive(receive_spec);
    }
    return conclude_both(*sending, *receiving, status);
}

}  // namespace mpisec::shim
