// Keys and counters between this process and one other rank (design.md 2.3 and 3; S3, S4, S6).
#pragma once

#include <atomic>
#include <cstdint>

#include "aead/aead.hpp"
#include "keys/schedule.hpp"
#include "wire/replay.hpp"

namespace mpisec::shim {

/// What one epoch of one direction needs; derived when first used, and again after it was dropped from the
/// bounded cache.
struct EpochKeys {
    std::uint32_t epoch = 0;
    aead::KeySet aead;
    keys::Secret message_secret;
};

struct Outgoing {
    std::int32_t destination = 0;  ///< world rank
    std::atomic<std::uint64_t> next_counter{
        0};  ///< never reset, never reused: S4 holds over epochs too, and should a program
             ///< that asked for fewer threads than it uses race here
    std::uint32_t epoch = 0;
    std::uint64_t epoch_messages = 0;
    std::uint64_t epoch_bytes = 0;
    std::uint64_t sent = 0;  ///< messages that MPI took; compared at Finalize (S8)
    std::uint32_t next_channel = 0;
    unsigned large_sends = 0;    ///< large messages whose segments are being sent
    unsigned flying = 0;         ///< segments of those among them that their receiver has matched
    unsigned refused_turns = 0;  ///< since the last of these segments had left
    EpochKeys* keys = nullptr;
    std::uint64_t last_use = 0;
};

struct Incoming {
    std::int32_t source = 0;  ///< world rank
    wire::ReplaySet replay;
    std::uint64_t opened = 0;  ///< messages accepted; compared at Finalize (S8)
    unsigned expected = 0;     ///< segments that have a receive
    EpochKeys* keys[2] = {nullptr,
                          nullptr};  ///< of the newest epoch, and of one other (messages received late)
    std::uint64_t last_use = 0;
};

Outgoing& outgoing(std::int32_t world_rank);
Incoming& incoming(std::int32_t world_rank);

/// Takes the next counter for a message of `bytes` and the keys to seal it with, renewing them when the limit
/// is reached (S6).
struct SendTicket {
    std::uint64_t counter;
    std::uint32_t epoch;
    EpochKeys* keys;
};
SendTicket take_ticket(Outgoing& pair, std::uint64_t bytes);

/// Keys of the epoch that a nonce claims. Null when the epoch cannot be (S2: the message is then forged).
EpochKeys* keys_of_epoch(Incoming& pair, std::uint32_t epoch);

/// A message of this epoch opened: its keys become the ones kept first when the epoch is newer.
void confirm_epoch(Incoming& pair, std::uint32_t epoch);

/// Sums of sent and of accepted messages, per world rank.
std::uint64_t sent_to(std::int32_t world_rank);
std::uint64_t opened_from(std::int32_t world_rank);

/// Wipes every pair's keys (S5).
void forget_pairs();

}  // namespace mpisec::shim
