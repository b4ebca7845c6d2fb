// A batch of packets under one key, and what each thread of a GPU does for it. The same functions run on the
// host, thread after thread, for tests.
//
// A packet's blocks are dealt to threads in chunks of 1024: of a chunk with L threads, thread l takes blocks
// l, l + L, l + 2 L, …, 32 at most, so that neighbouring threads touch neighbouring blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/aes.hpp"
#include "gpu/ghash.hpp"
#include "gpu/windows.hpp"

namespace mpisec::gpu {

inline constexpr std::uint32_t lanes = 32;                             ///< threads of a full chunk
inline constexpr std::uint32_t chunk_blocks = lanes * blocks_at_once;  ///< 16 KiB
inline constexpr std::uint32_t tag_bytes = 16, nonce_bytes = 12;

/// Addresses are the device's. GCM's counters begin with 2.
struct Packet {
    const std::uint8_t* from;
    std::uint8_t* to;
    const std::uint8_t* ad;
    std::uint8_t* tag;  ///< written by sealing, compared by opening
    std::uint64_t bytes;
    std::uint32_t ad_bytes;
    std::uint32_t counter;   ///< of the first block
    std::uint32_t nonce[3];  ///< as little-endian words
    std::uint32_t thread;    ///< threads of the packets before it
    std::uint32_t chunk;     ///< chunks of those
    std::uint32_t unused = 0;
};

/// What belongs to a key, in the device's memory.
struct KeyMaterial {
    std::uint32_t round_keys[(most_rounds + 1) * planes];
    Element powers[chunk_blocks];  ///< H, H^2, …
    Element far_powers[3][255];    ///< H^(1024 d), H^(1024 * 256 d), H^(1024 * 65536 d) for d from 1
    Matrices matrices;             ///< of H^31, H^30, … one
};

enum class Task : std::uint32_t { counter_mode, seal, open };

/// The parameter of every kernel.
struct Batch {
    const Packet* packets;
    const std::uint32_t* round_keys;  ///< those of `key`
    const KeyMaterial* key;
    Block* masks;            ///< of each packet: its first block of key stream, which hides the tag
    Element* chunk_sums;     ///< of each chunk, zero at first
    Element* sums;           ///< of each packet, zero at first
    std::uint32_t* genuine;  ///< of each packet, after opening: 1 or 0
    std::uint32_t count, rounds;
    std::uint32_t threads, chunks;  ///< of all packets
    Task task;
};

/// Threads and chunks that `bytes` take: of no packet that lay_out() has let pass are they more than 32 bits can count.
MPISEC_BOTH_SIDES std::uint32_t blocks_of(std::uint64_t bytes) {
    return static_cast<std::uint32_t>((bytes + 15) / 16);
}
MPISEC_BOTH_SIDES std::uint32_t chunks_of(std::uint64_t bytes) {
    return (blocks_of(bytes) + chunk_blocks - 1) / chunk_blocks;
}
MPISEC_BOTH_SIDES std::uint32_t threads_of(std::uint64_t bytes) {
    return (blocks_of(bytes) + blocks_at_once - 1) / blocks_at_once;
}

/// What one thread works on.
struct Strand {
    std::uint32_t packet, chunk;  ///< chunk: within the packet
    std::uint32_t first, stride;  ///< blocks of the packet
    std::uint32_t count;
    std::uint32_t whole;   ///< of these, blocks of 16 bytes: all but perhaps the last one
    std::uint32_t behind;  ///< blocks of the chunk from the last one of this strand to the end, that included
    std::uint32_t behind_chunk;  ///< blocks of the packet after the chunk
};

MPISEC_BOTH_SIDES std::uint32_t smaller(std::uint32_t a, std::uint32_t b) {
    return a < b ? a : b;
}

/// The last packet for which `before` of it is at most `index`: those without threads are passed over.
template <class Before>
MPISEC_BOTH_SIDES std::uint32_t find_packet(const Batch& batch, std::uint32_t index, Before before) {
    std::uint32_t low = 0, high = batch.count;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (before(batch.packets[middle]) <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/// Bytes of a block; 16 but for the last one.
MPISEC_BOTH_SIDES std::uint32_t bytes_of_block(const Packet& packet, std::uint32_t block) {
    const std::uint64_t left = packet.bytes - std::uint64_t{16} * block;
    return left < 16 ? static_cast<std::uint32_t>(left) : 16;
}

MPISEC_BOTH_SIDES Strand strand_of(const Batch& batch, std::uint32_t thread) {
    Strand strand{};
    strand.packet = find_packet(batch, thread, [](const Packet& one) { return one.thread; });
    const Packet& packet = batch.packets[strand.packet];
    const std::uint32_t mine = thread - packet.thread, blocks = blocks_of(packet.bytes);
    strand.chunk = mine / lanes;
    const std::uint32_t lane = mine % lanes, start = strand.chunk * chunk_blocks;
    const std::uint32_t length = smaller(chunk_blocks, blocks - start);
    strand.stride = (length + blocks_at_once - 1) / blocks_at_once;
    strand.first = start + lane;
    strand.count = (length - lane + strand.stride - 1) / strand.stride;
    strand.whole =
        strand.count - (bytes_of_block(packet, strand.first + strand.stride * (strand.count - 1)) < 16);
    strand.behind = length - lane - strand.stride * (strand.count - 1);
    strand.behind_chunk = blocks - start - length;
    return strand;
}

/// H to a power below 2^34 that all may know.
MPISEC_BOTH_SIDES Element power(const KeyMaterial& key, std::uint64_t exponent) {
    const auto near = static_cast<std::uint32_t>(exponent % chunk_blocks);
    Element result = near ? key.powers[near - 1] : Element{{0, 0, 0, 0x80000000u}};  // one
    std::uint64_t far = exponent / chunk_blocks;
    MPISEC_KEEP_ROLLED
    for (unsigned i = 0; far; ++i, far /= 256)
        if (far % 256) result = multiply(result, key.far_powers[i][far % 256 - 1]);
    return result;
}

MPISEC_BOTH_SIDES void accumulate(Element& sum, const Element& more) {
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) exclusive_or(&sum.word[i], more.word[i]);
}

/// The counters of a strand's blocks.
MPISEC_BOTH_SIDES void load_counters(const Packet& packet, const Strand& strand,
                                     std::uint32_t state[planes]) {
    MPISEC_UNROLL
    for (unsigned i = 0; i < 96; ++i) state[i] = 0u - ((packet.nonce[i / 32] >> (i % 32)) & 1);
    MPISEC_UNROLL
    for (unsigned j = 0; j < blocks_at_once; ++j)
        state[96 + j] = swap_bytes(packet.counter + strand.first + strand.stride * j);
    transpose(state + 96);
}

/// The key stream of block j, out of 32.
MPISEC_BOTH_SIDES Block key_stream(const std::uint32_t state[planes], unsigned j) {
    return {{state[j], state[32 + j], state[64 + j], state[96 + j]}};
}
MPISEC_BOTH_SIDES Block exclusive_or(const Block& a, const Block& b) {
    return {{a.word[0] ^ b.word[0], a.word[1] ^ b.word[1], a.word[2] ^ b.word[2], a.word[3] ^ b.word[3]}};
}

/// The strand's blocks, one after the other, at addresses that need not be multiples of 16.
MPISEC_BOTH_SIDES void apply_anywhere(const Packet& packet, const Strand& strand,
                                      const std::uint32_t state[planes]) {
    Block stream[blocks_at_once];
    MPISEC_UNROLL
    for (unsigned j = 0; j < blocks_at_once; ++j) stream[j] = key_stream(state, j);
    MPISEC_KEEP_ROLLED
    for (std::uint32_t j = 0; j < strand.count; ++j) {
        const std::uint32_t at = strand.first + strand.stride * j, bytes = bytes_of_block(packet, at);
        const std::uint64_t offset = std::uint64_t{16} * at;
        store_block(packet.to + offset, exclusive_or(load_block(packet.from + offset, bytes), stream[j]),
                    bytes);
    }
}

/// The strand's blocks of 16 bytes, at multiples of 16.
MPISEC_BOTH_SIDES void apply_aligned(const Packet& packet, const Strand& strand,
                                     const std::uint32_t state[planes]) {
    const auto* from = reinterpret_cast<const Block*>(packet.from) + strand.first;
    auto* to = reinterpret_cast<Block*>(packet.to) + strand.first;
    MPISEC_UNROLL
    for (unsigned j = 0; j < blocks_at_once; ++j, from += strand.stride, to += strand.stride)
        if (j < strand.whole) *to = exclusive_or(*from, key_stream(state, j));
    if (strand.whole == strand.count) return;
    Block last{};
    MPISEC_UNROLL
    for (unsigned j = 0; j < blocks_at_once; ++j)
        if (j == strand.whole) last = key_stream(state, j);
    const std::uint32_t at = strand.first + strand.stride * strand.whole, bytes = bytes_of_block(packet, at);
    const std::uint64_t offset = std::uint64_t{16} * at;
    store_block(packet.to + offset, exclusive_or(load_block(packet.from + offset, bytes), last), bytes);
}

/// The counters of the first block of key stream of 32 packets.
MPISEC_BOTH_SIDES void load_first_counters(const Batch& batch, std::uint32_t first,
                                           std::uint32_t state[planes]) {
    MPISEC_UNROLL
    for (unsigned j = 0; j < blocks_at_once; ++j) {
        const Packet& packet = batch.packets[smaller(first + j, batch.count - 1)];
        MPISEC_UNROLL
        for (unsigned word = 0; word < 3; ++word) state[32 * word + j] = packet.nonce[word];
        state[96 + j] = swap_bytes(1);
    }
    MPISEC_UNROLL
    for (unsigned word = 0; word < 4; ++word) transpose(state + 32 * word);
}

/// Threads that compute masks: none in counter mode.
MPISEC_BOTH_SIDES std::uint32_t mask_threads(const Batch& batch) {
    return batch.task == Task::counter_mode ? 0 : (batch.count + blocks_at_once - 1) / blocks_at_once;
}

/// The strand's blocks, encrypted or decrypted in counter mode; or, behind all strands, the masks of 32 packets.
MPISEC_BOTH_SIDES void crypt_thread(const Batch& batch, std::uint32_t thread) {
    std::uint32_t state[planes];
    Strand strand{};
    const bool is_strand = thread < batch.threads;
    const std::uint32_t first = (thread - batch.threads) * blocks_at_once;
    if (is_strand) {
        strand = strand_of(batch, thread);
        load_counters(batch.packets[strand.packet], strand, state);
    } else {
        load_first_counters(batch, first, state);
    }
    encrypt(state, batch.round_keys, batch.rounds);
    MPISEC_UNROLL
    for (unsigned word = 0; word < 4; ++word) transpose(state + 32 * word);
    if (!is_strand) {
        MPISEC_UNROLL
        for (unsigned j = 0; j < blocks_at_once; ++j)
            if (first + j < batch.count) batch.masks[first + j] = key_stream(state, j);
        return;
    }
    const Packet& packet = batch.packets[strand.packet];
    if (is_aligned(packet.from) && is_aligned(packet.to))
        apply_aligned(packet, strand, state);
    else
        apply_anywhere(packet, strand, state);
}

/// GHASH of the strand's blocks of ciphertext, for the sum of its chunk: each block by the power of H that its place
/// asks for, so that a strand is reduced once.
MPISEC_BOTH_SIDES void hash_thread(const Batch& batch, std::uint32_t thread) {
    const Strand strand = strand_of(batch, thread);
    const Packet& packet = batch.packets[strand.packet];
    const std::uint8_t* ciphertext = batch.task == Task::open ? packet.from : packet.to;
    const bool aligned = is_aligned(ciphertext);
    const Element* of_last = batch.key->powers + strand.behind - 1;
    ElementSum sum{};
    MPISEC_KEEP_ROLLED
    for (std::uint32_t j = 0; j < strand.count; ++j) {
        const std::uint32_t at = strand.first + strand.stride * j;
        const std::uint8_t* from = ciphertext + std::uint64_t{16} * at;
        const Block block = aligned && j < strand.whole ? *reinterpret_cast<const Block*>(from)
                                                        : load_block(from, bytes_of_block(packet, at));
        add_product(sum, element_of(block), of_last[strand.stride * (strand.count - 1 - j)]);
    }
    accumulate(batch.chunk_sums[packet.chunk + strand.chunk], value_of(sum));
}

/// The same where the GPU multiplies matrices of bits: a warp takes a chunk, whose windows end where the chunk ends, and each lane a
/// window.
MPISEC_BOTH_SIDES void hash_windows_thread(const Batch& batch, std::uint32_t thread) {
    const std::uint32_t chunk = thread / lanes, lane = thread % lanes;
    const Packet& packet =
        batch.packets[find_packet(batch, chunk, [](const Packet& one) { return one.chunk; })];
    const std::uint32_t start = (chunk - packet.chunk) * chunk_blocks;
    const std::uint32_t length = smaller(chunk_blocks, blocks_of(packet.bytes) - start);
    const std::uint32_t windows = (length + window_blocks - 1) / window_blocks;
    const std::uint32_t missing = windows * window_blocks - length;  // blocks of the first window
    const std::uint8_t* ciphertext = batch.task == Task::open ? packet.from : packet.to;
    const bool whole = is_aligned(ciphertext) && bytes_of_block(packet, start + length - 1) == 16;
    const auto load = [&](std::uint32_t group, std::uint32_t window, std::uint32_t block) {
        const std::uint32_t at = (group * group_windows + window) * window_blocks + block - missing;
        if (at >= length) return Block{};  // before the first or behind the last one
        const std::uint8_t* from = ciphertext + std::uint64_t{16} * (start + at);
        return whole ? *reinterpret_cast<const Block*>(from)
                     : load_block(from, bytes_of_block(packet, start + at));
    };
    const std::uint32_t groups = (windows + group_windows - 1) / group_windows;
    const Parities parities = parities_for(lane, batch.key->matrices, groups, load);
    Element mine{};
    if (lane < windows)
        mine = multiply(element_of(window_of(parities, lane % group_windows / 2)),
                        batch.key->powers[(windows - 1 - lane) * window_blocks]);
    accumulate_of_warp(batch.chunk_sums[chunk], mine, lane);
}

/// A chunk's sum to its place in the packet: behind it are the rest of the packet and the block of lengths.
MPISEC_BOTH_SIDES void fold_thread(const Batch& batch, std::uint32_t chunk) {
    const std::uint32_t at = find_packet(batch, chunk, [](const Packet& one) { return one.chunk; });
    const Packet& packet = batch.packets[at];
    const std::uint32_t end = (chunk - packet.chunk + 1) * chunk_blocks, blocks = blocks_of(packet.bytes);
    const std::uint32_t after = end < blocks ? blocks - end : 0;
    accumulate(batch.sums[at],
               multiply(batch.chunk_sums[chunk], power(*batch.key, std::uint64_t{after} + 1)));
}

/// The tag of a packet: written, or compared in constant time.
MPISEC_BOTH_SIDES void finish_thread(const Batch& batch, std::uint32_t at) {
    const Packet& packet = batch.packets[at];
    const Element& h = batch.key->powers[0];
    Element sum{};
    MPISEC_KEEP_ROLLED
    for (std::uint32_t done = 0; done < packet.ad_bytes; done += 16) {
        const std::uint32_t bytes = smaller(16, packet.ad_bytes - done);
        sum = multiply(add(sum, element_of(load_block(packet.ad + done, bytes))), h);
    }
    sum = multiply(sum, power(*batch.key, std::uint64_t{blocks_of(packet.bytes)} + 1));
    const std::uint64_t bits = packet.bytes * 8, ad_bits = std::uint64_t{packet.ad_bytes} * 8;
    const Element lengths{{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32),
                           static_cast<std::uint32_t>(ad_bits), static_cast<std::uint32_t>(ad_bits >> 32)}};
    sum = add(add(sum, batch.sums[at]), multiply(lengths, h));
    Block tag = block_of(sum);
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) tag.word[i] ^= batch.masks[at].word[i];
    if (batch.task == Task::seal) return store_block(packet.tag, tag, tag_bytes);
    const Block given = load_block(packet.tag, tag_bytes);
    std::uint32_t different = 0;
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) different |= tag.word[i] ^ given.word[i];
    batch.genuine[at] = different == 0;
}

/// Zeros in place of what did not authenticate.
MPISEC_BOTH_SIDES void wipe_thread(const Batch& batch, std::uint32_t thread) {
    const Strand strand = strand_of(batch, thread);
    const Packet& packet = batch.packets[strand.packet];
    if (batch.genuine[strand.packet]) return;
    for (std::uint32_t j = 0; j < strand.count; ++j) {
        const std::uint32_t at = strand.first + strand.stride * j;
        store_block(packet.to + std::uint64_t{16} * at, Block{}, bytes_of_block(packet, at));
    }
}

}  // namespace mpisec::gpu
