// Non-blocking and persistent sends and receives. Plain ones get the MPI library's own request; sealed ones get a handle of MPIsec's
// (requests.hpp).
#include "shim/calls/entry.hpp"
#include "shim/p2p/buffered.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/staged.hpp"
#include "shim/p2p/unsupported.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/plain.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

using Mode = SendSpec::Mode;

/// A buffered send is complete for the program at once (M9).
std::unique_ptr<Operation> started_buffered(const SendSpec& spec, const Route& route) {
    bool raised = false;
    const int code = start_buffered(spec, route, raised);
    if (raised) return std::make_unique<PlainOperation>(route.comm, code, constants.request_null);
    if (code != MPI_SUCCESS) return std::make_unique<FailedOperation>(route.comm, code);
    return std::make_unique<DoneOperation>(route.comm);
}

/// Whether the MPI library gets the user's own arguments, if this is a message of this node.
bool is_for_library(const SendSpec& spec, const Communicator* comm) {
    return spec.mode != Mode::buffered || spec.peer == MPI_PROC_NULL || spec.comm == constants.comm_null ||
           !buffers_plain_messages(comm);
}

/// A buffered send from a GPU's memory: when MPI_Bsend returns, it no longer needs the copy. Returns an MPI error code, raised.
int bsend_from_device(const SendSpec& spec) {
    const StagedSend staged(spec);
    const SendSpec& copy = staged.spec;
    return staged.error == MPI_SUCCESS
               ? Bsend(copy.buf, copy.count, copy.type, copy.peer, copy.tag, copy.comm)
               : raise_not_copied(spec, staged.error);
}

/// One start of a persistent send.
std::unique_ptr<Operation> started_from_device(const SendSpec& spec, Communicator* comm) {
    if (spec.mode != Mode::buffered) return start_staged_send(spec);
    if (const int code = bsend_from_device(spec); code != MPI_SUCCESS)
        return std::make_unique<PlainOperation>(comm, code, constants.request_null);
    return std::make_unique<DoneOperation>(comm);
}

[[gnu::cold, gnu::noinline]] int isend_from_device(const SendSpec& spec, MPI_Request* request) {
    Guard guard;
    if (spec.mode != Mode::buffered) {
        *request = give_request(start_staged_send(spec));
        return MPI_SUCCESS;
    }
    const int code = bsend_from_device(spec);
    if (code == MPI_SUCCESS)
        *request = give_request(std::make_unique<DoneOperation>(find_communicator(spec.comm)));
    return code;
}

/// Where there is no room for the message, the call itself fails.
int ibsend(const SendSpec& spec, const Route& route, MPI_Request* request) {
    bool raised = false;
    int code = MPI_SUCCESS;
    {
        Guard guard;
        code = start_buffered(spec, route, raised);
        if (code == MPI_SUCCESS) *request = give_request(std::make_unique<DoneOperation>(route.comm));
    }
    return raised ? code : raise(route.comm, code, spec.call);
}

int isend(const SendSpec& spec, MPI_Request* request) {
    if (needs_staging(spec)) [[unlikely]]
        return isend_from_device(spec, request);
    const Route route = route_send(spec.peer, spec.tag, spec.comm, spec.count);
    if (route.kind == Route::plain && is_for_library(spec, route.comm)) return isend_plain(spec, request);
    if (route.kind == Route::invalid) return raise_route(route, spec.call);
    if (spec.type == constants.datatype_null && !is_no_data(spec.count, spec.type)) [[unlikely]]
        return raise(route.comm, MPI_ERR_TYPE, spec.call);
    if (route.kind == Route::verified && is_for_library(spec, route.comm))
        return isend_verified(spec, *route.comm, request);
    if (spec.mode == Mode::buffered) return ibsend(spec, route, request);
    Guard guard;
    *request = give_request(start_send(spec, route));
    return MPI_SUCCESS;
}

int send_init(const SendSpec& spec, MPI_Request* request) {
    const Route route = route_send(spec.peer, spec.tag, spec.comm, spec.count);
    const bool staged = needs_staging(spec) && route.comm;
    if (route.kind == Route::invalid) return raise_route(route, spec.call);
    if (!route.comm || (route.kind == Route::plain && is_for_library(spec, route.comm) && !staged)) {
        auto start = [&](auto small, auto big) {
            return call_counted(small, big, spec.buf, spec.count, spec.type, spec.peer, spec.tag, spec.comm,
                                request);
        };
        switch (spec.mode) {
            case Mode::synchronous:
                return start(MPISEC_BOTH(Ssend_init));
            case Mode::buffered:
                return start(MPISEC_BOTH(Bsend_init));
            case Mode::ready:
                return start(MPISEC_BOTH(Rsend_init));
            default:
                return start(MPISEC_BOTH(Send_init));
        }
    }
    if (spec.type == constants.datatype_null && !is_no_data(spec.count, spec.type))
        return raise(route.comm, MPI_ERR_TYPE, spec.call);
    Guard guard;
    hold_for_persistent(*route.comm);
    SendSpec kept = spec;
    kept.type = keep_type(spec.type);
    auto restart = [kept, route, staged] {
        if (staged) return started_from_device(kept, route.comm);
        if (route.kind == Route::verified && is_for_library(kept, route.comm))
            return start_verified_send(kept, *route.comm);
        return kept.mode == Mode::buffered ? started_buffered(kept, route) : start_send(kept, route);
    };
    auto at_end = [kept, comm = route.comm] {
        release_type(kept.type);
        release_from_persistent(*comm);
    };
    *request = give_persistent(std::move(restart), std::move(at_end));
    return MPI_SUCCESS;
}

}  // namespace

int Isend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
          MPI_Request* request) {
    return isend({Mode::standard, buf, count, type, dest, tag, comm, "MPI_Isend"}, request);
}
int Issend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
           MPI_Request* request) {
    return isend({Mode::synchronous, buf, count, type, dest, tag, comm, "MPI_Issend"}, request);
}
int Ibsend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
           MPI_Request* request) {
    return isend({Mode::buffered, buf, count, type, dest, tag, comm, "MPI_Ibsend"}, request);
}
int Irsend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
           MPI_Request* request) {
    return isend({Mode::ready, buf, count, type, dest, tag, comm, "MPI_Irsend"}, request);
}

int Send_init(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) {
    return send_init({Mode::standard, buf, count, type, dest, tag, comm, "MPI_Send_init"}, request);
}
int Ssend_init(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
    return send_init({Mode::synchronous, buf, count, type, dest, tag, comm, "MPI_Ssend_init"}, request);
}
int Bsend_init(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
    return send_init({Mode::buffered, buf, count, type, dest, tag, comm, "MPI_Bsend_init"}, request);
}
int Rsend_init(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
    return send_init({Mode::ready, buf, count, type, dest, tag, comm, "MPI_Rsend_init"}, request);
}

int Irecv(void* buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
          MPI_Request* request) {
    const ReceiveSpec spec{buf, count, type, source, tag, comm, "MPI_Irecv"};
    if (needs_staging(spec)) [[unlikely]] {
        Guard guard;
        *request = give_request(start_staged_receive(spec, begin_receive));
        return MPI_SUCCESS;
    }
    const Route route = route_receive(source, tag, comm, count);
    if (route.kind == Route::plain) return ireceive_plain(spec, request);
    if (route.kind == Route::invalid) return raise_route(route, spec.call);
    if (type == constants.datatype_null && !is_no_data(count, type)) [[unlikely]]
        return raise(route.comm, MPI_ERR_TYPE, spec.call);
    Guard guard;
    *request = give_request(route.kind == Route::verified ? start_verified_receive(spec, *route.comm)
                                                          : start_receive(spec, route));
    return MPI_SUCCESS;
}

int Recv_init(void* buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
    const Route route = route_receive(source, tag, comm, count);
    const bool staged =
        needs_staging(ReceiveSpec{buf, count, type, source, tag, comm, "MPI_Recv_init"}) && route.comm;
    if (route.kind == Route::plain && !staged)
        return call_counted(MPISEC_BOTH(Recv_init), buf, count, type, source, tag, comm, request);
    if (route.kind == Route::invalid) return raise_route(route, "MPI_Recv_init");
    if (type == constants.datatype_null && !is_no_data(count, type))
        return raise(route.comm, MPI_ERR_TYPE, "MPI_Recv_init");
    Guard guard;
    hold_for_persistent(*route.comm);
    const ReceiveSpec kept{buf, count, keep_type(type), source, tag, comm, "MPI_Recv_init"};
    *request = give_persistent(
        [kept, route, staged] {
            if (staged) return start_staged_receive(kept, begin_receive);
            return route.kind == Route::verified ? start_verified_receive(kept, *route.comm)
                                                 : start_receive(kept, route);
        },
        [kept, comm_held = route.comm] {
            release_type(kept.type);
            release_from_persistent(*comm_held);
        });
    return MPI_SUCCESS;
}

int Isendrecv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
              void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
              MPI_Comm comm, MPI_Request* request) {
    const Route there = route_send(dest, sendtag, comm, sendcount);
    const Route back = route_receive(source, recvtag, comm, recvcount);
    if (there.kind == Route::invalid) return raise_route(there, "MPI_Isendrecv");
    if (back.kind == Route::invalid) return raise_route(back, "MPI_Isendrecv");
    Guard guard;
    Communicator* owner = there.comm ? there.comm : back.comm;
    auto receiving = begin_receive({recvbuf, recvcount, recvtype, source, recvtag, comm, "MPI_Isendrecv"});
    auto sending =
        begin_send({Mode::standard, sendbuf, sendcount, sendtype, dest, sendtag, comm, "MPI_Isendrecv"});
    auto both =
        std::make_unique<SendReceiveOperation>(owner, std::move(sending), std::move(receiving), Buffer());
    enlist(*both);
    *request = give_request(std::move(both));
    return MPI_SUCCESS;
}

int Isendrecv_replace(void* buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag, int source,
                      int recvtag, MPI_Comm comm, MPI_Request* request) {
    const Route there = route_send(dest, sendtag, comm, count);
    const Route back = route_receive(source, recvtag, comm, count);
    if (there.kind == Route::invalid) return raise_route(there, "MPI_Isendrecv_replace");
    if (back.kind == Route::invalid) return raise_route(back, "MPI_Isendrecv_replace");
    Guard guard;
    Communicator* owner = there.comm ? there.comm : back.comm;
    TypeFacts facts;
    if (!buffer_facts(buf, type, facts)) return raise(owner, MPI_ERR_TYPE, "MPI_Isendrecv_replace");
    const std::size_t n = static_cast<std::size_t>(count) * facts.size;
    Buffer copy(n + 1);
    if (int code = pack(buf, count, type, facts, copy.data()); code != MPI_SUCCESS) return code;
    auto sending = begin_send({Mode::standard, copy.data(), static_cast<MPI_Count>(n), constants.packed, dest,
                               sendtag, comm, "MPI_Isendrecv_replace"});
    auto receiving = begin_receive({buf, count, type, source, recvtag, comm, "MPI_Isendrecv_replace"});
    auto both = std::make_unique<SendReceiveOperation>(owner, std::move(sending), std::move(receiving),
                                                       std::move(copy));
    enlist(*both);
    *request = give_request(std::move(both));
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim
