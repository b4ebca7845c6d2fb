// The plug-in's 96-bit nonce is a 128- or 256-bit AEGIS nonce that ends in zeros. Two steps cover the
// variants whose published vectors have other nonces: libaegis passes them as published, and the plug-in
// gives what libaegis gives for a padded nonce.
#include <aegis.h>
#include <aegis128l.h>
#include <aegis128x2.h>
#include <aegis128x4.h>
#include <aegis256.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support.hpp"

namespace mpisec::aead::test {
namespace {

using nlohmann::json;

using Encrypt = int (*)(std::uint8_t*, std::size_t, const std::uint8_t*, std::size_t, const std::uint8_t*,
                        std::size_t, const std::uint8_t*, const std::uint8_t*);
struct Variant {
    Cipher cipher;
    const char* file;
    std::size_t nonce_n;
    Encrypt encrypt;
};
const Variant variants[] = {{Cipher::aegis_128l, "128l", 16, aegis128l_encrypt},
                            {Cipher::aegis_256, "256", 32, aegis256_encrypt},
                            {Cipher::aegis_128x2, "128x2", 16, aegis128x2_encrypt},
                            {Cipher::aegis_128x4, "128x4", 16, aegis128x4_encrypt}};

TEST(AegisNonce, LibraryPassesThePublishedVectors) {
    ASSERT_EQ(aegis_init(), 0);
    for (const Variant& one : variants) {
        std::ifstream file(std::string(MPISEC_AEGIS_VECTORS) + "/aegis-" + one.file + "-test-vectors.json");
        int checked = 0;
        const json tests = json::parse(file);
        for (const json& test : tests) {
            if (!test.contains("nonce") || !test.contains("tag128") || !test.contains("msg")) continue;
            Bytes plain = from_hex(test["msg"]), ad = from_hex(test.value("ad", "")),
                  sealed(plain.size() + tag_bytes);
            Bytes nonce = from_hex(test["nonce"]), key = from_hex(test["key"]);
            ASSERT_EQ(nonce.size(), one.nonce_n);
            one.encrypt(sealed.data(), tag_bytes, plain.data(), plain.size(), ad.data(), ad.size(),
                        nonce.data(), key.data());
            EXPECT_EQ(sealed, from_hex(std::string(test["ct"]) + std::string(test["tag128"])))
                << one.file << test["name"];
            ++checked;
        }
        EXPECT_GE(checked, 1) << one.file;
    }
}

TEST(AegisNonce, PluginPadsWithZeros) {
    Result<const Library*> library = load("aegis");
    ASSERT_TRUE(library) << library.error().message;
    for (const Variant& one : variants) {
        Bytes key_bytes = pattern(max_key_bytes, 1), ad = pattern(40, 2);
        Key key = key_of({*library, one.cipher}, key_bytes);
        for (std::size_t n : {0, 1, 31, 33, 64, 129, 1000, 70000}) {
            Bytes plain = pattern(n, 3), nonce = pattern(nonce_bytes, static_cast<std::uint32_t>(n)),
                  direct(n + tag_bytes);
            Bytes sealed(n + tag_bytes), padded = nonce;
            padded.resize(one.nonce_n, 0);
            one.encrypt(direct.data(), tag_bytes, plain.data(), n, ad.data(), ad.size(), padded.data(),
                        key_bytes.data());
            ASSERT_TRUE(key.seal(sealed.data(), plain.data(), n, nonce.data(), ad.data(), ad.size()));
            EXPECT_EQ(sealed, direct) << one.file << ", " << n << " bytes";
        }
    }
}

}  // namespace
}  // namespace mpisec::aead::test
