#include "keys/noise.hpp"

#include <cstring>
#include <string_view>
#include <utility>

namespace mpisec::keys::noise {
namespace {

constexpr std::string_view protocol_name = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
static_assert(protocol_name.size() > digest_bytes, "section 5.2: a longer name is hashed");

/// Section 4.3: HKDF(chaining_key, input, n) is RFC 5869 with the chaining key as salt and empty info.
template <std::size_t n>
std::array<Secret, n> noise_hkdf(const Secret& chaining_key, Bytes input) {
    Secret prk;
    hkdf_extract(chaining_key.span(), input, prk.data());
    std::uint8_t stream[n * digest_bytes];
    hkdf_expand(prk.span(), {}, stream);
    std::array<Secret, n> outputs;
    for (std::size_t i = 0; i < n; ++i)
        std::memcpy(outputs[i].data(), stream + i * digest_bytes, digest_bytes);
    wipe(stream, sizeof stream);
    return outputs;
}

}  // namespace

SymmetricState::SymmetricState() {
    hash_ = sha256(as_bytes(protocol_name));
    std::memcpy(chaining_key_.data(), hash_.data(), hash_.size());
}

void SymmetricState::mix_key(Bytes input) {
    auto [chaining_key, key] = noise_hkdf<2>(chaining_key_, input);
    chaining_key_ = std::move(chaining_key);
    cipher_ = CipherState(std::move(key));
}

void SymmetricState::mix_hash(Bytes data) {
    Sha256().update(hash_).update(data).finish(hash_.data());
}

void SymmetricState::mix_key_and_hash(Bytes input) {
    auto [chaining_key, hash_input, key] = noise_hkdf<3>(chaining_key_, input);
    chaining_key_ = std::move(chaining_key);
    mix_hash(hash_input.span());
    cipher_ = CipherState(std::move(key));
}

Result<void> SymmetricState::encrypt_and_hash(Bytes plaintext, std::uint8_t* out) {
    if (auto done = cipher_.encrypt(hash_, plaintext, out); !done) return done;
    mix_hash({out, plaintext.size() + overhead()});
    return {};
}

Result<void> SymmetricState::decrypt_and_hash(Bytes ciphertext, std::uint8_t* out) {
    if (auto done = cipher_.decrypt(hash_, ciphertext, out); !done) return done;
    mix_hash(ciphertext);
    return {};
}

SymmetricState::Keys SymmetricState::split() const {
    auto [first, second] = noise_hkdf<2>(chaining_key_, {});
    return {std::move(first), std::move(second)};
}

HandshakeState::HandshakeState(Role role, Bytes prologue, const Secret& psk) : role_(role), psk_(psk.span()) {
    symmetric_.mix_hash(prologue);  // NN has no pre-messages
}

bool HandshakeState::may(Turn turn) const {
    if (dead_ || finished()) return false;
    return (role_ == Role::initiator ? turn == Turn::write : turn == Turn::read) == (messages_ == 0);
}

/// The token "ee", last of message 2.
Result<void> HandshakeState::mix_ephemerals() {
    auto shared = x25519(*ephemeral_, remote_ephemeral_);
    if (!shared) return tl::unexpected(shared.error());
    symmetric_.mix_key(shared->span());
    return {};
}

Result<std::vector<std::uint8_t>> HandshakeState::write_message(Bytes payload) {
    if (!may(Turn::write)) return fail("A Noise message was written out of turn.");
    dead_ = true;  // until this message is complete
    if (payload.size() > max_message_bytes - message_bytes(0))
        return fail("A Noise message would be longer than 65535 bytes.");
    if (messages_ == 0) symmetric_.mix_key_and_hash(psk_.span());  // psk

    if (!ephemeral_) ephemeral_ = x25519_key_pair(Secret::random());
    std::vector<std::uint8_t> message(message_bytes(payload.size()));
    std::memcpy(message.data(), ephemeral_->public_key.data(), ephemeral_->public_key.size());
    symmetric_.mix_hash(ephemeral_->public_key);  // e
    symmetric_.mix_key(ephemeral_->public_key);   // section 9.2: with a psk, "e" also mixes the key

    if (messages_ == 1) {
        if (auto mixed = mix_ephemerals(); !mixed) return tl::unexpected(mixed.error());
    }
    if (auto sealed = symmetric_.encrypt_and_hash(payload, message.data() + 32); !sealed) {
        return tl::unexpected(sealed.error());
    }
    ++messages_;
    dead_ = false;
    return message;
}

Result<std::vector<std::uint8_t>> HandshakeState::read_message(Bytes message) {
    if (!may(Turn::read)) return fail("A Noise message was read out of turn.");
    dead_ = true;  // until this message is accepted
    if (message.size() < message_bytes(0) || message.size() > max_message_bytes) {
        return fail("A Noise message of an impossible length arrived.");
    }
    if (messages_ == 0) symmetric_.mix_key_and_hash(psk_.span());  // psk

    std::memcpy(remote_ephemeral_.data(), message.data(), remote_ephemeral_.size());
    symmetric_.mix_hash(remote_ephemeral_);  // e
    symmetric_.mix_key(remote_ephemeral_);   // section 9.2

    if (messages_ == 1) {
        if (auto mixed = mix_ephemerals(); !mixed) return tl::unexpected(mixed.error());
    }
    std::vector<std::uint8_t> payload(message.size() - message_bytes(0));
    if (auto opened = symmetric_.decrypt_and_hash(message.subspan(32), payload.data()); !opened) {
        return tl::unexpected(opened.error());
    }
    ++messages_;
    dead_ = false;
    return payload;
}

Result<Transport> HandshakeState::split() {
    if (dead_ || !finished()) return fail("A Noise handshake was split before it was finished.");
    dead_ = true;
    auto keys = symmetric_.split();
    CipherState first(std::move(keys.first)), second(std::move(keys.second));
    const bool initiator = role_ == Role::initiator;
    return Transport{std::move(initiator ? first : second), std::move(initiator ? second : first),
                     symmetric_.handshake_hash()};
}

}  // namespace mpisec::keys::noise
