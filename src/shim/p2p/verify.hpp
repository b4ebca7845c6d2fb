// A sealed message that MPI has delivered: authenticated, checked for replay and order, perhaps not yet opened completely.
//
//   1 the nonce names kind, epoch and counter             (nothing is believed yet)
//   2 the pair's key of that epoch opens the message or, of a large one, its header, bound to communicator,
//     ranks, tag and length (S2)
//   3 the counter must be new (S3)
//   4 the counter must be in the order in which MPI matched the receives (M4)
//   5 no earlier message that must have arrived may be missing (S2)
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "aead/aead.hpp"
#include "keys/secret.hpp"
#include "shim/runtime/pool.hpp"
#include "wire/frame.hpp"

namespace mpisec::shim {

struct Communicator;

struct ReceivedMessage {
    int source = 0;  ///< rank in the communicator
    int tag = 0;
    int error = MPI_SUCCESS;  ///< an MPI error code when the message was not accepted
    bool large = false;
    std::uint64_t counter = 0;  ///< of the pair: grows in the order of sending
    bool is_first = false;      ///< nothing that its sender sent before, whatever its tag, was left in MPI
    std::uint64_t total = 0;    ///< plaintext bytes
    wire::LargeHeader header{};
    std::optional<keys::Secret> message_key;  ///< of a large message
    Buffer wire;  ///< as received; a small unexpected message is opened in place behind its nonce
};

/// Whether MPI's message is as long as the first parts of large messages are. A small message may be as long, too.
bool looks_large(const Communicator& comm, std::size_t wire_bytes);
/// Plaintext bytes of a small message of this wire length; 0 for one too short to be sealed.
std::size_t small_plaintext_bytes(std::size_t wire_bytes);

/// The receive that the message was matched to.
struct Match {
    std::uint64_t position;
    /// It asked for MPI_ANY_TAG: nothing that the sender sent before, whatever its tag, may be left.
    bool any_tag;
};

/// Steps 1 to 5 for the message in `wire`. A small message is opened to `to` when that has room for it, else in place behind its nonce. On
/// failure the violation has been reported and `error` is set.
void verify(ReceivedMessage& received, Communicator& comm, std::span<std::uint8_t> wire,
            std::span<std::uint8_t> to, const Match& match);

}  // namespace mpisec::shim
