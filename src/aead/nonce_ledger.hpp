// Every nonce that was used to seal, per key (S4): compiled into debug and sanitizer builds only (MPISEC_NONCE_LEDGER), where
// KeySet::seal() records each nonce before it seals, and ends the process when a nonce occurs a second time.
//
// A key is identified by a hash of its bytes, so that keys that were dropped and derived again are still the same keys. Nonces that differ
// only in a counter are kept as runs: a pair of ranks, or a communicator, costs a few dozen bytes however much it sends; a large message,
// which has a key of its own, costs about two hundred.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>

namespace mpisec::aead {

using KeyFingerprint = std::array<std::uint8_t, 16>;

class NonceLedger {
  public:
    /// Keys beyond `most_keys` are not recorded.
    explicit NonceLedger(std::size_t most_keys = std::size_t{1} << 20) : most_keys_(most_keys) {}

    /// False, and no change, when `nonce` (nonce_bytes) was recorded under this key before. Thread-safe.
    [[nodiscard]] bool record(const KeyFingerprint& key, const std::uint8_t* nonce);
    void forget();
    /// One line per run of nonces: the key's fingerprint, where the eight bytes that count begin in the nonce (0 or 4), its other four
    /// bytes, the first and the last count. False when not all lines could be written.
    [[nodiscard]] bool write(std::FILE* to);
    std::size_t keys();
    std::size_t runs();

  private:
    struct Stream {
        std::uint32_t counts_from;  ///< 0 or 4: where in the nonce the counter is
        std::uint32_t rest;         ///< the other four bytes of the nonce
        auto operator<=>(const Stream&) const = default;
    };
    using Runs = std::map<std::uint64_t, std::uint64_t>;  // first -> last; never overlapping or touching

    static bool insert(Runs& runs, std::uint64_t count);

    std::mutex mutex_;
    std::map<KeyFingerprint, std::map<Stream, Runs>> keys_;
    std::size_t most_keys_;
};

/// First half of SHA-256 of the key.
KeyFingerprint fingerprint_of_key(const std::uint8_t* key, std::size_t bytes);

/// Records in this process's ledger; ends the process with a sentence when the nonce occurs a second time. Where MPISEC_LAB_NONCE_LEDGER
/// names a directory, the ledger is written to a file of its own there when the process exits, so that the ledgers of all ranks can be
/// compared: two ranks that seal under the key of one communicator must not use the same nonce either.
void record_nonce(const KeyFingerprint& key, const std::uint8_t* nonce);

/// For tests that seal the same data twice on purpose.
void forget_nonces();

}  // namespace mpisec::aead
