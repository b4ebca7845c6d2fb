// A quick check that a crypto library does its work before a job trusts it.
#pragma once

#include "aead/aead.hpp"

namespace mpisec::aead {

/// Seals and opens messages of a few sizes, and checks that a changed bit is rejected and leaves zeros (S2).
/// About 100 µs. Says nothing about interoperability: that is what the test vectors in tests/unit/aead are for.
bool self_test(const Library& library, Cipher cipher);

}  // namespace mpisec::aead
