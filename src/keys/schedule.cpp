// The job secret, and everything derived from it, is uniformly random, so each step is HKDF-Expand alone (RFC
// 5869 section 3.3). The info strings are a label and fields of fixed length, little-endian; no label is the
// beginning of another. (A box is what is now called a sealed block.)
//
// Expand(job secret, info):
//   pair AEAD key                "mpisec v1 pair aead"       | source(4) | destination(4) | epoch(4)
//   pair message key             "mpisec v1 pair message"    | source(4) | destination(4) | epoch(4)
//   collective AEAD key          "mpisec v1 collective aead" | context(16) | epoch(8)
//   collective sealed block key  "mpisec v1 collective box"  | context(16) | epoch(8)
//   partitioned key              "mpisec v1 partitioned"     | message(16) | start(8)
//   node memory name             "mpisec v1 node memory"     | context(16)
//   weight of a message          "mpisec v1 message weight"  | source(4) | destination(4)
//   same-node key                "mpisec v1 same node"       | node(4)
//   same-node hash key           "mpisec v1 short hash"      | node(4)
// Expand(pair message key, info):
//   message key                  "mpisec v1 segments"        | counter(8)
// Expand(collective sealed block key, info):
//   sealed block key             "mpisec v1 large box"       | nonce(12)
//
// What exists before the job secret does follows from the long-term key, which is uniformly random, too.
// Expand(long-term key, info):
//   connection secret            "mpisec v1 connections"
// Expand(connection secret, info); these labels end in a zero byte:
//   connection key               "client early" | to(18) | client's nonce(24)
//                                "client"       | to(18) | client's nonce(24) | server's nonce(24)
//                                "server"       | to(18) | client's nonce(24) | server's nonce(24)
#include "keys/schedule.hpp"

#include <algorithm>
#include <string_view>

#include "base/bytes.hpp"
#include "keys/hkdf.hpp"

namespace mpisec::keys {
namespace {

/// In a forked child the parent's secrets are zero: what is derived from zeros is known to everybody.
void require_alive(const Secret& secret) {
    if (!secret.alive()) [[unlikely]]
        die_of_wiped_secret();
}

/// HKDF-Expand with a label and two fields.
void expand(const Secret& key, std::string_view label, Bytes first, Bytes second,
            std::span<std::uint8_t> out) {
    require_alive(key);
    std::uint8_t info[96];
    std::uint8_t* end = std::copy(label.begin(), label.end(), info);
    end = std::copy(first.begin(), first.end(), end);
    end = std::copy(second.begin(), second.end(), end);
    hkdf_expand(key.span(), {info, static_cast<std::size_t>(end - info)}, out);
}

}  // namespace

PairSecret pair_secret(const Secret& job_secret, std::int32_t source, std::int32_t destination,
                       std::uint32_t epoch) {
    std::uint8_t pair[12];
    store_le(pair, source);
    store_le(pair + 4, destination);
    store_le(pair + 8, epoch);
    PairSecret secret;
    expand(job_secret, "mpisec v1 pair aead", pair, {}, {secret.aead.data(), secret_bytes});
    expand(job_secret, "mpisec v1 pair message", pair, {}, {secret.message.data(), secret_bytes});
    return secret;
}

void message_key(const Secret& message_secret, std::uint64_t counter, std::uint8_t* out) {
    std::uint8_t number[8];
    store_le(number, counter);
    expand(message_secret, "mpisec v1 segments", number, {}, {out, secret_bytes});
}

CollectiveSecret collective_secret(const Secret& job_secret, std::span<const std::uint8_t, 16> context,
                                   std::uint64_t epoch) {
    std::uint8_t number[8];
    store_le(number, epoch);
    CollectiveSecret secret;
    expand(job_secret, "mpisec v1 collective aead", context, number, {secret.aead.data(), secret_bytes});
    expand(job_secret, "mpisec v1 collective box", context, number,
           {secret.sealed_block.data(), secret_bytes});
    return secret;
}

void sealed_block_key(const Secret& sealed_block_secret, std::span<const std::uint8_t, 12> nonce,
                      std::uint8_t* out) {
    expand(sealed_block_secret, "mpisec v1 large box", nonce, {}, {out, secret_bytes});
}

void partitioned_key(const Secret& job_secret, std::span<const std::uint8_t, 16> message, std::uint64_t start,
                     std::uint8_t* out) {
    std::uint8_t number[8];
    store_le(number, start);
    expand(job_secret, "mpisec v1 partitioned", message, number, {out, secret_bytes});
}

void node_memory_name(const Secret& job_secret, std::span<const std::uint8_t, 16> context,
                      std::span<std::uint8_t, 16> out) {
    expand(job_secret, "mpisec v1 node memory", context, {}, out);
}

std::uint64_t message_weight(const Secret& job_secret, std::int32_t source, std::int32_t destination) {
    std::uint8_t from[4], to[4], weight[8];
    store_le(from, source);
    store_le(to, destination);
    expand(job_secret, "mpisec v1 message weight", from, to, weight);
    return load_le<std::uint64_t>(weight);
}

void same_node_key(const Secret& job_secret, std::int32_t node, std::uint8_t* out) {
    std::uint8_t number[4];
    store_le(number, node);
    expand(job_secret, "mpisec v1 same node", number, {}, {out, secret_bytes});
}

void same_node_hash_key(const Secret& job_secret, std::int32_t node, std::span<std::uint8_t> out) {
    std::uint8_t number[4];
    store_le(number, node);
    expand(job_secret, "mpisec v1 short hash", number, {}, out);
}

Secret connection_secret(const Secret& long_term) {
    Secret secret;
    expand(long_term, "mpisec v1 connections", {}, {}, {secret.data(), secret_bytes});
    return secret;
}

void connection_key(const Secret& connections, ConnectionUse use, std::span<const std::uint8_t, 18> to,
                    Bytes nonces, std::uint8_t* out) {
    using namespace std::string_view_literals;
    constexpr std::string_view labels[] = {"client early\0"sv, "client\0"sv, "server\0"sv};
    expand(connections, labels[static_cast<std::size_t>(use)], to, nonces, {out, secret_bytes});
}

}  // namespace mpisec::keys
