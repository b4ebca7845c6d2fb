#include "aead/nonce_ledger.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "aead/aead.hpp"
#include "base/bytes.hpp"
#include "base/error_line.hpp"
#include "base/hex.hpp"
#include "keys/hkdf.hpp"

namespace mpisec::aead {
namespace {

struct ProcessLedger {
    NonceLedger nonces;
    const pid_t process = getpid();
};

void write_process_ledger();

// Never destroyed: keys in static variables may be used while the process exits.
ProcessLedger& process_ledger() {
    static ProcessLedger& ledger = [&]() -> ProcessLedger& {
        if (const char* directory = std::getenv("MPISEC_LAB_NONCE_LEDGER"); directory && *directory)
            std::atexit(write_process_ledger);
        return *new ProcessLedger;
    }();
    return ledger;
}

void write_process_ledger() {
    ProcessLedger& ledger = process_ledger();
    const char* directory = std::getenv("MPISEC_LAB_NONCE_LEDGER");
    // A child made by fork() has a copy of its parent's nonces, which the parent writes.
    if (!directory || getpid() != ledger.process) return;
    std::string path = std::string(directory) + "/nonces-XXXXXX";
    const int descriptor = mkstemp(path.data());
    std::FILE* file = descriptor < 0 ? nullptr : fdopen(descriptor, "w");
    if (!file) {
        write_error_line("mpisec: the ledger of nonces cannot be written to " + path + ": " +
                         std::strerror(errno));
        return;
    }
    const bool written = ledger.nonces.write(file);
    if (std::fclose(file) == 0 && written) return;
    write_error_line("mpisec: the ledger of nonces in " + path + " is not complete: " + std::strerror(errno));
}

}  // namespace

// Which bytes count follows from the nonce itself, so that every nonce has one place. The nonces of a pair's messages have their kind in
// the upper half of byte 2 and count in bytes 4 to 11; those of segments count in bytes 0 to 7; those of a collective's sealed blocks occur
// again and again with the next number in bytes 0 to 3.
bool NonceLedger::record(const KeyFingerprint& key, const std::uint8_t* nonce) {
    static_assert(nonce_bytes == 12);
    const int kind = nonce[2] >> 4;
    const std::uint32_t counts_from = kind == 1 || kind == 2 ? 4 : 0;
    const auto rest = load_le<std::uint32_t>(nonce + (counts_from == 4 ? 0 : 8));
    const auto count = load_le<std::uint64_t>(nonce + counts_from);
    std::lock_guard lock(mutex_);
    auto known = keys_.find(key);
    if (known == keys_.end()) {
        if (keys_.size() >= most_keys_) return true;
        known = keys_.try_emplace(key).first;
    }
    return insert(known->second[{counts_from, rest}], count);
}

bool NonceLedger::insert(Runs& runs, std::uint64_t count) {
    const auto after = runs.upper_bound(count);  // the first run that starts after `count`
    const bool has_before = after != runs.begin();
    const auto before = has_before ? std::prev(after) : runs.end();
    if (has_before && before->second >= count) return false;
    const bool extends = has_before && before->second + 1 == count;
    const bool joins = after != runs.end() && after->first == count + 1;
    const std::uint64_t last = joins ? after->second : count;
    if (extends)
        before->second = last;
    else
        runs.emplace_hint(after, count, last);
    if (joins) runs.erase(after);
    return true;
}

void NonceLedger::forget() {
    std::lock_guard lock(mutex_);
    keys_.clear();
}

bool NonceLedger::write(std::FILE* to) {
    std::lock_guard lock(mutex_);
    for (const auto& [key, streams] : keys_)
        for (const auto& [stream, runs] : streams)
            for (const auto& [first, last] : runs)
                std::fprintf(to, "%s %u %08" PRIx32 " %" PRIu64 " %" PRIu64 "\n", hex(key).c_str(),
                             stream.counts_from, stream.rest, first, last);
    return std::fflush(to) == 0 && std::ferror(to) == 0;
}

std::size_t NonceLedger::keys() {
    std::lock_guard lock(mutex_);
    return keys_.size();
}

std::size_t NonceLedger::runs() {
    std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [key, streams] : keys_)
        for (const auto& [stream, runs] : streams) sum += runs.size();
    return sum;
}

KeyFingerprint fingerprint_of_key(const std::uint8_t* key, std::size_t bytes) {
    const keys::Digest digest = keys::sha256({key, bytes});
    KeyFingerprint fingerprint;
    std::copy_n(digest.begin(), fingerprint.size(), fingerprint.begin());
    return fingerprint;
}

void record_nonce(const KeyFingerprint& key, const std::uint8_t* nonce) {
    if (process_ledger().nonces.record(key, nonce)) return;
    write_error_line("mpisec: a nonce was about to be used a second time under one key (key " + hex(key) +
                     ", nonce " + hex({nonce, nonce_bytes}) +
                     "); this is a fault of MPIsec, and nothing was sealed with it.");
    std::abort();
}

void forget_nonces() {
    process_ledger().nonces.forget();
}

}  // namespace mpisec::aead
