#include "aead/self_test.hpp"

#include <algorithm>
#include <numeric>

namespace mpisec::aead {
namespace {

// The key and nonce below protect nothing: no job's key ever comes near this file (S4).
bool round_trip(const Key& key, std::size_t n) {
    std::vector<std::uint8_t> plain(n), sealed(n + tag_bytes), opened(n, 0xee);
    std::iota(plain.begin(), plain.end(), std::uint8_t{1});
    std::array<std::uint8_t, nonce_bytes> nonce{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    std::array<std::uint8_t, 5> ad{'m', 'p', 'i', 's', 'e'};

    if (!key.seal(sealed.data(), plain.data(), n, nonce.data(), ad.data(), ad.size())) return false;
    if (n >= 16 && std::equal(plain.begin(), plain.end(), sealed.begin())) return false;
    if (!key.open(opened.data(), sealed.data(), n, nonce.data(), ad.data(), ad.size())) return false;
    if (opened != plain) return false;

    for (std::size_t at : {std::size_t{0}, n / 2, n, n + tag_bytes - 1}) {
        sealed[at] ^= 0x80;
        std::fill(opened.begin(), opened.end(), 0xee);
        if (key.open(opened.data(), sealed.data(), n, nonce.data(), ad.data(), ad.size())) return false;
        if (std::any_of(opened.begin(), opened.end(), [](std::uint8_t byte) { return byte != 0; }))
            return false;
        sealed[at] ^= 0x80;
    }
    ad[0] ^= 1;
    if (key.open(opened.data(), sealed.data(), n, nonce.data(), ad.data(), ad.size())) return false;
    ad[0] ^= 1;
    nonce[0] ^= 1;
    return !key.open(opened.data(), sealed.data(), n, nonce.data(), ad.data(), ad.size());
}

}  // namespace

bool self_test(const Library& library, Cipher cipher) {
    std::array<std::uint8_t, max_key_bytes> bytes;
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0x40});
    Result<Key> key = library.make_key(cipher, bytes.data());
    if (!key) return false;
    for (std::size_t n : {0u, 1u, 16u, 300u, 5000u})
        if (!round_trip(*key, n)) return false;
    return true;
}

}  // namespace mpisec::aead
