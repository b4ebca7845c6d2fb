// Buffered sends (M9). A sealed message is buffered in MPIsec's own memory, never in the user's attached
// buffer, so sealing cannot overflow that one; its size still limits what may be buffered, as the standard
// says (MPI standard section 3.6).
//
// Messages to ranks of the same node go into the user's buffer, as the MPI library does it, where the library
// can say without waiting whether they have left (MPI_Buffer_iflush, MPI-4.1). Elsewhere MPIsec buffers them
// too: MPI_Buffer_detach would wait for them inside the library (M5).
#pragma once

#include <cstddef>

#include "shim/p2p/operation.hpp"

namespace mpisec::shim {

/// Whether MPIsec buffers plain messages itself.
bool buffers_plain_messages();

/// Starts a buffered send, sealed or plain; nothing is left to be waited for. Returns an MPI error code, not
/// raised unless `raised` is set. Under the Guard.
int start_buffered(const SendSpec& spec, const Route& route, bool& raised);

/// Takes room for one buffered message of n plaintext bytes from the attached buffer's size; false when there
/// is none.
bool reserve_buffer(std::size_t n);
void release_buffer(std::size_t n);

int Buffer_attach(void* buffer, MPI_Count size);
int Buffer_detach(void* buffer_address, int* size);
int Buffer_detach(void* buffer_address, MPI_Count* size);

}  // namespace mpisec::shim
