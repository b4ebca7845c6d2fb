#include "gpu/key.hpp"

#include <array>
#include <cstring>
#include <string>

#include "base/locked_slab.hpp"

namespace mpisec::gpu {
namespace {

// NIST SP 800-38D, section 5.2.1.1, allows 2^36 - 32: here blocks are counted in 32 bits up to the end of their chunk.
constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 36) - std::uint64_t{16} * chunk_blocks;
constexpr std::uint64_t most_threads = std::uint64_t{1} << 31;

using Word = std::array<std::uint8_t, 4>;

/// SubWord of the key schedule: the bytes as the first four blocks of a bitsliced state.
Word substitute_word(const Word& word) {
    std::uint32_t bits[8];
    for (unsigned k = 0; k < 8; ++k) {
        bits[k] = 0;
        for (unsigned i = 0; i < 4; ++i) bits[k] |= ((std::uint32_t{word[i]} >> k) & 1) << i;
    }
    substitute(bits);
    Word result{};
    for (unsigned k = 0; k < 8; ++k)
        for (unsigned i = 0; i < 4; ++i)
            result[i] = static_cast<std::uint8_t>(result[i] | (((bits[k] >> i) & 1) << k));
    return result;
}

/// FIPS 197, section 5.2: the bytes of all round keys.
void expand_bytes(std::span<const std::uint8_t> key, std::span<std::uint8_t> bytes) {
    const std::size_t key_words = key.size() / 4;
    std::memcpy(bytes.data(), key.data(), key.size());
    std::uint8_t constant = 1;
    for (std::size_t i = key_words; i < bytes.size() / 4; ++i) {
        Word word;
        std::memcpy(word.data(), &bytes[4 * (i - 1)], 4);
        if (i % key_words == 0) {
            word = substitute_word({word[1], word[2], word[3], word[0]});
            word[0] ^= constant;
            constant = static_cast<std::uint8_t>((constant << 1) ^ ((constant >> 7) * 0x1b));
        } else if (key_words == 8 && i % key_words == 4) {
            word = substitute_word(word);
        }
        for (std::size_t k = 0; k < 4; ++k)
            bytes[4 * i + k] = static_cast<std::uint8_t>(bytes[4 * (i - key_words) + k] ^ word[k]);
    }
}

/// The hash key: zero, encrypted.
Element hash_key(const KeyMaterial& material, unsigned rounds) {
    std::uint32_t state[planes] = {};
    encrypt(state, material.round_keys, rounds);
    Block block{};
    for (unsigned i = 0; i < planes; ++i) block.word[i / 32] |= (state[i] & 1) << (i % 32);
    explicit_bzero(state, sizeof state);
    return element_of(block);
}

/// Times the polynomial x (NIST SP 800-38D, section 6.3: a shift to the right).
Element times_x(const Element& a) {
    Element product{};
    for (unsigned i = 0; i < 4; ++i) product.word[i] = a.word[i] >> 1 | (i < 3 ? a.word[i + 1] << 31 : 0);
    product.word[3] ^= 0xe1000000u & (0u - (a.word[0] & 1));
    return product;
}

/// Multiplication of block i of a window by `power`: where windows.hpp wants the bits.
void set_matrix(Matrices& matrices, unsigned i, Element power) {
    Block images[128];  // of the block's bits
    for (unsigned exponent = 0; exponent < 128; ++exponent, power = times_x(power))
        images[exponent / 8 * 8 + 7 - exponent % 8] = block_of(power);
    for (unsigned k = 0; k < 16; ++k) {
        const unsigned from = k / 4, to = k % 4;
        std::uint32_t rows[32];
        for (unsigned bit = 0; bit < 32; ++bit) rows[bit] = images[32 * from + bit].word[to];
        transpose(rows);
        for (unsigned row = 0; row < 32; ++row) {
            const unsigned half = 4 * to + row % 4, lane = row / 4 * 4 + i % 4;
            matrices.of[i / 4 * 2 + from / 2][half / 2][lane].word[from % 2 * 2 + half % 2] = rows[row];
        }
        explicit_bzero(rows, sizeof rows);
    }
    explicit_bzero(images, sizeof images);
}

}  // namespace

unsigned rounds_of(std::size_t key_bytes) {
    return key_bytes == 16 ? 10 : key_bytes == 32 ? 14 : 0;
}

void expand_key(std::span<const std::uint8_t> key, KeyMaterial& material) {
    const unsigned rounds = rounds_of(key.size());
    std::array<std::uint8_t, 16 * (most_rounds + 1)> bytes{};
    expand_bytes(key, std::span(bytes).first(16 * (rounds + 1)));
    for (std::size_t i = 0; i < planes * (rounds + 1); ++i)
        material.round_keys[i] = 0u - ((std::uint32_t{bytes[i / 8]} >> (i % 8)) & 1);
    explicit_bzero(bytes.data(), bytes.size());
    material.powers[0] = hash_key(material, rounds);
    for (unsigned i = 1; i < chunk_blocks; ++i)
        material.powers[i] = multiply(material.powers[i - 1], material.powers[0]);
    Element step = material.powers[chunk_blocks - 1];
    for (auto& powers : material.far_powers) {
        powers[0] = step;
        for (unsigned i = 1; i < std::size(powers); ++i) powers[i] = multiply(powers[i - 1], step);
        step = multiply(powers[std::size(powers) - 1], step);
    }
    for (unsigned i = 0; i < window_blocks; ++i)
        set_matrix(material.matrices, i, power(material, window_blocks - 1 - i));
}

Result<Extent> lay_out(std::span<Packet> packets) {
    std::uint64_t threads = 0, chunks = 0;
    for (Packet& packet : packets) {
        if (packet.bytes > most_bytes)
            return fail("A packet of " + std::to_string(packet.bytes) + " bytes is too long: at most " +
                        std::to_string(most_bytes) + ".");
        if (packet.counter + std::uint64_t{blocks_of(packet.bytes)} > std::uint64_t{1} << 32)
            return fail("The counters of a packet would begin anew.");
        packet.thread = static_cast<std::uint32_t>(threads);
        packet.chunk = static_cast<std::uint32_t>(chunks);
        threads += threads_of(packet.bytes);
        chunks += chunks_of(packet.bytes);
        if (threads > most_threads) return fail("The packets of one batch are more than 1 TiB.");
    }
    if (packets.empty()) return fail("A batch has no packets.");
    return Extent{static_cast<std::uint32_t>(threads), static_cast<std::uint32_t>(chunks)};
}

}  // namespace mpisec::gpu
