// A quick check that a crypto library works, before a job trusts it.
#pragma once

#include "aead/aead.hpp"

namespace mpisec::aead {

/// Seals and opens messages of a few sizes, and checks that a changed bit is rejected and leaves zeros (S2). Takes about 100 µs. It says
/// nothing about interoperability: the test vectors in tests/unit/aead are for that.
bool self_test(const Library& library, Cipher cipher);

}  // namespace mpisec::aead
