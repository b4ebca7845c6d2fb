// The keys of one context: the key itself, and for each library that it needs its own form of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "provider/choice.hpp"
#include "provider/libraries.hpp"

namespace mpisec::provider {

/// Lies in the locked memory of the context that it is a member of.
class Keyring {
  public:
    Keyring(int mode, std::size_t key_n) : mode_(mode), key_n_(key_n) {}
    Keyring(const Keyring& other);  ///< only the key: the libraries' forms are made again when needed
    Keyring& operator=(const Keyring&) = delete;
    ~Keyring();

    void set(const std::uint8_t* key, std::size_t n);
    const std::uint8_t* bytes() const { return key_; }
    bool is_set() const { return set_; }
    /// Library for a piece of n bytes.
    std::size_t library_for(bool encrypt, std::size_t n) const {
        return choice_->library[encrypt][size_class(n)];
    }
    /// The library's form of the key; of OpenSSL, and `library` becomes that, where the library does not take
    /// it. Null when there is none.
    void* get(std::size_t& library, bool encrypt) {
        if (keys_[library] && encrypting_[library] == encrypt) return keys_[library];
        return make(library, encrypt);
    }
    /// Of an AEAD: a copy of the library's state in the middle of a message.
    bool copy_state(const Keyring& other, std::size_t library);

    bool crypt(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n, std::uint8_t* iv) {
        std::size_t library = library_for(encrypt, n);
        // A data unit of XTS that is not whole blocks: the others take these in units of one fixed size only.
        if (mode_ == mpisec_xts && n % 16 != 0) library = openssl_index();
        void* key = get(library, encrypt);
        return key && crypts_[library](key, encrypt, to, from, n, iv) == 0;
    }
    int mode() const { return mode_; }
    std::size_t key_n() const { return key_n_; }

  private:
    void* make(std::size_t& library, bool encrypt);
    void drop();

    int mode_;
    std::size_t key_n_;
    const Choice* choice_ = &choices().at({mode_, key_n_});
    bool set_ = false;
    std::array<void*, max_libraries> keys_{};
    std::array<bool, max_libraries> encrypting_{};
    /// As in their tables: saves a call.
    std::array<decltype(mpisec_cipher_plugin::crypt), max_libraries> crypts_{};
    std::uint8_t key_[64] = {};
};

}  // namespace mpisec::provider
