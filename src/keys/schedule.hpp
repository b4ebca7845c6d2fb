// The key schedule (docs/protocol.md, "Key schedule"): everything is derived from the job secret with HKDF-SHA256 (RFC 5869) and a label.
#pragma once

#include <cstdint>
#include <span>

#include "keys/secret.hpp"

namespace mpisec::keys {

/// What one sender and one receiver share in one epoch.
struct PairSecret {
    Secret aead;     ///< its first key_bytes key the pair's AEAD
    Secret message;  ///< derives the keys of large messages
};

/// The secret of the messages that world rank `source` sends to world rank `destination` in `epoch`.
PairSecret pair_secret(const Secret& job_secret, std::int32_t source, std::int32_t destination,
                       std::uint32_t epoch);

/// The key of the large message that carried `counter`: 32 bytes to `out`, of which the cipher takes the
/// first key_bytes.
void message_key(const Secret& message_secret, std::uint64_t counter, std::uint8_t* out);

/// What the members of a communicator share for its collectives in one epoch.
struct CollectiveSecret {
    Secret aead;          ///< its first key_bytes key the AEAD of ordinary sealed blocks
    Secret sealed_block;  ///< derives the keys of large sealed blocks
};

/// The secret of the collectives on the communicator that `context` (16 bytes) names.
CollectiveSecret collective_secret(const Secret& job_secret, std::span<const std::uint8_t, 16> context,
                                   std::uint64_t epoch);

/// The key of one large sealed block: 32 bytes to `out`. `nonce` (12 bytes) is that of the sealed block.
void sealed_block_key(const Secret& sealed_block_secret, std::span<const std::uint8_t, 12> nonce,
                      std::uint8_t* out);

/// The key of one start of the partitioned message that `message` (16 bytes) names: 32 bytes to `out`.
void partitioned_key(const Secret& job_secret, std::span<const std::uint8_t, 16> message, std::uint64_t start,
                     std::uint8_t* out);

/// A name that only the job's ranks can know, for memory that the ranks of a node share: 16 bytes to `out`.
void node_memory_name(const Secret& job_secret, std::span<const std::uint8_t, 16> context,
                      std::span<std::uint8_t, 16> out);

/// The weight of a message from `source` to `destination` in the sum of the message audit: nobody outside the job can tell which messages
/// would compensate for each other.
std::uint64_t message_weight(const Secret& job_secret, std::int32_t source, std::int32_t destination);

/// The key of the checks that ranks of node number `node` leave for each other (32 bytes to `out`).
void same_node_key(const Secret& job_secret, std::int32_t node, std::uint8_t* out);

/// The same for the hash of short messages: fills all of `out`, at most 8160 bytes.
void same_node_hash_key(const Secret& job_secret, std::int32_t node, std::span<std::uint8_t> out);

/// What the keys of all connections of a process are derived from, so that the long-term key need not stay in memory.
Secret connection_secret(const Secret& long_term);

/// Which records of a connection a key is for.
enum class ConnectionUse : std::uint8_t {
    client_early,  ///< from the side that connects, before it has the other's nonce
    client,        ///< from the side that connects
    server,        ///< from the side that accepts
};

/// The key of these records on the connection to the address and port `to`: 32 bytes to `out`. It follows from the nonces of both sides, client first,
/// 48 bytes in all; for client_early from the client's alone.
void connection_key(const Secret& connections, ConnectionUse use, std::span<const std::uint8_t, 18> to,
                    std::span<const std::uint8_t> nonces, std::uint8_t* out);

}  // namespace mpisec::keys
