// The functions of mpisec_cipher_plugin for messages of an AEAD, by methods of a class.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpisec::provider {

template <class Key>
struct MessageCalls {
    static int start(void* key, const std::uint8_t* iv, std::size_t iv_n, const std::uint8_t* ad,
                     std::size_t ad_n) {
        return static_cast<Key*>(key)->start(iv, iv_n, ad, ad_n) ? 0 : -1;
    }
    static int associate(void* key, const std::uint8_t* ad, std::size_t ad_n) {
        return static_cast<Key*>(key)->associate(ad, ad_n) ? 0 : -1;
    }
    static int update(void* key, int encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        return static_cast<Key*>(key)->update(encrypt != 0, to, from, n) ? 0 : -1;
    }
    static int finish(void* key, int encrypt, std::uint8_t* tag, std::size_t tag_n) {
        return static_cast<Key*>(key)->finish(encrypt != 0, tag, tag_n) ? 0 : -1;
    }
};

}  // namespace mpisec::provider
