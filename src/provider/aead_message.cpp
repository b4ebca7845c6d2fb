#include "provider/aead_message.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "provider/workers.hpp"

namespace mpisec::provider {

bool AeadMessage::begin_in(std::size_t chosen) {
    library = chosen;
    void* key = of_library();
    if (key && table().start(key, message_iv, iv_n, ad, ad_n) == 0) return true;
    library = none;
    return false;
}

/// More than can wait here is a matter for a library that takes it by pieces.
std::size_t AeadMessage::library_for_much_data() const {
    std::size_t i = 0;
    while (!libraries()[i]->associate || !libraries()[i]->has(traits->mode, traits->key_n)) ++i;
    return i;
}

std::size_t AeadMessage::library_for_text(std::size_t n) const {
    const bool shares = n >= shared_bytes && !chacha() && iv_n == 12 && gcm_can_share(traits->key_n);
    return shares ? shared_gcm_index() : keys.library_for(encrypt, n);
}

/// Of one message: beyond it the counter would begin again, and not every library looks (SP 800-38D, 5.2.1.1; RFC 8439, 2.8).
std::uint64_t AeadMessage::longest_text() const {
    constexpr std::uint64_t gcm = (std::uint64_t{1} << 36) - 32, of_chacha = (std::uint64_t{1} << 38) - 64;
    return chacha() ? of_chacha : gcm;
}

/// SP 800-38D, 8.2.2: who gives no vector for encryption gets a random one.
bool AeadMessage::random_vector() {
    if (chacha() || !encrypt || iv_n < 12 || RAND_bytes(iv, static_cast<int>(iv_n)) != 1) return false;
    state = Vector::given;
    return true;
}

bool AeadMessage::ready() {
    if (!keys.is_set() || state == Vector::finished) return false;
    if (state == Vector::missing && !random_vector()) return false;
    if (state == Vector::given) begin();
    return true;
}

void AeadMessage::begin() {
    library = none;
    text_begun = false;
    text_n = 0;
    ad_n = 0;
    std::memcpy(message_iv, iv, iv_n);
    state = Vector::used;
}

bool AeadMessage::associate(const std::uint8_t* more, std::size_t n) {
    if (text_begun) return false;
    if (library == none) {
        if (ad_n + n <= kept_ad_bytes) {
            std::memcpy(ad + ad_n, more, n);
            ad_n += n;
            return true;
        }
        if (!begin_in(library_for_much_data())) return false;
    }
    // The key first: the library that has it may turn out to be another.
    void* key = of_library();
    return table().associate(key, more, n) == 0;
}

bool AeadMessage::text(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    if (n > longest_text() - text_n) return false;
    text_n += n;
    if (library == none && !begin_in(library_for_text(n))) return false;
    text_begun = true;
    void* key = of_library();
    return table().update(key, encrypt ? 1 : 0, to, from, n) == 0;
}

bool AeadMessage::finish(std::uint8_t* to_or_from, std::size_t n) {
    if (library == none && !begin_in(keys.library_for(encrypt, 0))) return false;
    void* key = of_library();
    return table().finish(key, encrypt ? 1 : 0, to_or_from, n) == 0;
}

void AeadMessage::set_vector_length(std::size_t n) {
    if (n == iv_n) return;
    iv_n = n;
    counts = false;
}

void AeadMessage::set_counter() {
    counts = true;
    counted = 0;
    state = Vector::given;
}

/// A counter of 8 bytes never is.
bool AeadMessage::counter_used_up() const {
    return iv_n < counter_bytes && counted >> (8 * iv_n) != 0;
}

bool AeadMessage::begin_under_next_vector(std::uint8_t* out, std::size_t n) {
    if (!counts || !keys.is_set() || counter_used_up()) return false;
    begin();
    if (n == 0 || n > iv_n) n = iv_n;
    std::memcpy(out, iv + iv_n - n, n);
    ++counted;
    const std::size_t counter_at = iv_n - std::min(iv_n, counter_bytes);
    for (std::size_t i = iv_n; i-- > counter_at;)
        if (++iv[i] != 0) break;
    return true;
}

bool AeadMessage::begin_under_peers_vector(const std::uint8_t* in, std::size_t n) {
    if (!counts || !keys.is_set() || encrypt || n > iv_n) return false;
    std::memcpy(iv + iv_n - n, in, n);
    begin();
    return true;
}

}  // namespace mpisec::provider
