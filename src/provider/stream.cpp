// CFB, CFB8, OFB, CTR: any number of bytes, and what is left of a block's keystream kept for the next call.
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

bool run(Context& context, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    if (context.traits->mode == mpisec_cfb8) return context.crypt(to, from, n);
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
