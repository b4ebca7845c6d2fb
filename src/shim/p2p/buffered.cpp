#include "shim/p2p/buffered.hpp"

#include <mpi.h>

#include "shim/p2p/datatype.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/plain.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/waits.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

constexpr AttachedBuffer& buffer_of_program = process.attached_buffer;  ///< under the Guard

std::size_t cost(std::size_t n) {
    return n + MPI_BSEND_OVERHEAD;
}

bool take(std::size_t n) {
    Guard guard;
    const auto& [attached, used, automatic] = buffer_of_program;
    if (!automatic && used + cost(n) > attached) return false;
    buffer_of_program.used += cost(n);
    return true;
}

/// Until every buffered message has left (MPI standard section 3.6.1).
void wait_until_unused() {
    WaitScope waiting("MPI_Buffer_detach", MPI_ANY_SOURCE, MPI_ANY_TAG);
    SpinThenYield backoff;
    while (true) {
        {
            Guard guard;
            if (buffer_of_program.used == 0) return;
        }
        progress();
        backoff.pause();
    }
}

/// A plain message in MPIsec's memory, on its way. Its copy and its part of the buffer last as long.
struct BufferedCopy {
    BufferedCopy(Buffer packed, std::size_t n) : bytes(std::move(packed)), size(n) {}
    ~BufferedCopy() { release_buffer(size); }
    BufferedCopy(const BufferedCopy&) = delete;
    BufferedCopy& operator=(const BufferedCopy&) = delete;
    Buffer bytes;
    std::size_t size;
};

int start_copy(const SendSpec& spec, const Route& route, const TypeFacts& facts, bool& raised) {
    const std::size_t n = static_cast<std::size_t>(spec.count) * facts.size;
    auto copy = std::make_shared<BufferedCopy>(Buffer(n + 1), n);
    if (int code = pack(spec.buf, spec.count, spec.type, facts, copy->bytes.data()); code != MPI_SUCCESS)
        return code;
    const SendSpec own{SendSpec::Mode::standard,
                       copy->bytes.data(),
                       static_cast<MPI_Count>(n),
                       constants.packed,
                       spec.peer,
                       spec.tag,
                       spec.comm,
                       spec.call};
    MPI_Request request;
    const int code = route.kind == Route::verified ? isend_verified(own, *route.comm, &request)
                                                   : isend_plain(own, &request);
    raised = code != MPI_SUCCESS;
    if (raised) return code;
    auto sending = std::make_unique<PlainOperation>(route.comm, code, request);
    sending->at_end = [copy] {};
    detach(std::move(sending));
    return code;
}

/// The library can say whether its buffered messages have left: then that is waited for here.
int flush_library_buffer() {
#ifndef OPEN_MPI
    MPI_Request request;
    if (real.Buffer_iflush) return finish_nonblocking(real.Buffer_iflush(&request), &request);
#endif
    return MPI_SUCCESS;
}

int detached_buffer(int code) {
    if (code != MPI_SUCCESS) return code;
    Guard guard;
    buffer_of_program.attached = 0;
    buffer_of_program.automatic = false;
    return code;
}

}  // namespace

bool reserve_buffer(std::size_t n) {
    if (take(n)) return true;
    // Room that delivered messages have given back is found by looking at them.
    for (int round = 0; round < 100; ++round) {
        progress();
        if (take(n)) return true;
    }
    return false;
}

void release_buffer(std::size_t n) {
    buffer_of_program.used -= cost(n);
}

bool buffers_plain_messages() {
#ifdef OPEN_MPI
    return true;
#else
    return !real.Buffer_iflush;
#endif
}

int start_buffered(const SendSpec& spec, const Route& route, bool& raised) {
    TypeFacts facts;
    if (spec.count < 0) return MPI_ERR_COUNT;
    if (!type_facts(spec.type, facts)) return MPI_ERR_TYPE;
    if (!reserve_buffer(static_cast<std::size_t>(spec.count) * facts.size)) return MPI_ERR_BUFFER;
    if (route.kind != Route::sealed) return start_copy(spec, route, facts, raised);
    detach(start_send(spec, route));
    return MPI_SUCCESS;
}

int Buffer_attach(void* buffer, MPI_Count size) {
    const int code = call_counted(MPISEC_BOTH(Buffer_attach), buffer, size);
    if (code != MPI_SUCCESS) return code;
    Guard guard;
    buffer_of_program.attached = static_cast<std::size_t>(size);
#ifdef MPI_BUFFER_AUTOMATIC
    buffer_of_program.automatic = buffer == MPI_BUFFER_AUTOMATIC;
#endif
    return code;
}

// Detaching waits until every buffered message has been delivered, sealed ones too.
int Buffer_detach(void* buffer_address, int* size) {
    wait_until_unused();
    if (int code = flush_library_buffer(); code != MPI_SUCCESS) return code;
    return detached_buffer(real.Buffer_detach(buffer_address, size));
}

int Buffer_detach(void* buffer_address, MPI_Count* size) {
    wait_until_unused();
    if (int code = flush_library_buffer(); code != MPI_SUCCESS) return code;
#ifdef OPEN_MPI
    int small = 0;
    const int code = real.Buffer_detach(buffer_address, &small);
    *size = small;
#else
    const int code = real.Buffer_detach_c(buffer_address, size);
#endif
    return detached_buffer(code);
}

#ifndef OPEN_MPI

// Buffers of a communicator inside a node, and of a session: the library's alone. Their messages leave when
// others receive them.

int Comm_flush_buffer(MPI_Comm comm) {
    MPI_Request request;
    return finish_nonblocking(real.Comm_iflush_buffer(comm, &request), &request);
}

int Comm_detach_buffer(MPI_Comm comm, void* address, int* size) {
    const int code = Comm_flush_buffer(comm);
    return code == MPI_SUCCESS ? real.Comm_detach_buffer(comm, address, size) : code;
}

int Comm_detach_buffer(MPI_Comm comm, void* address, MPI_Count* size) {
    const int code = Comm_flush_buffer(comm);
    return code == MPI_SUCCESS ? real.Comm_detach_buffer_c(comm, address, size) : code;
}

int Session_flush_buffer(MPI_Session session) {
    MPI_Request request;
    return finish_nonblocking(real.Session_iflush_buffer(session, &request), &request);
}

int Session_detach_buffer(MPI_Session session, void* address, int* size) {
    const int code = Session_flush_buffer(session);
    return code == MPI_SUCCESS ? real.Session_detach_buffer(session, address, size) : code;
}

int Session_detach_buffer(MPI_Session session, void* address, MPI_Count* size) {
    const int code = Session_flush_buffer(session);
    return code == MPI_SUCCESS ? real.Session_detach_buffer_c(session, address, size) : code;
}

#endif

}  // namespace mpisec::shim
