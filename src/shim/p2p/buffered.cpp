#include "shim/p2p/buffered.hpp"

#include <mpi.h>

#include <algorithm>
#include <climits>

#include "shim/p2p/backoff.hpp"
#include "shim/p2p/datatype.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/plain.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/waits.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

// Under the Guard.
constexpr AttachedBuffer& buffer_of_program = process.attached_buffer;
constexpr AttachedBuffer& buffers_of_sessions = process.session_buffers;

std::size_t cost(std::size_t n) {
    return n + MPI_BSEND_OVERHEAD;
}

/// The buffer that serves it, where that is not its own.
AttachedBuffer& common_buffer(const Communicator* comm) {
    const bool session = buffers_of_sessions.attached > 0 || buffers_of_sessions.automatic > 0;
    return comm && comm->of_session && session ? buffers_of_sessions : buffer_of_program;
}

AttachedBuffer& buffer_of(const Communicator* comm) {
    return comm && comm->buffer ? *comm->buffer : common_buffer(comm);
}

/// A place for the next message in a buffer that is never freed.
BufferPlace place_in(AttachedBuffer& buffer) {
    return {std::shared_ptr<AttachedBuffer>(std::shared_ptr<void>(), &buffer), buffer.generation};
}

bool take(const Communicator* comm, std::size_t n) {
    Guard guard;
    AttachedBuffer& buffer = buffer_of(comm);
    if (!buffer.automatic && buffer.used + cost(n) > buffer.attached) return false;
    buffer.used += cost(n);
    ++buffer.messages[buffer.generation % 2];
    return true;
}

/// Waits until every message in the buffer has left (MPI standard section 3.6.1).
void wait_until_unused(const char* call, const AttachedBuffer& buffer) {
    WaitScope waiting(call, MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    while (true) {
        {
            Guard guard;
            if (buffer.used == 0) return;
        }
        progress();
        backoff.pause();
    }
}

/// A plain message that MPIsec has copied to its own memory and is sending. The copy and its share of the buffer last until it is sent.
struct BufferedCopy {
    BufferedCopy(Buffer packed, std::size_t n, BufferPlace taken)
        : bytes(std::move(packed)), size(n), place(std::move(taken)) {}
    ~BufferedCopy() { release_buffer(place, size); }
    BufferedCopy(const BufferedCopy&) = delete;
    BufferedCopy& operator=(const BufferedCopy&) = delete;
    Buffer bytes;
    std::size_t size;
    BufferPlace place;
};

int start_copy(const SendSpec& spec, const Route& route, const TypeFacts& facts, bool& raised) {
    const std::size_t n = static_cast<std::size_t>(spec.count) * facts.size;
    auto copy = std::make_shared<BufferedCopy>(Buffer(n + 1), n, place_in_buffer(route.comm));
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

/// Waits until the library's own buffered messages have left, where the library can say so.
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
    buffer_of_program.automatic = 0;
    return code;
}

}  // namespace

bool reserve_buffer(const Communicator* comm, std::size_t n) {
    if (take(comm, n)) return true;
    // Calling progress() completes delivered messages, which then give their room back.
    for (int round = 0; round < 100; ++round) {
        progress();
        if (take(comm, n)) return true;
    }
    return false;
}

BufferPlace place_in_buffer(const Communicator* comm) {
    if (comm && comm->buffer) return {comm->buffer, comm->buffer->generation};
    return place_in(common_buffer(comm));
}

void release_buffer(const BufferPlace& place, std::size_t n) {
    place.buffer->used -= cost(n);
    --place.buffer->messages[place.generation % 2];
}

bool buffers_plain_messages(const Communicator* comm) {
    if (comm && comm->buffer) return true;
#ifdef OPEN_MPI
    return true;
#else
    return !real.Buffer_iflush;
#endif
}

int start_buffered(const SendSpec& spec, const Route& route, bool& raised) {
    TypeFacts facts;
    if (spec.count < 0) return MPI_ERR_COUNT;
    if (!facts_of(spec, facts)) return MPI_ERR_TYPE;
    const std::size_t bytes = static_cast<std::size_t>(spec.count) * facts.size;
    if (!reserve_buffer(route.comm, bytes)) return MPI_ERR_BUFFER;
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

// Detaching waits until every buffered message, sealed ones included, has been delivered.
int Buffer_detach(void* buffer_address, int* size) {
    wait_until_unused("MPI_Buffer_detach", buffer_of_program);
    if (int code = flush_library_buffer(); code != MPI_SUCCESS) return code;
    return detached_buffer(real.Buffer_detach(buffer_address, size));
}

int Buffer_detach(void* buffer_address, MPI_Count* size) {
    wait_until_unused("MPI_Buffer_detach", buffer_of_program);
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

namespace {

/// Completes when everything that was in the buffer when the flush began has left: MPIsec's messages and the library's.
class Flush final : public Operation {
  public:
    Flush(const char* call, Communicator* comm, BufferPlace place, MPI_Request of_library)
        : Operation(comm), call_(call), place_(std::move(place)), of_library_(of_library) {}
    ~Flush() override {
        leave_work_list(*this);
        drop_comm();
    }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return {call_, MPI_ANY_SOURCE, MPI_ANY_TAG}; }

  private:
    void step() override {
        int done = 1;
        if (of_library_ != constants.request_null)
            if (int code = real.Test(&of_library_, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
                return finish(code, true);
        AttachedBuffer& buffer = *place_.buffer;
        // A new generation begins only when all messages of the one before the current one have left; so each flush waits for at most two.
        if (!begun_ && buffer.messages[(buffer.generation + 1) % 2] == 0) {
            begun_ = true;
            place_.generation = buffer.generation++;
        }
        const bool later = buffer.generation > place_.generation + 1;
        if (done && begun_ && (later || buffer.messages[place_.generation % 2] == 0)) finish();
    }

    const char* call_;
    BufferPlace place_;
    MPI_Request of_library_;
    bool begun_ = false;
};

/// Of the communicator's own buffer.
std::unique_ptr<Operation> start_flush(const char* call, Communicator& comm) {
    Guard guard;
    auto flush = std::make_unique<Flush>(call, &comm, place_in_buffer(&comm), constants.request_null);
    enlist(*flush);
    return flush;
}

/// Of a buffer whose plain messages are the library's.
std::unique_ptr<Operation> start_flush(const char* call, AttachedBuffer& buffer, MPI_Request of_library) {
    Guard guard;
    auto flush = std::make_unique<Flush>(call, nullptr, place_in(buffer), of_library);
    enlist(*flush);
    return flush;
}

int wait_for(std::unique_ptr<Operation> flush) {
    complete_operation(*flush);
    return flush->outcome().error;
}

/// Null for a communicator whose buffer belongs to the library.
Communicator* with_own_buffer(MPI_Comm comm) {
    Communicator* known = find_communicator(comm);
    return known && known->crosses ? known : nullptr;
}

template <class Size, class Detach>
int detach_from(MPI_Comm comm, void* address, Size* size, Detach of_library) {
    constexpr const char* call = "MPI_Comm_detach_buffer";
    Communicator* own = with_own_buffer(comm);
    if (!own) {
        const int code = Comm_flush_buffer(comm);
        return code == MPI_SUCCESS ? of_library(comm, address, size) : code;
    }
    if (!own->buffer) return raise(own, MPI_ERR_BUFFER, call);
    wait_until_unused(call, *own->buffer);
    Guard guard;
    *static_cast<void**>(address) = own->buffer->address;
    *size = static_cast<Size>(own->buffer->attached);
    own->buffer.reset();
    return MPI_SUCCESS;
}

}  // namespace

int Buffer_iflush(MPI_Request* request) {
    MPI_Request of_library = constants.request_null;
    if (int code = real.Buffer_iflush(&of_library); code != MPI_SUCCESS) return code;
    Guard guard;
    *request = give_request(start_flush("MPI_Buffer_iflush", buffer_of_program, of_library));
    return MPI_SUCCESS;
}

int Buffer_flush() {
    MPI_Request of_library = constants.request_null;
    if (int code = real.Buffer_iflush(&of_library); code != MPI_SUCCESS) return code;
    return wait_for(start_flush("MPI_Buffer_flush", buffer_of_program, of_library));
}

int Comm_attach_buffer(MPI_Comm comm, void* buffer, MPI_Count size) {
    Communicator* own = with_own_buffer(comm);
    if (!own && size > INT_MAX) return real.Comm_attach_buffer_c(comm, buffer, size);
    if (!own) return real.Comm_attach_buffer(comm, buffer, static_cast<int>(size));
    if (size < 0) return raise(own, MPI_ERR_ARG, "MPI_Comm_attach_buffer");
    if (own->buffer)
        return raise(own, MPI_ERR_OTHER, "MPI_Comm_attach_buffer");  // the class that MPICH gives
    auto attached = std::make_shared<AttachedBuffer>();
    attached->attached = static_cast<std::size_t>(size);
    attached->automatic = buffer == MPI_BUFFER_AUTOMATIC;
    attached->address = buffer;
    Guard guard;
    own->buffer = std::move(attached);
    return MPI_SUCCESS;
}

int Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request) {
    Communicator* own = with_own_buffer(comm);
    if (!own) return real.Comm_iflush_buffer(comm, request);
    Guard guard;
    *request = give_request(start_flush("MPI_Comm_iflush_buffer", *own));
    return MPI_SUCCESS;
}

int Comm_flush_buffer(MPI_Comm comm) {
    if (Communicator* own = with_own_buffer(comm))
        return wait_for(start_flush("MPI_Comm_flush_buffer", *own));
    MPI_Request request;
    return finish_nonblocking(real.Comm_iflush_buffer(comm, &request), &request);
}

int Comm_detach_buffer(MPI_Comm comm, void* address, int* size) {
    return detach_from(comm, address, size, real.Comm_detach_buffer);
}

int Comm_detach_buffer(MPI_Comm comm, void* address, MPI_Count* size) {
    return detach_from(comm, address, size, real.Comm_detach_buffer_c);
}

namespace {

template <class Size, class Detach>
int detach_from_session(MPI_Session session, void* address, Size* size, Detach of_library) {
    if (const int code = Session_flush_buffer(session); code != MPI_SUCCESS) return code;
    if (const int code = of_library(session, address, size); code != MPI_SUCCESS) return code;
    Guard guard;
    if (*static_cast<void**>(address) == MPI_BUFFER_AUTOMATIC)
        --buffers_of_sessions.automatic;
    else
        buffers_of_sessions.attached -=
            std::min(buffers_of_sessions.attached, static_cast<std::size_t>(*size));
    return MPI_SUCCESS;
}

}  // namespace

int Session_attach_buffer(MPI_Session session, void* buffer, MPI_Count size) {
    const int code = size > INT_MAX ? real.Session_attach_buffer_c(session, buffer, size)
                                    : real.Session_attach_buffer(session, buffer, static_cast<int>(size));
    if (code != MPI_SUCCESS) return code;
    Guard guard;
    if (buffer == MPI_BUFFER_AUTOMATIC)
        ++buffers_of_sessions.automatic;
    else
        buffers_of_sessions.attached += static_cast<std::size_t>(size);
    return code;
}

int Session_iflush_buffer(MPI_Session session, MPI_Request* request) {
    MPI_Request of_library = constants.request_null;
    if (int code = real.Session_iflush_buffer(session, &of_library); code != MPI_SUCCESS) return code;
    Guard guard;
    *request = give_request(start_flush("MPI_Session_iflush_buffer", buffers_of_sessions, of_library));
    return MPI_SUCCESS;
}

int Session_flush_buffer(MPI_Session session) {
    MPI_Request of_library = constants.request_null;
    if (int code = real.Session_iflush_buffer(session, &of_library); code != MPI_SUCCESS) return code;
    return wait_for(start_flush("MPI_Session_flush_buffer", buffers_of_sessions, of_library));
}

int Session_detach_buffer(MPI_Session session, void* address, int* size) {
    return detach_from_session(session, address, size, real.Session_detach_buffer);
}

int Session_detach_buffer(MPI_Session session, void* address, MPI_Count* size) {
    return detach_from_session(session, address, size, real.Session_detach_buffer_c);
}

#endif

}  // namespace mpisec::shim
