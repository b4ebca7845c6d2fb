// A script of EVP calls, read from bytes, done by two implementations of one cipher at once: whatever one of them
// answers, the other does.
#pragma once

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace mpisec::provider::test {

inline constexpr std::array script_ciphers = {
    "AES-128-ECB",     "AES-192-ECB",  "AES-256-ECB",  "AES-128-CBC",     "AES-192-CBC",
    "AES-256-CBC",     "AES-128-CFB",  "AES-192-CFB",  "AES-256-CFB",     "AES-128-CFB8",
    "AES-192-CFB8",    "AES-256-CFB8", "AES-128-OFB",  "AES-192-OFB",     "AES-256-OFB",
    "AES-128-CTR",     "AES-192-CTR",  "AES-256-CTR",  "AES-128-XTS",     "AES-256-XTS",
    "AES-128-GCM",     "AES-192-GCM",  "AES-256-GCM",  "AES-128-CBC-CTS", "AES-192-CBC-CTS",
    "AES-256-CBC-CTS", "AES-128-CFB1", "AES-192-CFB1", "AES-256-CFB1",    "ChaCha20-Poly1305"};

/// Bytes of the script; zeros when they are all read.
class Reader {
  public:
    Reader(const std::uint8_t* data, std::size_t n) : at_(data), end_(data + n) {}
    bool empty() const { return at_ == end_; }
    std::uint8_t byte() { return at_ == end_ ? std::uint8_t{0} : *at_++; }
    std::size_t number() {
        const std::size_t high = byte();
        return high << 8 | byte();
    }
    template <std::size_t n>
    std::array<std::uint8_t, n> bytes() {
        std::array<std::uint8_t, n> all{};
        for (std::uint8_t& one : all) one = byte();
        return all;
    }

  private:
    const std::uint8_t *at_, *end_;
};

/// What a call answered.
struct Answer {
    int result = 0, n = 0;
    std::vector<std::uint8_t> bytes;
    bool operator==(const Answer&) const = default;
};

/// One implementation in the middle of the script.
class Performer {
  public:
    explicit Performer(const EVP_CIPHER* cipher) : cipher_(cipher), context_(EVP_CIPHER_CTX_new()) {}
    Performer(const Performer&) = delete;
    Performer& operator=(const Performer&) = delete;
    ~Performer() { EVP_CIPHER_CTX_free(context_); }

    Answer init(const std::uint8_t* key, const std::uint8_t* iv, int encrypt) {
        const EVP_CIPHER* cipher = made_ ? nullptr : cipher_;
        made_ = true;
        return {EVP_CipherInit_ex2(context_, cipher, key, iv, encrypt, nullptr), 0, {}};
    }
    Answer update(const std::vector<std::uint8_t>& in, bool in_place, bool whole) {
        std::vector<std::uint8_t> out(in.size() + 48, 0xee);
        if (in_place) std::copy(in.begin(), in.end(), out.begin());
        const std::uint8_t* from = in_place ? out.data() : in.data();
        Answer answer;
        if (whole) {  // EVP_Cipher: whole blocks, where the mode has them
            answer.result = EVP_Cipher(context_, out.data(), from, static_cast<unsigned>(in.size()));
            answer.n = std::max(0, answer.result);
        } else {
            answer.result =
                EVP_CipherUpdate(context_, out.data(), &answer.n, from, static_cast<int>(in.size()));
        }
        return written(answer, out);
    }
    Answer associate(const std::vector<std::uint8_t>& in) {
        Answer answer;
        answer.result =
            EVP_CipherUpdate(context_, nullptr, &answer.n, in.data(), static_cast<int>(in.size()));
        if (answer.result != 1) answer.n = 0;
        return answer;
    }
    Answer final() {
        std::vector<std::uint8_t> out(48, 0xee);
        Answer answer;
        answer.result = EVP_CipherFinal_ex(context_, out.data(), &answer.n);
        return written(answer, out);
    }
    Answer copy() {
        EVP_CIPHER_CTX* other = EVP_CIPHER_CTX_new();
        const int result = EVP_CIPHER_CTX_copy(other, context_);
        EVP_CIPHER_CTX_free(context_);
        context_ = other;
        return {result, 0, {}};
    }
    Answer vector() {
        Answer answer;
        answer.bytes.resize(16);
        answer.result = EVP_CIPHER_CTX_get_updated_iv(context_, answer.bytes.data(), 16);
        answer.bytes.resize(32);
        answer.result += 2 * EVP_CIPHER_CTX_get_original_iv(context_, answer.bytes.data() + 16, 16);
        answer.n = EVP_CIPHER_CTX_get_num(context_);
        return answer;
    }
    Answer padding(int on) { return {EVP_CIPHER_CTX_set_padding(context_, on), 0, {}}; }
    Answer control(int what, int n, const std::uint8_t* bytes) {
        Answer answer;
        answer.bytes.resize(64);
        if (bytes) std::memcpy(answer.bytes.data(), bytes, 16);
        answer.result = EVP_CIPHER_CTX_ctrl(context_, what, n, answer.bytes.data());
        if (answer.result <= 0) answer.bytes.clear();
        return answer;
    }
    Answer stealing(const char* variant) {
        const OSSL_PARAM parameters[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, const_cast<char*>(variant), 0),
            OSSL_PARAM_construct_end()};
        return {EVP_CIPHER_CTX_set_params(context_, parameters), 0, {}};
    }

  private:
    static Answer written(Answer answer, const std::vector<std::uint8_t>& out) {
        if (answer.result <= 0) return {answer.result, 0, {}};
        answer.bytes.assign(out.begin(), out.begin() + answer.n);
        return answer;
    }

    const EVP_CIPHER* cipher_;
    EVP_CIPHER_CTX* context_;
    bool made_ = false;
};

/// What the step's number, taken from the script, means; both performers do it with the same arguments.
class Script {
  public:
    Script(Reader reader, int mode)
        : reader_(reader), mode_(mode), key_(reader_.bytes<64>()), iv_(reader_.bytes<16>()) {
        // Two equal keys of XTS are refused, which the behaviour's own tests look at.
        if (mode == EVP_CIPH_XTS_MODE) key_[0] = static_cast<std::uint8_t>(~key_[32]), key_[32 / 2] ^= 1;
        encrypt_ = reader_.byte() & 1;
    }
    bool over() const { return reader_.empty() || steps_ > 64; }
    bool encrypting() const { return encrypt_ != 0; }

    struct Step {
        int what = 0, encrypt = 0;
        bool text_begun = false;  ///< in this message
        bool counting = false;    ///< the vector is one of the counter's
        std::uint8_t flags = 0;
        std::vector<std::uint8_t> data;
        std::array<std::uint8_t, 16> small{};
    };
    Step first() const { return {15, encrypt_, false, false, 3, {}, {}}; }
    Step next() {
        ++steps_;
        Step step;
        step.what = reader_.byte() % 16;
        step.flags = reader_.byte();
        step.encrypt = encrypt_;
        step.small = reader_.bytes<16>();
        std::size_t n = reader_.number();
        n = step.flags & 0x80 ? n % 9000 : step.flags & 0x40 ? n % 1100 / 16 * 16 : n % 70;
        step.data.resize(n);
        step.text_begun = text_begun_;
        step.counting = counting_;
        if (step.what == 3 && mode_ == EVP_CIPH_GCM_MODE) counting_ = true, text_begun_ = false;
        if (step.what == 6 || step.what == 7 || step.what == 15) counting_ = false;
        if (step.what == 0 || step.what == 6 || step.what == 7 || (step.what == 15 && step.flags & 3))
            text_begun_ = false;
        if (step.what > 7 && step.what < 15) text_begun_ = true;
        std::uint8_t value = step.small[0];
        for (std::uint8_t& one : step.data) one = value = static_cast<std::uint8_t>(value * 5 + 17);
        return step;
    }
    Answer perform(Performer& performer, const Step& step) const {
        const bool chacha = mode_ == EVP_CIPH_STREAM_CIPHER, aead = chacha || mode_ == EVP_CIPH_GCM_MODE;
        switch (step.what) {
            case 0:
                return chacha ? end_of_chacha(performer, step) : performer.final();
            case 1:
                return performer.copy();
            case 2:
                return performer.vector();
            case 3:
                if (mode_ == EVP_CIPH_GCM_MODE) return count(performer, step);
                return performer.padding(step.flags & 1);
            case 4:
                // OpenSSL takes associated data after text, too, which no receiver would agree with.
                if (aead)
                    return chacha && step.text_begun ? performer.vector() : performer.associate(step.data);
                return performer.stealing(step.flags & 1 ? "CS3" : step.flags & 2 ? "CS2" : "cs1");
            case 5:
                if (!aead) return performer.update(whole_blocks(step.data), true, true);
                return encrypt_
                           ? performer.control(EVP_CTRL_AEAD_GET_TAG, step.small[1] % 18, nullptr)
                           : performer.control(EVP_CTRL_AEAD_SET_TAG, step.small[1] % 17, step.small.data());
            case 6:
                if (aead) {
                    const Answer told =
                        performer.control(EVP_CTRL_AEAD_SET_IVLEN, 1 + step.small[1] % 16, nullptr);
                    return chacha && told.result > 0 ? performer.init(nullptr, step.small.data(), -1) : told;
                }
                return performer.update(whole_blocks(step.data), (step.flags & 1) != 0, true);
            case 7:
                return performer.init(nullptr, step.small.data(), -1);
            case 15:
                // A key in the middle of a message, without a vector: OpenSSL goes on with a counter of zero.
                return performer.init(step.flags & 1 ? key_.data() : nullptr,
                                      step.flags & (aead ? 3 : 2) ? iv_.data() : nullptr, encrypt_);
            default:
                return performer.update(step.data, (step.flags & 1) != 0 && !in_blocks(), false);
        }
    }

  private:
    /// A message under the counter's next vector. OpenSSL carries past the beginning of a vector of less than 8 bytes, and lets another length or a
    /// vector from elsewhere count on: so the counter begins below that, and anew after those.
    static Answer count(Performer& performer, const Step& step) {
        std::array<std::uint8_t, 16> first = step.small;
        first[0] &= 0x7f;
        if (!step.counting || (step.flags & 1) != 0) {
            const Answer begun = performer.control(EVP_CTRL_GCM_SET_IV_FIXED, -1, first.data());
            if (begun.result <= 0) return begun;
        }
        return performer.control(EVP_CTRL_GCM_IV_GEN, step.small[1] % 18, nullptr);
    }
    /// OpenSSL's ChaCha20-Poly1305 goes on under the same vector after the tag, and accepts any message whose tag it was
    /// not told; ours does neither.
    Answer end_of_chacha(Performer& performer, const Step& step) const {
        if (!encrypt_) performer.control(EVP_CTRL_AEAD_SET_TAG, 16, step.small.data());
        Answer answer = performer.final();
        if (answer.result <= 0) return answer;
        answer.bytes = performer.control(EVP_CTRL_AEAD_GET_TAG, 16, nullptr).bytes;
        performer.init(nullptr, step.small.data(), -1);
        return answer;
    }

    /// What these modes keep from one call to the next is written before what is read: not in place.
    bool in_blocks() const { return mode_ == EVP_CIPH_ECB_MODE || mode_ == EVP_CIPH_CBC_MODE; }

    static std::vector<std::uint8_t> whole_blocks(std::vector<std::uint8_t> data) {
        data.resize(data.size() / 16 * 16);
        return data;
    }

    Reader reader_;
    int mode_, encrypt_ = 0, steps_ = 0;
    bool text_begun_ = false, counting_ = false;
    std::array<std::uint8_t, 64> key_;
    std::array<std::uint8_t, 16> iv_;
};

/// Empty when both did the same; else what differed. A step that failed ends the script: what a context is then is
/// not said anywhere.
inline std::string differing_step(const EVP_CIPHER* one, const EVP_CIPHER* other, const std::uint8_t* data,
                                  std::size_t n) {
    const int mode = EVP_CIPHER_get_mode(one);
    Script script(Reader(data, n), mode);
    std::string before;
    Performer left(one), right(other);
    for (Script::Step step = script.first();; step = script.next()) {
        const Answer expected = script.perform(left, step), got = script.perform(right, step);
        if (expected != got)
            return std::string(EVP_CIPHER_get0_name(one)) +
                   (script.encrypting() ? " encrypting" : " decrypting") + ", step " +
                   std::to_string(step.what) + " of " + std::to_string(step.data.size()) + " bytes, flags " +
                   std::to_string(step.flags) + ": result " + std::to_string(expected.result) + " and " +
                   std::to_string(got.result) + ", bytes " + std::to_string(expected.n) + " and " +
                   std::to_string(got.n) + "; before that " + before;
        if (expected.result <= 0 || script.over()) return {};
        before += std::to_string(step.what) + ":" + std::to_string(step.data.size()) + " ";
    }
}

}  // namespace mpisec::provider::test
