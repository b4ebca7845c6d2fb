#include "aead/short_hash.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/bytes.hpp"
#include "base/locked_slab.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#if defined(__clang__) && __clang_major__ >= 18 && __clang_major__ < 22
#define MPISEC_512_BITS ",evex512"  // zig turns it off, and AVX-512 does not turn it on again
#else
#define MPISEC_512_BITS ""
#endif
#define MPISEC_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq" MPISEC_512_BITS)))
#endif

namespace mpisec::aead {
namespace {

LockedSlab& hash_slab() {
    static LockedSlab& instance = *new LockedSlab(ShortHash::key_bytes);  // outlives static objects
    return instance;
}

struct Product {
    std::uint64_t low = 0, high = 0;
};

/// Takes the same time whatever the words are.
void add_product(Product& sum, std::uint64_t a, std::uint64_t b) {
    for (unsigned i = 0; i < 64; ++i) {
        const std::uint64_t mask = 0 - (b >> i & 1);
        sum.low ^= a << i & mask;
        sum.high ^= a >> 1 >> (63 - i) & mask;
    }
}

#if defined(__x86_64__)

MPISEC_WIDE inline __m512i add_products(__m512i sum, __m512i words) {
    return _mm512_xor_si512(sum, _mm512_clmulepi64_epi128(words, words, 0x01));
}

MPISEC_WIDE inline void store_sum(std::uint8_t* out, __m512i sums) {
    // The variants without masks use undefined registers, of which GCC 12 warns.
    const __m256i half = _mm256_xor_si256(_mm512_maskz_extracti64x4_epi64(0xF, sums, 0),
                                          _mm512_maskz_extracti64x4_epi64(0xF, sums, 1));
    const __m128i sum = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), sum);
}

MPISEC_WIDE void hash_wide(const std::uint8_t* key, const std::uint8_t* bytes, std::size_t n,
                           std::uint8_t* out) {
    __m512i first = _mm512_setzero_si512(), second = _mm512_setzero_si512();
    __m512i k = _mm512_load_si512(key);
    while (n >= 64) {
        const __m512i m = _mm512_loadu_si512(bytes), next = _mm512_load_si512(key += 64);
        first = add_products(first, _mm512_xor_si512(m, k));
        second = add_products(second, _mm512_xor_si512(m, next));
        k = next;
        bytes += 64;
        n -= 64;
    }
    if (n > 0) {
        const __m512i m = _mm512_maskz_loadu_epi8((std::uint64_t{1} << n) - 1, bytes);
        first = add_products(first, _mm512_xor_si512(m, k));
        second = add_products(second, _mm512_xor_si512(m, _mm512_load_si512(key + 64)));
    }
    store_sum(out, first);
    store_sum(out + 16, second);
}

/// What hash_wide() needs of the processor, and of the kernel, which must save the registers.
bool has_wide() {
    // Not __builtin_cpu_supports(), because its table is in a library that not every compiler provides.
    constexpr unsigned kept = 0xE6;  // SSE, AVX, opmask, both halves of ZMM (XCR0)
    constexpr unsigned wanted = bit_AVX512F | bit_AVX512BW | bit_AVX512VL;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
    unsigned low = 0, high = 0;
    asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & kept) == kept && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & wanted) == wanted &&
           (c & bit_VPCLMULQDQ) != 0;
}

const bool wide_here = has_wide();

#endif

}  // namespace

ShortHash::ShortHash(std::span<const std::uint8_t, key_bytes> key)
    : key_(static_cast<std::uint8_t*>(hash_slab().take())) {
    if (!key_) std::abort();  // no page left for its key
    std::memcpy(key_.get(), key.data(), key.size());
}

void ShortHash::WipedSlot::operator()(std::uint8_t* slot) const {
    hash_slab().give_back(slot);
}

bool ShortHash::is_fast() {
#if defined(__x86_64__)
    return wide_here;
#else
    return false;
#endif
}

void ShortHash::operator()(const std::uint8_t* bytes, std::size_t n, std::uint8_t* out) const {
#if defined(__x86_64__)
    if (wide_here) [[likely]]
        return hash_wide(key_.get(), bytes, n, out);
#endif
    portable(bytes, n, out);
}

void ShortHash::portable(const std::uint8_t* bytes, std::size_t n, std::uint8_t* out) const {
    Product halves[2];
    // Whole blocks of 64 bytes, as in the wide version: after its end the string continues with zeros.
    for (std::size_t at = 0; at < (n + 63) / 64 * 64; at += 16) {
        std::uint8_t pair[16] = {};
        if (at < n) std::memcpy(pair, bytes + at, std::min<std::size_t>(16, n - at));
        for (std::size_t half = 0; half < 2; ++half) {
            const std::uint8_t* key = key_.get() + at + 64 * half;
            add_product(halves[half], load_le<std::uint64_t>(pair) ^ load_le<std::uint64_t>(key),
                        load_le<std::uint64_t>(pair + 8) ^ load_le<std::uint64_t>(key + 8));
        }
    }
    for (std::size_t half = 0; half < 2; ++half) {
        store_le(out + 16 * half, halves[half].low);
        store_le(out + 16 * half + 8, halves[half].high);
    }
}

}  // namespace mpisec::aead
