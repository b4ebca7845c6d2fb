// Buffered sends (M9). A sealed message is buffered in MPIsec's own memory, never in the user's attached
// buffer, so sealing cannot overflow that one; its size still limits what may be buffered, as the standard
// says (MPI standard section 3.6).
//
// Messages to ranks of the same node go into the user's buffer, as the MPI library does it, where the library
// can say without waiting whether they have left (MPI_Buffer_iflush, MPI-4.1). Elsewhere MPIsec buffers them
// too: MPI_Buffer_detach would wait for them inside the library (M5).
#pragma once

#include <cstddef>
#include <memory>

#include "shim/p2p/operation.hpp"

namespace mpisec::shim {

/// Whether MPIsec buffers plain messages on the communicator itself.
bool buffers_plain_messages(const Communicator* comm);

/// Starts a buffered send, sealed or plain; nothing is left to be waited for. Returns an MPI error code, not
/// raised unless `raised` is set. Under the Guard.
int start_buffered(const SendSpec& spec, const Route& route, bool& raised);

/// A message's place in the buffer that serves its communicator: that one's own, else the process's.
struct BufferPlace {
    std::shared_ptr<AttachedBuffer> buffer;
    std::size_t generation = 0;
};
/// Takes room for one buffered message of n plaintext bytes from the buffer's size; false when there is none.
bool reserve_buffer(const Communicator* comm, std::size_t n);
/// Of the message that reserve_buffer() was called for last. Under the Guard, as that was.
BufferPlace place_in_buffer(const Communicator* comm);
void release_buffer(const BufferPlace& place, std::size_t n);

int Buffer_attach(void* buffer, MPI_Count size);
int Buffer_detach(void* buffer_address, int* size);
int Buffer_detach(void* buffer_address, MPI_Count* size);

#ifndef OPEN_MPI
// MPI-4.1. Inside a node a communicator's buffer is the library's.
int Buffer_flush();
int Buffer_iflush(MPI_Request* request);
int Comm_attach_buffer(MPI_Comm comm, void* buffer, MPI_Count size);
int Comm_detach_buffer(MPI_Comm comm, void* address, int* size);
int Comm_detach_buffer(MPI_Comm comm, void* address, MPI_Count* size);
int Comm_flush_buffer(MPI_Comm comm);
int Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request);
#endif

}  // namespace mpisec::shim
