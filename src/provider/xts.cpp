// XTS (IEEE 1619): one call is one data unit, its number is the vector.
#include <openssl/crypto.h>

#include "provider/context.hpp"

namespace mpisec::provider {

int xts_update(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
               const unsigned char* in, std::size_t in_n) {
    constexpr std::size_t largest_unit = block_bytes << 20;
    auto& context = *static_cast<Context*>(opaque);
    const std::size_t half = context.traits->key_n / 2;
    if (room < in_n) return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    if (!context.keys.is_set() || !context.vector_set || !out || !in || in_n < block_bytes)
        return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    if (in_n > largest_unit) return raise(context.instance, PROV_R_XTS_DATA_UNIT_IS_TOO_LARGE);
    // Two equal keys undo what the second is for. Data that was encrypted so can still be read.
    if (context.encrypt && CRYPTO_memcmp(context.keys.bytes(), context.keys.bytes() + half, half) == 0)
        return raise(context.instance, PROV_R_XTS_DUPLICATED_KEYS);
    if (!context.keys.crypt(context.encrypt, out, in, in_n, context.iv))
        return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    *out_n = in_n;
    return 1;
}

}  // namespace mpisec::provider
