#include "shim/p2p/same_node_check.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fabric/sent_records.hpp"
#include "keys/schedule.hpp"
#include "shim/p2p/backoff.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// Which MAC the ranks of a node use, and whether the short hash; the rank that needs to know it first decides.
struct ContentHash::Agreement {
    enum State : std::uint32_t { open, being_made, made };
    std::atomic<std::uint32_t> state;
    std::int32_t cipher;
    char library[48];
    enum Short : std::uint32_t { undecided, by_mac, by_short_hash };
    std::atomic<std::uint32_t> of_short;  ///< messages
};

namespace {

constexpr std::uint8_t no_nonce[aead::nonce_bytes] = {};
constexpr std::size_t longest_piece = std::size_t{256} << 20;  // crypto libraries count in an int

/// A keyed hash, nothing else: tags are never seen on the network, so one nonce serves all messages (docs/protocol.md).
void tag_of(const aead::Key& key, const std::uint8_t* bytes, std::size_t n, std::uint8_t* tag) {
    if (!key.seal(tag, nullptr, 0, no_nonce, bytes, n))
        abort_job("the crypto library failed to hash a message of " + std::to_string(n) + " bytes");
}

double seconds_of(const aead::Key& key) {
    using Clock = std::chrono::steady_clock;
    const std::vector<std::uint8_t> sample(16 * 1024);
    std::uint8_t tag[aead::tag_bytes];
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 5; ++round) {
        const auto start = Clock::now();
        tag_of(key, sample.data(), sample.size(), tag);
        best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return best;
}

/// AEGIS of libaegis, which is the fastest there is; without it, GMAC of a library that is loaded anyway, or of any.
std::vector<std::pair<const aead::Library*, aead::Cipher>> candidates() {
    std::vector<std::pair<const aead::Library*, aead::Cipher>> found;
    auto add = [&](const aead::Library* library, std::initializer_list<aead::Cipher> ciphers) {
        for (aead::Cipher cipher : ciphers)
            if (library->has(cipher)) found.emplace_back(library, cipher);
    };
    using enum aead::Cipher;
    const std::vector<std::string> there = aead::available();
    if (std::find(there.begin(), there.end(), "aegis") != there.end())
        if (auto library = aead::load("aegis")) add(*library, {aegis_128x4, aegis_128x2, aegis_128l});
    if (!found.empty()) return found;
    for (const aead::Library* library : state.world.selection.library) add(library, {aes_128_gcm});
    for (std::size_t i = 0; found.empty() && i < there.size(); ++i)
        if (auto library = aead::load(there[i])) add(*library, {aes_128_gcm});
    return found;
}

struct Fastest {
    const aead::Library* library = nullptr;
    aead::Cipher cipher{};
};
Fastest fastest_candidate(const std::uint8_t* key_bytes) {
    Fastest fastest;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [library, cipher] : candidates()) {
        auto key = library->make_key(cipher, key_bytes);
        if (!key) continue;
        const double seconds = seconds_of(*key);
        if (seconds >= least) continue;
        least = seconds;
        fastest = {library, cipher};
    }
    if (!fastest.library) abort_job("no crypto library could set up a key for MPISEC_SAME_NODE=verify");
    return fastest;
}

}  // namespace

ContentHash::ContentHash(std::span<std::uint8_t> agreement)
    : agreement_(reinterpret_cast<Agreement*>(agreement.data())) {
    static_assert(sizeof(Agreement) <= fabric::SentRecords::agreement_bytes);
}

// The libraries that are loaded anyway nearly always provide one.
void ContentHash::require_library() {
    const auto serves = [](const aead::Library* library) { return library->has(aead::Cipher::aes_128_gcm); };
    if (!std::ranges::any_of(state.world.selection.library, serves) && candidates().empty())
        abort_job("MPISEC_SAME_NODE=verify needs a crypto library with AEGIS or AES-128-GCM; there is none");
}

/// Ranks that arrive while another one decides wait for it: a millisecond, once.
[[gnu::cold, gnu::noinline]] void ContentHash::make_mac() {
    std::uint8_t bytes[aead::max_key_bytes];
    keys::same_node_key(*state.world.job_secret, state.world.own_node, bytes);
    std::uint32_t seen = Agreement::open;
    if (agreement_->state.compare_exchange_strong(seen, Agreement::being_made, std::memory_order_acq_rel)) {
        const Fastest fastest = fastest_candidate(bytes);
        agreement_->cipher = static_cast<std::int32_t>(fastest.cipher);
        auto& name = agreement_->library;
        name[fastest.library->name().copy(name, sizeof name - 1)] = '\0';
        agreement_->state.store(Agreement::made, std::memory_order_release);
    }
    Backoff backoff;
    while (agreement_->state.load(std::memory_order_acquire) != Agreement::made) backoff.pause_inside();
    auto library = aead::load(agreement_->library);
    if (!library) abort_job(library.error().message);
    auto key = (*library)->make_key(static_cast<aead::Cipher>(agreement_->cipher), bytes);
    keys::wipe(bytes, sizeof bytes);
    if (!key) abort_job(key.error().message);
    mac_ = std::move(*key);
}

void ContentHash::mac_of(const std::uint8_t* bytes, std::size_t n, std::uint8_t* tag) {
    if (!mac_) [[unlikely]]
        make_mac();
    if (n <= longest_piece) return tag_of(mac_, bytes, n, tag);
    std::vector<std::uint8_t> tags;
    for (std::size_t at = 0; at < n; at += longest_piece) {
        tags.resize(tags.size() + aead::tag_bytes);
        tag_of(mac_, bytes + at, std::min(longest_piece, n - at),
               tags.data() + tags.size() - aead::tag_bytes);
    }
    tag_of(mac_, tags.data(), tags.size(), tag);
}

/// A rank that hashes slowly does so all the same: one under valgrind, for example, which hides instructions from it.
[[gnu::cold, gnu::noinline]] void ContentHash::make_short_hash() {
    std::uint32_t seen = Agreement::undecided;
    const std::uint32_t wanted = aead::ShortHash::is_fast() ? Agreement::by_short_hash : Agreement::by_mac;
    if (agreement_->of_short.compare_exchange_strong(seen, wanted, std::memory_order_acq_rel)) seen = wanted;
    std::array<std::uint8_t, aead::ShortHash::key_bytes> bytes;
    keys::same_node_hash_key(*state.world.job_secret, state.world.own_node, bytes);
    short_hash_ = aead::ShortHash(bytes);
    keys::wipe(bytes.data(), bytes.size());
    hashes_short_ = seen == Agreement::by_short_hash;
}

void ContentHash::operator()(const std::uint8_t* bytes, std::size_t n, Check& check) {
    std::memset(check, 0, sizeof check);
    if (n > aead::ShortHash::longest) return mac_of(bytes, n, check);
    if (!short_hash_) [[unlikely]]
        make_short_hash();
    hashes_short_ ? short_hash_(bytes, n, check) : mac_of(bytes, n, check);
}

}  // namespace mpisec::shim
