// The worked example of docs/protocol.md, made by the code that jobs run: key schedule, nonces, associated
// data, a small message and a large one, with AES-256-GCM.
//
//   worked_example            prints it
//   worked_example FILE       fails, showing the difference, unless FILE holds it word for word
//
// test_worked_example.py computes the same again from the document's statements alone.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "aead/aead.hpp"
#include "base/hex.hpp"
#include "keys/schedule.hpp"
#include "wire/collective.hpp"
#include "wire/partitioned.hpp"
#include "wire/stream.hpp"

namespace {

using namespace mpisec;
using Bytes = std::span<const std::uint8_t>;

// Threshold and segments are far below what the settings accept, so that a large message fits on a page.
constexpr std::int32_t source = 1, destination = 4, tag = 7;
constexpr std::uint32_t epoch = 2;
constexpr std::size_t threshold = 32, segment_bytes = 40, total = 80;
constexpr std::uint64_t small_counter = 5, large_counter = 6;
constexpr std::int32_t channel_tag = 3;
/// MPI_COMM_WORLD's of a job of six ranks, as the document derives it.
constexpr wire::ContextId context = {0x01, 0x19, 0xee, 0x67, 0x0e, 0x0c, 0x92, 0xca,
                                     0x9d, 0x74, 0x4a, 0x77, 0xe7, 0x0e, 0x7b, 0xef};

std::string text;

/// A name and its bytes, 32 on a line.
void show(const std::string& name, Bytes bytes) {
    std::string label = name;
    for (std::size_t at = 0; at < bytes.size(); at += 32) {
        label.resize(22, ' ');
        text += label + " ";
        text += hex(bytes.subspan(at, std::min<std::size_t>(32, bytes.size() - at))) + '\n';
        label.clear();
    }
}

bool must(bool good) {
    if (!good) std::fprintf(stderr, "worked_example: the crypto library failed\n");
    return good;
}

/// 0x20, 0x21, 0x22, …
std::vector<std::uint8_t> plaintext(std::size_t n) {
    std::vector<std::uint8_t> bytes(n);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0x20});
    return bytes;
}

bool small_message(const aead::Key& key) {
    const std::vector<std::uint8_t> plain = plaintext(16);
    const wire::Nonce nonce = wire::make_nonce({wire::Kind::small, epoch, small_counter});
    const wire::AssociatedData ad =
        wire::associated_data(wire::Kind::small, context, source, destination, tag, plain.size());
    std::vector<std::uint8_t> message(wire::small_wire_bytes(plain.size()));
    std::copy(nonce.begin(), nonce.end(), message.begin());
    show("small plaintext", plain);
    show("small nonce", nonce);
    show("small ad", ad);
    if (!must(key.seal(message.data() + nonce.size(), plain.data(), plain.size(), nonce.data(), ad.data(),
                       ad.size())))
        return false;
    show("small message", message);
    return true;
}

bool large_message(const aead::Library& library, const aead::Key& key, const keys::Secret& message_secret) {
    const std::vector<std::uint8_t> plain = plaintext(total);
    const wire::SegmentPlan plan{total, threshold, segment_bytes};
    const wire::Nonce nonce = wire::make_nonce({wire::Kind::large_header, epoch, large_counter});
    const std::size_t first_bytes = wire::large_first_wire_bytes(threshold);
    const wire::AssociatedData ad =
        wire::associated_data(wire::Kind::large_header, context, source, destination, tag, first_bytes);
    std::uint8_t header[wire::large_header_bytes];
    wire::encode({total, threshold, segment_bytes, channel_tag}, header);
    std::uint8_t key_bytes[keys::secret_bytes];
    keys::message_key(message_secret, large_counter, key_bytes);
    Result<aead::Key> message_key = library.make_key(aead::Cipher::aes_256_gcm, key_bytes);
    if (!must(message_key.has_value())) return false;

    show("large plaintext", plain);
    show("large nonce", nonce);
    show("large ad", ad);
    show("large header", header);
    show("message key", key_bytes);
    std::vector<std::uint8_t> first(first_bytes);
    std::copy(nonce.begin(), nonce.end(), first.begin());
    if (!must(
            key.seal(first.data() + nonce.size(), header, sizeof header, nonce.data(), ad.data(), ad.size())))
        return false;
    for (std::uint64_t segment = 0; segment < plan.count(); ++segment) {
        const wire::Nonce of_segment = wire::segment_nonce(segment, plan.is_last(segment));
        std::vector<std::uint8_t> sealed(plan.size(segment) + aead::tag_bytes);
        if (!must(message_key->seal(sealed.data(), plain.data() + plan.offset(segment), plan.size(segment),
                                    of_segment.data(), nullptr, 0)))
            return false;
        show("segment " + std::to_string(segment) + " nonce", of_segment);
        if (segment > 0) {
            show("segment " + std::to_string(segment), sealed);
            continue;
        }
        std::copy(sealed.begin(), sealed.end(), first.begin() + wire::sealed_header_bytes);
        show("first message", first);
    }
    return true;
}

/// Collective 9 on the same communicator, the 9th of epoch 0: sealed block 2 of rank 4.
bool sealed_block(const aead::Library& library, const keys::Secret& job_secret) {
    const keys::CollectiveSecret secret = keys::collective_secret(job_secret, context, 0);
    Result<aead::Key> key = library.make_key(aead::Cipher::aes_256_gcm, secret.aead.data());
    if (!must(key.has_value())) return false;
    const wire::SealedBlockName name{9, 4, 2};
    std::array<std::uint8_t, 16> plain;
    std::iota(plain.begin(), plain.end(), std::uint8_t{0x20});
    const wire::Nonce nonce = wire::sealed_block_nonce(9, name.sealer, name.index);
    const wire::SealedBlockAssociatedData ad =
        wire::sealed_block_associated_data(context, name, plain.size());
    std::uint8_t sealed[plain.size() + aead::tag_bytes];
    if (!must(key->seal(sealed, plain.data(), plain.size(), nonce.data(), ad.data(), ad.size())))
        return false;
    std::uint8_t own_key[keys::secret_bytes];
    keys::sealed_block_key(secret.sealed_block, nonce, own_key);
    show("collective aead", secret.aead.span());
    show("collective block", secret.sealed_block.span());
    show("block nonce", nonce);
    show("block ad", ad);
    show("sealed block", sealed);
    show("large block's key", own_key);
    return true;
}

/// The second start of a partitioned message of 4 partitions of 16 bytes: piece 2.
bool piece(const aead::Library& library, const keys::Secret& job_secret) {
    constexpr wire::ContextId name = {0x11, 0x88, 0xc3, 0xe0, 0xec, 0x2c, 0x0e, 0x5a,
                                      0xf7, 0x92, 0x29, 0x76, 0x93, 0x11, 0xab, 0x26};
    const wire::PartitionLayout layout{4, 16, 512 * 1024};
    std::uint8_t own_key[keys::secret_bytes];
    keys::partitioned_key(job_secret, name, 2, own_key);
    Result<aead::Key> key = library.make_key(aead::Cipher::aes_256_gcm, own_key);
    if (!must(key.has_value())) return false;
    std::array<std::uint8_t, 16> plain;
    std::iota(plain.begin(), plain.end(), std::uint8_t{0x20});
    const wire::Nonce nonce = wire::piece_nonce(2);
    const wire::PieceAssociatedData ad = wire::piece_associated_data(layout, 2);
    std::uint8_t sealed[wire::piece_index_bytes + plain.size() + aead::tag_bytes];
    store_le(sealed, std::uint64_t{2});
    if (!must(key->seal(sealed + wire::piece_index_bytes, plain.data(), plain.size(), nonce.data(), ad.data(),
                        ad.size())))
        return false;
    show("partitioned name", name);
    show("partitioned key", own_key);
    show("piece nonce", nonce);
    show("piece ad", ad);
    show("piece", sealed);
    return true;
}

bool example() {
    Result<const aead::Library*> library = aead::load("openssl");
    if (!library) {
        std::fprintf(stderr, "worked_example: %s\n", library.error().message.c_str());
        return false;
    }
    keys::Secret job_secret;
    std::iota(job_secret.data(), job_secret.data() + keys::secret_bytes, std::uint8_t{0});
    const keys::PairSecret pair = keys::pair_secret(job_secret, source, destination, epoch);
    Result<aead::Key> key = (*library)->make_key(aead::Cipher::aes_256_gcm, pair.aead.data());
    if (!must(key.has_value())) return false;
    show("job secret", job_secret.span());
    show("context", context);
    show("pair aead", pair.aead.span());
    show("pair message", pair.message.span());
    return small_message(*key) && large_message(**library, *key, pair.message) &&
           sealed_block(**library, job_secret) && piece(**library, job_secret);
}

/// The document must hold the example as one block, untouched.
bool held_by(const char* path) {
    std::ifstream file(path);
    std::ostringstream content;
    content << file.rdbuf();
    if (content.str().find("```text\n" + text + "```\n") != std::string::npos) return true;
    std::fprintf(stderr, "%s does not hold the worked example as the code makes it, which is:\n%s", path,
                 text.c_str());
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    if (!example()) return 2;
    if (argc > 1) return held_by(argv[1]) ? 0 : 1;
    std::fputs(text.c_str(), stdout);
    return 0;
}
