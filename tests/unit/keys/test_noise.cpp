#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../required.hpp"
#include "fixed_ephemeral.hpp"
#include "hex.hpp"
#include "keys/noise.hpp"

namespace mpisec::keys::noise {
namespace {

using test::hex;
using test::unhex;

Secret secret_of(const std::string& text) {
    std::vector<std::uint8_t> bytes = unhex(text);
    return Secret(std::span<const std::uint8_t, secret_bytes>(bytes.data(), secret_bytes));
}

Secret secret_of(std::uint8_t value) {
    Secret secret;
    std::memset(secret.data(), value, secret_bytes);
    return secret;
}

std::vector<std::uint8_t> encrypt(CipherState& cipher, Bytes plaintext) {
    std::vector<std::uint8_t> out(plaintext.size() + tag_bytes);
    EXPECT_TRUE(cipher.encrypt({}, plaintext, out.data()));
    return out;
}

/// Every published vector of our protocol; the first two messages are the handshake, the rest alternate over
/// the transport.
TEST(Noise, PublishedVectors) {
    const std::string path = NOISE_VECTORS;
    if (path.empty()) MPISEC_NOT_TESTED("cargo could not fetch the crate that carries the vectors");
    std::ifstream file(path);
    auto vectors = nlohmann::json::parse(file).at("vectors");
    int found = 0;
    for (const auto& vector : vectors) {
        if (vector.at("protocol_name") != "Noise_NNpsk0_25519_ChaChaPoly_SHA256") continue;
        ++found;
        HandshakeState initiator(Role::initiator, unhex(vector.at("init_prologue").get<std::string>()),
                                 secret_of(vector.at("init_psks").at(0).get<std::string>()));
        HandshakeState responder(Role::responder, unhex(vector.at("resp_prologue").get<std::string>()),
                                 secret_of(vector.at("resp_psks").at(0).get<std::string>()));
        FixedEphemeral::set(initiator, secret_of(vector.at("init_ephemeral").get<std::string>()));
        FixedEphemeral::set(responder, secret_of(vector.at("resp_ephemeral").get<std::string>()));

        const auto& messages = vector.at("messages");
        ASSERT_GE(messages.size(), 4u);
        auto payload = [&](int i) { return unhex(messages.at(i).at("payload").get<std::string>()); };
        auto ciphertext = [&](int i) { return messages.at(i).at("ciphertext").get<std::string>(); };

        auto first = initiator.write_message(payload(0));
        ASSERT_TRUE(first);
        EXPECT_EQ(hex(*first), ciphertext(0));
        EXPECT_EQ(responder.read_message(*first).value(), payload(0));
        auto second = responder.write_message(payload(1));
        ASSERT_TRUE(second);
        EXPECT_EQ(hex(*second), ciphertext(1));
        EXPECT_EQ(initiator.read_message(*second).value(), payload(1));

        auto a = initiator.split(), b = responder.split();
        ASSERT_TRUE(a && b);
        EXPECT_EQ(hex(a->handshake_hash), vector.at("handshake_hash").get<std::string>());
        EXPECT_EQ(a->handshake_hash, b->handshake_hash);
        for (int i = 2; i < static_cast<int>(messages.size()); ++i) {
            auto sealed = encrypt(i % 2 == 0 ? a->send : b->send, payload(i));
            EXPECT_EQ(hex(sealed), ciphertext(i));
            std::vector<std::uint8_t> opened(payload(i).size());
            ASSERT_TRUE((i % 2 == 0 ? b->receive : a->receive).decrypt({}, sealed, opened.data()));
            EXPECT_EQ(opened, payload(i));
        }
    }
    EXPECT_GE(found, 1);
}

const std::vector<std::uint8_t> prologue = {1, 2, 3};
const std::vector<std::uint8_t> payload = {10, 20, 30, 40};

TEST(Noise, AnotherKeyOrPrologueIsRefused) {
    HandshakeState initiator(Role::initiator, prologue, secret_of(std::uint8_t{1}));
    auto message = initiator.write_message(payload).value();
    HandshakeState other_key(Role::responder, prologue, secret_of(std::uint8_t{2}));
    EXPECT_FALSE(other_key.read_message(message));
    HandshakeState other_prologue(Role::responder, payload, secret_of(std::uint8_t{1}));
    EXPECT_FALSE(other_prologue.read_message(message));
    HandshakeState right(Role::responder, prologue, secret_of(std::uint8_t{1}));
    EXPECT_EQ(right.read_message(message).value(), payload);
}

TEST(Noise, EveryBitOfTheFirstMessageCounts) {
    Secret psk = secret_of(std::uint8_t{1});
    auto message = HandshakeState(Role::initiator, prologue, psk).write_message(payload).value();
    for (std::size_t bit = 0; bit < 8 * message.size(); ++bit) {
        auto changed = message;
        changed[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
        EXPECT_FALSE(HandshakeState(Role::responder, prologue, psk).read_message(changed)) << "bit " << bit;
    }
    for (std::size_t n = 0; n < message.size(); ++n) {
        EXPECT_FALSE(HandshakeState(Role::responder, prologue, psk).read_message(Bytes(message).first(n)));
    }
}

TEST(Noise, EveryBitOfTheSecondMessageCounts) {
    Secret psk = secret_of(std::uint8_t{1}), ephemeral = Secret::random();
    HandshakeState initiator(Role::initiator, prologue, psk), responder(Role::responder, prologue, psk);
    FixedEphemeral::set(initiator, ephemeral);
    ASSERT_TRUE(responder.read_message(initiator.write_message(payload).value()));
    auto answer = responder.write_message(payload).value();
    for (std::size_t bit = 0; bit < 8 * answer.size(); ++bit) {
        auto changed = answer;
        changed[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
        HandshakeState again(Role::initiator, prologue, psk);
        FixedEphemeral::set(again, ephemeral);
        ASSERT_TRUE(again.write_message(payload));
        EXPECT_FALSE(again.read_message(changed)) << "bit " << bit;
        EXPECT_FALSE(again.read_message(answer)) << "a handshake that failed is dead";
    }
    EXPECT_EQ(initiator.read_message(answer).value(), payload);
}

// Section 12.1: a point of low order would make a shared secret that everybody knows.
TEST(Noise, LowOrderPointIsRefused) {
    Secret psk = secret_of(std::uint8_t{1});
    HandshakeState initiator(Role::initiator, prologue, psk), responder(Role::responder, prologue, psk);
    auto message = initiator.write_message({}).value();
    std::memset(message.data(), 0, 32);
    EXPECT_FALSE(responder.read_message(message));
    KeyPair pair = x25519_key_pair(Secret::random());
    EXPECT_FALSE(x25519(pair, PublicKey{}));
    EXPECT_FALSE(x25519(pair, PublicKey{1}));
}

TEST(Noise, TurnsAreKept) {
    Secret psk = secret_of(std::uint8_t{1});
    HandshakeState initiator(Role::initiator, prologue, psk), responder(Role::responder, prologue, psk);
    EXPECT_FALSE(initiator.split());
    EXPECT_FALSE(responder.write_message({}));
    auto message = initiator.write_message({}).value();
    EXPECT_FALSE(initiator.write_message({}));
    ASSERT_TRUE(responder.read_message(message));
    auto answer = responder.write_message({}).value();
    ASSERT_TRUE(initiator.read_message(answer));
    EXPECT_TRUE(initiator.finished());
    EXPECT_TRUE(initiator.split());
    EXPECT_FALSE(initiator.split());
}

// Section 5.3: after an error the handshake is over, even where nothing was mixed in yet.
TEST(Noise, AnErrorEndsTheHandshake) {
    Secret psk = secret_of(std::uint8_t{1});
    HandshakeState initiator(Role::initiator, prologue, psk), responder(Role::responder, prologue, psk);
    auto message = initiator.write_message({}).value();
    EXPECT_FALSE(responder.read_message(Bytes(message).first(20)));
    EXPECT_FALSE(responder.read_message(message));
}

TEST(Noise, EphemeralKeysAreFresh) {
    Secret psk = secret_of(std::uint8_t{1});
    auto first = HandshakeState(Role::initiator, prologue, psk).write_message(payload).value();
    auto second = HandshakeState(Role::initiator, prologue, psk).write_message(payload).value();
    EXPECT_NE(hex(Bytes(first).first(32)), hex(Bytes(second).first(32)));
}

// A forged transport message changes nothing: the true one still opens afterwards (section 5.1), once.
TEST(Noise, TransportRefusesForgeriesAndReplays) {
    CipherState ours(secret_of(std::uint8_t{9})), theirs(secret_of(std::uint8_t{9}));
    auto sealed = encrypt(ours, payload);
    std::vector<std::uint8_t> out(payload.size(), 0xFF);
    auto forged = sealed;
    forged[0] ^= 1;
    EXPECT_FALSE(theirs.decrypt({}, forged, out.data()));
    EXPECT_EQ(out, std::vector<std::uint8_t>(payload.size(), 0)) << "nothing unauthenticated is released";
    EXPECT_FALSE(theirs.decrypt(prologue, sealed, out.data()));
    EXPECT_FALSE(theirs.decrypt({}, Bytes(sealed).first(tag_bytes - 1), out.data()));
    ASSERT_TRUE(theirs.decrypt({}, sealed, out.data()));
    EXPECT_EQ(out, payload);
    EXPECT_FALSE(theirs.decrypt({}, sealed, out.data()));
}

}  // namespace
}  // namespace mpisec::keys::noise
