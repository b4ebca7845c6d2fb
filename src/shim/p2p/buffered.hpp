// Buffered sends (M9). A sealed message is buffered in MPIsec's own memory, never in the user's attached buffer, so sealing cannot overflow
// the attached buffer; its size still limits what may be buffered, as the standard requires (MPI standard section 3.6).
//
// Messages to ranks of the same node go into the user's buffer, as in plain MPI, where the library can say without waiting whether they
// have left (MPI_Buffer_iflush, MPI-4.1). Elsewhere MPIsec buffers them too, because MPI_Buffer_detach would wait for them inside the
// library (M5).
#pragma once

#include <cstddef>
#include <memory>

#include "shim/p2p/operation.hpp"

namespace mpisec::shim {

/// Whether MPIsec itself buffers plain messages on the communicator.
bool buffers_plain_messages(const Communicator* comm);

/// Starts a buffered send, sealed or plain; the caller has nothing to wait for. Returns an MPI error code, which has been raised only if
/// `raised` is set. Under the Guard.
int start_buffered(const SendSpec& spec, const Route& route, bool& raised);

/// A message's place in the buffer that serves its communicator: the communicator's own, else its session's, else the process's.
struct BufferPlace {
    std::shared_ptr<AttachedBuffer> buffer;
    std::size_t generation = 0;
};
/// Reserves room for one buffered message of n plaintext bytes in the buffer's size; false when there is not enough.
bool reserve_buffer(const Communicator* comm, std::size_t n);
/// The place of the message for which reserve_buffer() was called last. Under the Guard, as that call was.
BufferPlace place_in_buffer(const Communicator* comm);
void release_buffer(const BufferPlace& place, std::size_t n);

int Buffer_attach(void* buffer, MPI_Count size);
int Buffer_detach(void* buffer_address, int* size);
int Buffer_detach(void* buffer_address, MPI_Count* size);

#ifndef OPEN_MPI
// MPI-4.1. Inside a node a communicator's buffer belongs to the library.
int Buffer_flush();
int Buffer_iflush(MPI_Request* request);
int Comm_attach_buffer(MPI_Comm comm, void* buffer, MPI_Count size);
int Comm_detach_buffer(MPI_Comm comm, void* address, int* size);
int Comm_detach_buffer(MPI_Comm comm, void* address, MPI_Count* size);
int Comm_flush_buffer(MPI_Comm comm);
int Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request);
int Session_attach_buffer(MPI_Session session, void* buffer, MPI_Count size);
int Session_detach_buffer(MPI_Session session, void* address, int* size);
int Session_detach_buffer(MPI_Session session, void* address, MPI_Count* size);
int Session_flush_buffer(MPI_Session session);
int Session_iflush_buffer(MPI_Session session, MPI_Request* request);
#endif

}  // namespace mpisec::shim
