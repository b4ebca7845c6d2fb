// Secrets must decide no branch and no address: timing and caches would tell them. As in Langley's ctgrind,
// the secret bytes are marked undefined, and valgrind's memcheck counts how often undefined bytes decide
// something.
//
// What may depend on them is one thing only: whether a tag, a file or a handshake is accepted, which
// everybody sees anyway. Each check therefore says how many decisions it expects, the same number whatever is
// wrong with the input and wherever: a comparison that stops at the first difference decides more often the
// later that is. Beside each check stands a variant that leaks on purpose and must be found.
//
// What this cannot see: valgrind executes AES-NI, PCLMULQDQ and AVX2 but neither AVX-512 nor VAES nor SHA
// extensions, so a library that has a path for these is checked on another of its paths.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../keys/fixed_ephemeral.hpp"
#include "aead/aead.hpp"
#include "base/constant_time.hpp"
#include "gpu/kernels.hpp"
#include "gpu/key.hpp"
#include "keys/key_file.hpp"

namespace {

bool key_text_is_secret = false;

}  // namespace

// Of what is read from a key file, the digits are secret.
extern "C" ssize_t read(int descriptor, void* bytes, size_t n) {
    const ssize_t got = syscall(SYS_read, descriptor, bytes, n);
    constexpr std::size_t digits = 13, between = 77, checksum = 78, end = 86;
    if (key_text_is_secret && got >= static_cast<ssize_t>(end)) {
        VALGRIND_MAKE_MEM_UNDEFINED(static_cast<char*>(bytes) + digits, between - digits);
        VALGRIND_MAKE_MEM_UNDEFINED(static_cast<char*>(bytes) + checksum, end - checksum);
    }
    return got;
}

namespace {

using namespace mpisec;

void make_secret(void* bytes, std::size_t n) {
    VALGRIND_MAKE_MEM_UNDEFINED(bytes, n);
}
void make_public(void* bytes, std::size_t n) {
    VALGRIND_MAKE_MEM_DEFINED(bytes, n);
}
template <class Value>
Value published(Value value) {
    make_public(&value, sizeof value);
    return value;
}

template <class Operation>
unsigned decisions_of(Operation operation) {
    const unsigned before = VALGRIND_COUNT_ERRORS;
    operation();
    return VALGRIND_COUNT_ERRORS - before;
}

int wrong = 0;

/// Keeps the compiler from leaving out what is leaked on purpose.
template <class Value>
void use(const Value& value) {
    asm volatile("" : : "r"(&value) : "memory");
}

void expect(const std::string& what, unsigned found, unsigned expected) {
    std::printf("%s %s: %u decisions, %u expected\n", found == expected ? "ok   " : "WRONG", what.c_str(),
                found, expected);
    if (found != expected) ++wrong;
}
void expect_leak(const std::string& what, unsigned found, unsigned harmless) {
    std::printf("%s %s, leaking on purpose: %u decisions, more than %u expected\n",
                found > harmless ? "ok   " : "WRONG", what.c_str(), found, harmless);
    if (found <= harmless) ++wrong;
}

// ---- The comparison of tags, for libraries that leave it to us.

bool leaky_equal_tags(std::uint8_t (&expected)[aead::tag_bytes], const std::uint8_t* received) {
    for (std::size_t i = 0; i < aead::tag_bytes; ++i)
        if (expected[i] != received[i]) return false;
    return true;
}

template <class Compare>
unsigned compare_tags(Compare compare, std::size_t differ_at) {
    std::uint8_t expected[aead::tag_bytes], received[aead::tag_bytes];
    for (std::size_t i = 0; i < sizeof expected; ++i)
        expected[i] = received[i] = static_cast<std::uint8_t>(i);
    if (differ_at < sizeof received) received[differ_at] ^= 1;
    make_secret(expected, sizeof expected);
    bool equal = false;
    const unsigned found = decisions_of([&] { equal = compare(expected, received); });
    if (published(equal) != (differ_at >= sizeof received)) ++wrong;
    return found;
}

void check_tags() {
    for (std::size_t differ_at : {0, 7, 8, 15, 16}) {
        const auto compare = [](std::uint8_t(&computed)[aead::tag_bytes], const std::uint8_t* received) {
            return is_right_tag(computed, received);
        };
        expect("is_right_tag", compare_tags(compare, differ_at), 0);
        expect_leak("is_right_tag", compare_tags(leaky_equal_tags, differ_at), 0);
    }
}

// ---- Key files.

std::array<std::uint8_t, 16> leaky_from_hex(const char* digits) {
    static const auto values = [] {
        std::array<std::uint8_t, 256> table{};
        for (int i = 0; i < 16; ++i)
            table[static_cast<unsigned char>("0123456789abcdef"[i])] = static_cast<std::uint8_t>(i);
        return table;
    }();
    std::array<std::uint8_t, 16> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(values[static_cast<unsigned char>(digits[2 * i])] << 4 |
                                             values[static_cast<unsigned char>(digits[2 * i + 1])]);
    return bytes;
}

struct KeyFile {
    KeyFile() {
        char name[] = "/tmp/mpisec-constant-time-XXXXXX";
        if (!mkdtemp(name)) std::abort();
        directory = name;
        path = directory + "/key";
        if (!keys::create_key_file(path)) std::abort();
    }
    ~KeyFile() {
        unlink(path.c_str());
        rmdir(directory.c_str());
    }
    void change(long at, char to) const {
        std::FILE* file = std::fopen(path.c_str(), "r+");
        if (std::fseek(file, at, SEEK_SET) != 0) std::abort();
        std::fputc(to, file);
        if (std::fclose(file) != 0) std::abort();
    }
    unsigned read(bool& good) const {
        key_text_is_secret = true;
        const unsigned found = decisions_of([&] { good = keys::read_key_file(path).has_value(); });
        key_text_is_secret = false;
        return found;
    }
    std::string directory, path;
};

void check_key_file() {
    bool good = false;
    // One decision: whether the key is accepted.
    expect("key file, good", KeyFile().read(good), 1);
    if (!good) ++wrong;
    for (long at : {13, 40, 76, 78, 85}) {
        KeyFile file;
        file.change(at, 'g');  // no digit
        expect("key file, no digit at " + std::to_string(at), file.read(good), 1);
        if (good) ++wrong;
    }
    for (const char* digits : {"00000000", "ffffffff"}) {
        KeyFile file;
        for (int i = 0; i < 8; ++i) file.change(78 + i, digits[i]);
        expect("key file, wrong checksum", file.read(good), 1);
        if (good) ++wrong;
    }
    keys::Secret key = keys::Secret::random();
    make_secret(key.data(), keys::secret_bytes);
    expect("fingerprint of a key", decisions_of([&] { keys::fingerprint(key); }), 0);

    char digits[] = "000102030405060708090a0b0c0d0e0f";
    make_secret(digits, 32);
    expect_leak("digits looked up in a table", decisions_of([&] { use(leaky_from_hex(digits)); }), 1);
}

// ---- The handshake: the psk, the ephemeral keys, what follows from them.

struct Side {
    Side(keys::noise::Role role, std::uint8_t seed, const keys::Secret& psk) : state(role, {}, psk) {
        keys::Secret ephemeral;
        std::memset(ephemeral.data(), seed, keys::secret_bytes);
        make_secret(ephemeral.data(), keys::secret_bytes);
        made = decisions_of([&] { keys::noise::FixedEphemeral::set(state, ephemeral); });
    }
    keys::noise::HandshakeState state;
    unsigned made = 0;
};

std::vector<std::uint8_t> write(Side& side, unsigned expected) {
    std::vector<std::uint8_t> message;
    expect("handshake, writing", decisions_of([&] { message = side.state.write_message({}).value(); }),
           expected);
    make_public(message.data(), message.size());
    return message;
}

bool read(Side& side, const std::vector<std::uint8_t>& message, const char* what, unsigned expected) {
    bool good = false;
    expect(what, decisions_of([&] { good = side.state.read_message(message).has_value(); }), expected);
    return good;
}

keys::Secret secret_psk() {
    keys::Secret psk;
    std::memset(psk.data(), 7, keys::secret_bytes);
    make_secret(psk.data(), keys::secret_bytes);
    return psk;
}

void check_noise() {
    using keys::noise::Role;
    const keys::Secret psk = secret_psk();
    for (int changed : {-1, 32, 47}) {  // nothing, first and last byte of the tag
        Side initiator(Role::initiator, 1, psk), responder(Role::responder, 2, psk);
        expect("ephemeral keys", initiator.made + responder.made, 0);
        // Message 1 is accepted or not: one decision.
        auto first = write(initiator, 0);
        if (changed >= 0) first[static_cast<std::size_t>(changed)] ^= 1;
        if (read(responder, first, "handshake, reading message 1", 1) != (changed < 0)) ++wrong;
        if (changed >= 0) continue;
        // Then whether X25519 gave zeros (RFC 7748, section 6.1), and whether message 2 is accepted.
        const auto second = write(responder, 1);
        if (!read(initiator, second, "handshake, reading message 2", 2)) ++wrong;
        expect("handshake, split", decisions_of([&] { (void)initiator.state.split().has_value(); }), 0);
    }
    keys::Secret one = secret_psk(), other = secret_psk();
    expect_leak("psk, compared byte by byte", decisions_of([&] {
                    bool equal = true;
                    for (std::size_t i = 0; i < keys::secret_bytes && equal; ++i)
                        equal = one.data()[i] == other.data()[i];
                    use(equal);
                }),
                1);
}

// ---- Crypto libraries: the key from its set-up on, sealing, and the tag on opening.

/// A cipher with a substitution table that the key indexes, and a comparison that stops early.
[[gnu::noinline]] int leaky_open(void* state, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                                 const std::uint8_t*, const std::uint8_t*, std::size_t) {
    static const std::array<std::uint8_t, 256> table = [] {
        std::array<std::uint8_t, 256> made{};
        for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::uint8_t>(i * 7 + 3);
        return made;
    }();
    const auto* key = static_cast<const std::uint8_t*>(state);
    std::uint8_t tag[aead::tag_bytes];
    for (std::size_t i = 0; i < sizeof tag; ++i) tag[i] = table[key[i]];
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
    return leaky_equal_tags(tag, from + n) ? 0 : -1;
}

struct Sealed {
    static constexpr std::size_t ad_bytes = 40;
    std::array<std::uint8_t, aead::nonce_bytes> nonce{1, 2, 3};
    std::array<std::uint8_t, ad_bytes> ad{};
    std::vector<std::uint8_t> bytes;
};

/// Opening decides whether the tag is right, and some libraries' callers look at the answer once more;
/// wherever a wrong tag is wrong, it decides as often.
void check_opening(const std::string& name, const aead::Key& key, const Sealed& good, std::size_t n) {
    constexpr unsigned most_decisions = 2;
    unsigned of_wrong_tags = 0;
    for (int changed : {-1, 0, 7, 8, 15}) {
        Sealed received = good;
        if (changed >= 0) received.bytes[n + static_cast<std::size_t>(changed)] ^= 1;
        std::vector<std::uint8_t> plain(n);
        bool opened = false;
        const unsigned found = decisions_of([&] {
            opened = key.open(plain.data(), received.bytes.data(), n, received.nonce.data(),
                              received.ad.data(), received.ad.size());
        });
        if (published(opened) != (changed < 0)) ++wrong;
        const std::string what = name + ", opening " + std::to_string(n) + " bytes, ";
        if (changed < 0) {
            expect(what + "right tag", found, std::clamp(found, 1u, most_decisions));
            continue;
        }
        if (changed == 0) of_wrong_tags = std::clamp(found, 1u, most_decisions);
        expect(what + "tag wrong at " + std::to_string(changed), found, of_wrong_tags);
    }
}

void check_cipher(const aead::Library& library, const aead::CipherInfo& cipher) {
    const std::string name = std::string(library.name()) + " " + std::string(cipher.name);
    std::uint8_t key_bytes[aead::max_key_bytes] = {9, 8, 7};
    make_secret(key_bytes, sizeof key_bytes);
    aead::Key key;
    expect(name + ", key", decisions_of([&] { key = library.make_key(cipher.id, key_bytes).value(); }), 0);
    for (std::size_t n : {0, 1, 16, 100, 1000}) {
        Sealed sealed;
        sealed.bytes.resize(n + aead::tag_bytes);
        std::vector<std::uint8_t> plain(n, 0x55);
        make_secret(plain.data(), n);
        bool good = false;
        expect(name + ", sealing " + std::to_string(n) + " bytes", decisions_of([&] {
                   good = key.seal(sealed.bytes.data(), plain.data(), n, sealed.nonce.data(),
                                   sealed.ad.data(), sealed.ad.size());
               }),
               0);
        if (!published(good)) ++wrong;
        make_public(sealed.bytes.data(), sealed.bytes.size());
        check_opening(name, key, sealed, n);
    }
}

// ---- The kernels of GPUs, on the host.

/// One packet of 3,000 bytes, its key and its plaintext secret.
struct GpuPacket {
    explicit GpuPacket(std::size_t key_bytes) : rounds(gpu::rounds_of(key_bytes)) {
        make_secret(key, sizeof key);
        made = decisions_of([&] { gpu::expand_key(std::span(key).first(key_bytes), *material); });
        make_secret(plain.data(), plain.size());
    }
    unsigned run(std::span<const gpu::Kernel> kernels, gpu::Task task, const std::uint8_t* from,
                 std::uint8_t* to) {
        gpu::Packet packet{from, to, ad, tag, plain.size(), sizeof ad, 2, {1, 2, 3}, 0, 0};
        const gpu::Extent extent = gpu::lay_out({&packet, 1}).value();
        gpu::Block mask{};
        std::vector<gpu::Element> chunks(extent.chunks);
        gpu::Element sum{};
        const gpu::Batch batch{
            &packet, material->round_keys, material.get(), &mask, chunks.data(), &sum, &genuine, 1,
            rounds,  extent.threads,       extent.chunks,  task};
        return decisions_of([&] { gpu::run_on_host(kernels, batch); });
    }
    std::uint8_t key[32] = {9, 8, 7}, tag[gpu::tag_bytes] = {}, ad[20] = {};
    std::unique_ptr<gpu::KeyMaterial> material = std::make_unique<gpu::KeyMaterial>();
    std::vector<std::uint8_t> plain = std::vector<std::uint8_t>(3000, 0x55), sealed = plain, opened = plain;
    unsigned rounds, made = 0;
    std::uint32_t genuine = 2;
};

/// SubBytes by a table, which the key indexes.
[[gnu::noinline]] std::uint8_t leaky_substitute(std::uint8_t byte) {
    static const std::array<std::uint8_t, 256> table{0x63, 0x7c, 0x77, 0x7b};
    return table[byte];
}

void check_gpu() {
    for (const std::size_t key_bytes : {16, 32}) {
        const gpu::Kernel& hash = key_bytes == 16 ? gpu::kernel::hash : gpu::kernel::hash_windows;
        const std::string name = "AES-" + std::to_string(8 * key_bytes) + " of GPUs";
        GpuPacket one(key_bytes);
        expect(name + ", key", one.made, 0);
        expect(
            name + ", sealing",
            one.run(kernels_of(gpu::Task::seal, hash), gpu::Task::seal, one.plain.data(), one.sealed.data()),
            0);
        make_public(one.sealed.data(), one.sealed.size());
        make_public(one.tag, sizeof one.tag);
        for (const bool forged : {false, true}) {
            if (forged) one.tag[7] ^= 1;
            // All but the last kernel, which does what the answer says.
            auto kernels = kernels_of(gpu::Task::open, hash);
            kernels.pop_back();
            expect(name + ", opening",
                   one.run(kernels, gpu::Task::open, one.sealed.data(), one.opened.data()), 0);
            if (published(one.genuine) != (forged ? 0u : 1u)) ++wrong;
        }
        expect_leak(name + " by a table", decisions_of([&] { use(leaky_substitute(one.key[0])); }), 0);
    }
}

void check_library(const std::string& name) {
    auto library = aead::load(name);
    if (!library) {
        std::printf("WRONG %s\n", library.error().message.c_str());
        ++wrong;
        return;
    }
    int checked = 0;
    for (const aead::CipherInfo& cipher : aead::ciphers()) {
        if (!(*library)->has(cipher.id)) continue;
        check_cipher(**library, cipher);
        ++checked;
    }
    if (checked == 0) std::printf("NOT CHECKED: %s offers no cipher under valgrind\n", name.c_str());
    std::uint8_t key[aead::max_key_bytes] = {};
    make_secret(key, sizeof key);
    const std::uint8_t forged[aead::tag_bytes] = {};
    expect_leak("a library with a table and an early end",
                decisions_of([&] { use(leaky_open(key, nullptr, forged, 0, nullptr, nullptr, 0)); }), 2);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2 || !RUNNING_ON_VALGRIND) {
        std::fprintf(stderr, "usage: valgrind constant_time tags | key_file | noise | gpu | LIBRARY\n");
        return 2;
    }
    (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const std::string part = argv[1];
    if (part == "tags")
        check_tags();
    else if (part == "key_file")
        check_key_file();
    else if (part == "noise")
        check_noise();
    else if (part == "gpu")
        check_gpu();
    else
        check_library(part);
    std::printf("%s: %d wrong\n", part.c_str(), wrong);
    return wrong == 0 ? 0 : 1;
}
