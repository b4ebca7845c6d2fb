// The handshake between the leaders of two nodes: Noise_NNpsk0_25519_ChaChaPoly_SHA256 (The Noise Protocol
// Framework, revision 34, noiseprotocol.org/noise.html). Section numbers in comments of the noise files are of
// that document.
//
//   NNpsk0:
//     -> psk, e          message 1, initiator to responder
//     <- e, ee           message 2; then both hold the two transport ciphers
//
// The long-term key is the psk: it authenticates, while the ephemeral X25519 exchange makes the transport
// keys, so that learning the long-term key later opens nothing that was recorded (S5).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "keys/hkdf.hpp"
#include "keys/noise_cipher.hpp"
#include "keys/secret.hpp"
#include "keys/x25519.hpp"

namespace mpisec::keys::noise {

/// SymmetricState, section 5.2.
class SymmetricState {
  public:
    SymmetricState();  ///< InitializeSymmetric("Noise_NNpsk0_25519_ChaChaPoly_SHA256")

    void mix_key(Bytes input);
    void mix_hash(Bytes data);
    void mix_key_and_hash(Bytes input);
    std::size_t overhead() const { return cipher_.overhead(); }
    /// EncryptAndHash: writes plaintext.size() + overhead() bytes to `out`.
    Result<void> encrypt_and_hash(Bytes plaintext, std::uint8_t* out);
    /// DecryptAndHash: writes ciphertext.size() - overhead() bytes to `out`.
    Result<void> decrypt_and_hash(Bytes ciphertext, std::uint8_t* out);
    const Digest& handshake_hash() const { return hash_; }

    struct Keys {
        Secret first, second;  ///< initiator to responder, responder to initiator
    };
    Keys split() const;

  private:
    Secret chaining_key_;
    Digest hash_;
    CipherState cipher_;
};

enum class Role { initiator, responder };

/// What a finished handshake leaves behind (section 5.2, Split).
struct Transport {
    CipherState send;
    CipherState receive;
    Digest handshake_hash;  ///< binds both sides to one transcript (section 11.2)
};

/// HandshakeState, section 5.3, for the one pattern that MPIsec uses. An initiator writes, then reads; a
/// responder reads, then writes. After an error the handshake is dead: every further call fails.
class HandshakeState {
  public:
    HandshakeState(Role role, Bytes prologue, const Secret& psk);

    /// A handshake message is an ephemeral public key, the payload and a tag.
    static constexpr std::size_t message_bytes(std::size_t payload) { return 32 + payload + tag_bytes; }

    /// Whoever learns the psk later can read the payload of message 1, which may be a replay.
    Result<std::vector<std::uint8_t>> write_message(Bytes payload);
    /// Returns the payload.
    Result<std::vector<std::uint8_t>> read_message(Bytes message);
    bool finished() const { return messages_ == 2; }
    /// Once, after finished().
    Result<Transport> split();

  private:
    friend struct FixedEphemeral;  // defined by the tests only: published vectors need known ephemeral keys

    enum class Turn { write, read };
    bool may(Turn turn) const;
    Result<void> mix_ephemerals();

    Role role_;
    SymmetricState symmetric_;
    Secret psk_;
    std::optional<KeyPair> ephemeral_;
    PublicKey remote_ephemeral_{};
    int messages_ = 0;
    bool dead_ = false;
};

}  // namespace mpisec::keys::noise
