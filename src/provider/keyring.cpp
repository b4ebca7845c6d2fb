#include "provider/keyring.hpp"

#include <string.h>

#include <cstring>

#include "base/constant_time.hpp"
#include "provider/batches.hpp"

namespace mpisec::provider {

Keyring::Keyring(const Keyring& other) : mode_(other.mode_), key_n_(other.key_n_), set_(other.set_) {
    std::memcpy(key_, other.key_, sizeof key_);
}

Keyring::~Keyring() {
    forget_in_batches(*this);
    drop();
    explicit_bzero(key_, sizeof key_);
}

void Keyring::set(const std::uint8_t* key, std::size_t n) {
    forget_in_batches(*this);
    // A program that sets the same key before every message pays for its schedule once. The comparison's time
    // does not depend on where the two differ.
    if (set_ && equal_in_constant_time(key_, key, n)) return;
    drop();
    std::memcpy(key_, key, n);
    set_ = true;
}

void* Keyring::make(std::size_t& library, bool encrypt) {
    for (;;) {
        const mpisec_cipher_plugin& table = *libraries()[library];
        if (keys_[library] && encrypting_[library] != encrypt) {
            table.key_free(keys_[library]);
            keys_[library] = nullptr;
        }
        if (!keys_[library]) keys_[library] = table.key_new(mode_, key_, key_n_, encrypt);
        encrypting_[library] = encrypt;
        crypts_[library] = table.crypt;
        if (keys_[library] || library == openssl_index()) return keys_[library];
        library = openssl_index();
    }
}

bool Keyring::copy_state(const Keyring& other, std::size_t library) {
    const mpisec_cipher_plugin& table = *libraries()[library];
    if (!other.keys_[library]) return true;
    table.key_free(keys_[library]);
    keys_[library] = table.copy(other.keys_[library]);
    encrypting_[library] = other.encrypting_[library];
    crypts_[library] = table.crypt;
    return keys_[library] != nullptr;
}

void Keyring::drop() {
    for (std::size_t i = 0; i < libraries().size(); ++i)
        if (keys_[i]) libraries()[i]->key_free(keys_[i]);
    keys_.fill(nullptr);
}

}  // namespace mpisec::provider
