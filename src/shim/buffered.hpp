// Buffered sends (M9). A sealed message is buffered in MPIsec's own memory, never in the user's attached
// buffer, so sealing can not overflow that one; its size still limits what may be buffered, as the standard
// says (MPI standard section 3.6).
#pragma once

#include <cstddef>

namespace mpisec::shim {

/// Takes room for one buffered message of n plaintext bytes from the attached buffer's size; false when there
/// is none.
bool reserve_buffer(std::size_t n);
void release_buffer(std::size_t n);

}  // namespace mpisec::shim
