// CFB, CFB1, CFB8, OFB, CTR: any number of bytes, and what is left of a block's keystream kept for the next call.
#include <algorithm>
#include <cstring>

#include "provider/context.hpp"

namespace mpisec::provider {
namespace {

/// The keystream of the block that is begun: of CTR in `buffer`, else in the vector itself, as OpenSSL has it and
/// shows it as the updated vector.
std::uint8_t* keystream(Context& context) {
    return context.traits->mode == mpisec_ctr ? context.buffer : context.iv;
}

/// Encrypts the next block of zeros, which gives its keystream.
bool begin_block(Context& context) {
    std::uint8_t* into = keystream(context);
    std::uint8_t zero[block_bytes] = {}, block[block_bytes] = {};
    const bool done = context.keys.crypt(context.encrypt, block, zero, block_bytes, context.iv);
    std::memcpy(into, block, block_bytes);
    return done;
}

void finish_bytes(Context& context, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    std::uint8_t* stream = keystream(context) + context.num;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint8_t in = from[i];
        to[i] = static_cast<std::uint8_t>(in ^ stream[i]);
        if (context.traits->mode == mpisec_cfb) stream[i] = context.encrypt ? to[i] : in;
    }
    context.num = static_cast<unsigned>((context.num + n) % block_bytes);
}

/// CFB1 of n bits (fewer than 8), the first of which is the highest; the others of the byte at `to` stay.
bool run_bits(Context& context, std::uint8_t* to, const std::uint8_t* from, unsigned n) {
    std::uint8_t before[block_bytes], in = *from, out = 0;
    std::memcpy(before, context.iv, block_bytes);
    if (!context.crypt(&out, &in, 1)) return false;
    // The byte was eight bits; the vector takes in the ciphertext of n of them.
    const unsigned ciphertext = context.encrypt ? out : in;
    for (unsigned i = 0; i < block_bytes; ++i) {
        const unsigned now = before[i], next = i + 1 < block_bytes ? before[i + 1] : ciphertext;
        context.iv[i] = static_cast<std::uint8_t>(now << n | next >> (8 - n));
    }
    const auto kept = static_cast<std::uint8_t>(0xff >> n);
    *to = static_cast<std::uint8_t>((*to & kept) | (out & ~kept));
    return true;
}

bool run(Context& context, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    const int mode = context.traits->mode;
    if (mode == mpisec_cfb1 && context.use_bits) {
        const std::size_t whole = n / 8, rest = n % 8;
        return (whole == 0 || context.crypt(to, from, whole)) &&
               (rest == 0 || run_bits(context, to + whole, from + whole, static_cast<unsigned>(rest)));
    }
    if (mode == mpisec_cfb8 || mode == mpisec_cfb1) return context.crypt(to, from, n);
    if (context.num > 0) {
        const std::size_t left = std::min(n, block_bytes - context.num);
        finish_bytes(context, to, from, left);
        to += left, from += left, n -= left;
    }
    const std::size_t whole = n / block_bytes * block_bytes;
    if (whole > 0 && !context.crypt(to, from, whole)) return false;
    if (n == whole) return true;
    if (!begin_block(context)) return false;
    finish_bytes(context, to + whole, from + whole, n - whole);
    return true;
}

}  // namespace

int stream_update(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
                  const unsigned char* in, std::size_t in_n) {
    auto& context = *static_cast<Context*>(opaque);
    if (!context.keys.is_set()) return raise(context.instance, PROV_R_NO_KEY_SET);
    *out_n = 0;
    if (in_n == 0) return 1;
    if (room < in_n) return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    if (!run(context, out, in, in_n)) return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    *out_n = in_n;
    return 1;
}

int stream_final(void* opaque, unsigned char*, std::size_t* out_n, std::size_t) {
    auto& context = *static_cast<Context*>(opaque);
    if (!context.keys.is_set()) return raise(context.instance, PROV_R_NO_KEY_SET);
    *out_n = 0;
    return 1;
}

}  // namespace mpisec::provider
