// The registry, MPISEC_AEAD's values, the remembered calibration and KeySet.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>

#include "../required.hpp"
#include "aead/aead.hpp"
#include "aead/calibration.hpp"
#include "aead/self_test.hpp"
#include "aead/throughput.hpp"

namespace mpisec::aead {
namespace {

namespace fs = std::filesystem;

class Select : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/mpisec-aead-XXXXXX";
        directory_ = mkdtemp(name);
        cache_ = (directory_ / "cache" / "calibration.json").string();
    }
    void TearDown() override { fs::remove_all(directory_); }

    std::string read_cache() const {
        std::stringstream text;
        text << std::ifstream(cache_).rdbuf();
        return text.str();
    }
    void write_cache(const std::string& text) const { std::ofstream(cache_) << text; }

    fs::path directory_;
    std::string cache_;
};

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

/// Up to where the loader maps the file.
std::uint64_t loaded_bytes(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    Elf64_Ehdr head{};
    in.read(reinterpret_cast<char*>(&head), sizeof head);
    std::vector<Elf64_Phdr> segments(head.e_phnum);
    in.seekg(static_cast<std::streamoff>(head.e_phoff));
    in.read(reinterpret_cast<char*>(segments.data()),
            static_cast<std::streamsize>(segments.size() * sizeof segments[0]));
    std::uint64_t end = 0;
    for (const Elf64_Phdr& segment : segments)
        if (segment.p_type == PT_LOAD) end = std::max(end, segment.p_offset + segment.p_filesz);
    return end;
}

TEST(Ciphers, NamesAndNumbersAgree) {
    for (const CipherInfo& entry : ciphers()) {
        EXPECT_EQ(cipher_by_name(entry.name), entry.id);
        EXPECT_EQ(info(entry.id).name, entry.name);
        EXPECT_LE(entry.key_bytes, max_key_bytes);
    }
    EXPECT_FALSE(cipher_by_name("aes-512-gcm"));
    EXPECT_EQ(static_cast<int>(Cipher::aes_128_gcm), 1);  // numbers travel in the handshake
    EXPECT_EQ(static_cast<int>(Cipher::aegis_128x4), 7);
}

TEST(Registry, OpensslIsAlwaysThere) {
    std::vector<std::string> names = available();
    EXPECT_NE(std::find(names.begin(), names.end(), "openssl"), names.end());
}

TEST(Registry, EveryPluginOpensUnderItsOwnNameOnce) {
    for (const std::string& name : available()) {
        Result<const Library*> library = load(name);
        ASSERT_TRUE(library) << library.error().message;
        EXPECT_EQ((*library)->name(), name);
        EXPECT_FALSE((*library)->version().empty());
        EXPECT_EQ(*load(name), *library);
    }
}

TEST(Registry, UnknownLibraryErrorListsWhatIsThere) {
    Result<const Library*> library = load("nosuch");
    ASSERT_FALSE(library);
    EXPECT_TRUE(contains(library.error().message, "\"nosuch\""));
    for (const std::string& name : available()) EXPECT_TRUE(contains(library.error().message, name)) << name;
}

TEST(Registry, NameNeverLeavesTheDirectory) {
    EXPECT_FALSE(load("../mpisec/openssl"));
    EXPECT_FALSE(load(""));
}

TEST(Registry, ForeignFileIsAnError) {
    char directory[] = "/tmp/mpisec-aead-XXXXXX";
    ASSERT_TRUE(mkdtemp(directory));
    std::ofstream(std::string(directory) + "/libmpisec-aead-junk.so") << "not a shared object";
    Result<const Library*> library = load("junk", directory);
    ASSERT_FALSE(library);
    EXPECT_TRUE(contains(library.error().message, "libmpisec-aead-junk.so"));
    fs::remove_all(directory);
}

TEST_F(Select, PluginThatIsCutOffIsAnErrorThatNamesIt) {
    const fs::path whole = fs::path(plugin_directory()) / "libmpisec-aead-openssl.so";
    for (unsigned eighths = 0; eighths < 8; ++eighths) {
        const std::string name = "part" + std::to_string(eighths);
        const fs::path part = directory_ / ("libmpisec-aead-" + name + ".so");
        fs::copy_file(whole, part);
        // The sections that follow the loaded ones are not needed.
        fs::resize_file(part, loaded_bytes(whole) * eighths / 8);
        Result<const Library*> library = load(name, directory_);
        ASSERT_FALSE(library) << name;
        EXPECT_TRUE(contains(library.error().message, part.string())) << library.error().message;
    }
}

TEST(Registry, EmptyDirectoryHasNone) {
    EXPECT_TRUE(available("/nonexistent").empty());
    EXPECT_TRUE(contains(load("openssl", "/nonexistent").error().message, "there are: none"));
}

TEST(Registry, CipherThatALibraryLacksIsAnErrorThatListsItsCiphers) {
    const Library* openssl = *load("openssl");
    std::array<std::uint8_t, max_key_bytes> bytes{};
    Result<Key> key = openssl->make_key(Cipher::aegis_128l, bytes.data());
    ASSERT_FALSE(key);
    EXPECT_TRUE(contains(key.error().message, "aegis-128l"));
    EXPECT_TRUE(contains(key.error().message, "aes-256-gcm"));
}

TEST_F(Select, PinnedLibraryAndCipher) {
    Result<Selection> selection = select("openssl:aes-128-gcm", cache_);
    ASSERT_TRUE(selection) << selection.error().message;
    EXPECT_EQ(selection->cipher, Cipher::aes_128_gcm);
    for (const Library* library : selection->library) EXPECT_EQ(library->name(), "openssl");
    EXPECT_FALSE(fs::exists(cache_));  // nothing was measured
}

TEST_F(Select, PinnedLibraryTakesTheDefaultCipher) {
    EXPECT_EQ(select("openssl", cache_)->cipher, Cipher::aes_256_gcm);
}

TEST_F(Select, LibraryWithoutTheDefaultCipherTakesItsFirst) {
    if (!load("aegis")) MPISEC_NOT_TESTED("this build is without the plug-in aegis");
    EXPECT_EQ(select("aegis", cache_)->cipher, Cipher::aegis_128l);
}

TEST_F(Select, AutoIsAes256Gcm) {
    for (const char* setting : {"auto", "", "auto:aes-256-gcm", "aes-256-gcm"}) {
        Result<Selection> selection = select(setting, cache_);
        ASSERT_TRUE(selection) << setting;
        EXPECT_EQ(selection->cipher, Cipher::aes_256_gcm) << setting;
        for (const Library* library : selection->library) ASSERT_NE(library, nullptr);
    }
    EXPECT_EQ(select("chacha20-poly1305", cache_)->cipher, Cipher::chacha20_poly1305);
}

TEST_F(Select, ErrorsNameTheSettingAndWhatIsAccepted) {
    std::string unknown = select("nosuch", cache_).error().message;
    EXPECT_TRUE(contains(unknown, "nosuch") && contains(unknown, "openssl")) << unknown;
    std::string cipher = select("openssl:rot13", cache_).error().message;
    EXPECT_TRUE(contains(cipher, "rot13") && contains(cipher, "aes-256-gcm")) << cipher;
    std::string lacking = select("openssl:aegis-256", cache_).error().message;
    EXPECT_TRUE(contains(lacking, "aegis-256") && contains(lacking, "chacha20-poly1305")) << lacking;
}

TEST_F(Select, CalibrationIsRememberedPrivately) {
    ASSERT_TRUE(select("auto", cache_));
    struct stat file {};
    ASSERT_EQ(stat(cache_.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600u);
    // No temporary is left.
    EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(cache_).parent_path()), {}), 1);
    std::string first = read_cache();
    ASSERT_TRUE(select("auto", cache_));
    EXPECT_EQ(read_cache(), first);  // recalled, not measured again
    ASSERT_TRUE(select("auto:aes-128-gcm", cache_));
    EXPECT_TRUE(contains(read_cache(), "aes-128-gcm"));
    EXPECT_TRUE(contains(read_cache(), "aes-256-gcm"));  // both are kept
}

TEST_F(Select, RememberedChoiceIsTaken) {
    CalibrationKey key = calibration_key(Cipher::aes_256_gcm, plugin_directory());
    remember(cache_, key, {"openssl", "openssl", "openssl"});
    Result<Selection> selection = select("auto", cache_);
    for (const Library* library : selection->library) EXPECT_EQ(library->name(), "openssl");
}

TEST_F(Select, RanksThatStartTogetherShareOneCalibration) {
    std::vector<Choice> choices(6);
    std::vector<std::thread> ranks;
    for (Choice& choice : choices)
        ranks.emplace_back([&] {
            if (Result<Selection> selection = select("auto", cache_))
                for (std::size_t i = 0; i < size_classes; ++i) choice[i] = selection->library[i]->name();
        });
    for (std::thread& rank : ranks) rank.join();
    EXPECT_FALSE(choices[0][0].empty());
    for (const Choice& choice : choices) EXPECT_EQ(choice, choices[0]);
}

TEST_F(Select, OtherMachineOrPluginIsMeasuredAnew) {
    CalibrationKey key = calibration_key(Cipher::aes_256_gcm, plugin_directory());
    remember(cache_, key, {"openssl", "openssl", "openssl"});
    ASSERT_TRUE(recall(cache_, key));
    for (std::string CalibrationKey::*field :
         {&CalibrationKey::cpu, &CalibrationKey::plugins, &CalibrationKey::cipher}) {
        CalibrationKey other = key;
        other.*field += "x";
        EXPECT_FALSE(recall(cache_, other));
    }
}

TEST_F(Select, DamagedCacheIsMeasuredAnew) {
    CalibrationKey key = calibration_key(Cipher::aes_256_gcm, plugin_directory());
    remember(cache_, key, {"openssl", "openssl", "openssl"});
    std::string good = read_cache();
    std::string wrong_names = good;
    wrong_names.replace(wrong_names.find("\"openssl\""), 9, "42");
    // As much as fits: copying or writing this again would take all of the stack.
    const std::size_t depth = 500'000;
    const std::string nested =
        "[{\"cpu\":\"x\",\"deep\":" + std::string(depth, '[') + std::string(depth, ']') + "}]";
    for (const std::string& text : std::vector<std::string>{
             "", "{", "[1,null,{}]", "{\"a\":1}", std::string("\xff\xfe\x00", 3), wrong_names,
             good.substr(0, good.size() / 2), std::string(2 << 20, '['), nested}) {
        write_cache(text);
        EXPECT_FALSE(recall(cache_, key)) << text.substr(0, 40);
        EXPECT_TRUE(select("auto", cache_)) << text.substr(0, 40);
        EXPECT_TRUE(recall(cache_, key)) << text.substr(0, 40);
    }
}

TEST_F(Select, RememberedLibraryThatIsGoneIsMeasuredAnew) {
    CalibrationKey key = calibration_key(Cipher::aes_256_gcm, plugin_directory());
    remember(cache_, key, {"gone", "../../x", "openssl"});
    Result<Selection> selection = select("auto", cache_);
    ASSERT_TRUE(selection);
    for (const Library* library : selection->library) EXPECT_NE(library->name(), "gone");
    EXPECT_NE((*recall(cache_, key))[0], "gone");
}

TEST_F(Select, UnwritableCacheIsNoError) {
    EXPECT_TRUE(select("auto", "/proc/nowhere/calibration.json"));
    EXPECT_TRUE(select("auto", ""));
}

// A plug-in whose open accepts everything: what a broken build of a crypto library could do.
const mpisec_aead_plugin& lenient_plugin() {
    static const mpisec_aead_plugin real = [] {
        mpisec_aead_plugin table{};
        table.abi = MPISEC_AEAD_PLUGIN_VERSION;
        table.name = "lenient";
        table.version = [] { return "0"; };
        table.has = [](int) { return 1; };
        table.key_new = [](int, const std::uint8_t*) -> void* { return new int; };
        table.key_free = [](void* state) { delete static_cast<int*>(state); };
        table.seal = [](void*, std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t*,
                        const std::uint8_t*, std::size_t) {
            for (std::size_t i = 0; i < n; ++i) to[i] = from[i] ^ 0xff;
            return 0;
        };
        table.open = [](void*, std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t*,
                        const std::uint8_t*, std::size_t) {
            for (std::size_t i = 0; i < n; ++i) to[i] = from[i] ^ 0xff;
            return 0;
        };
        return table;
    }();
    return real;
}

std::atomic<unsigned> sealed;

/// A slow library is timed in three rounds of 64 + 16 + 1 calls, a fast one in twelve at most: users wait for it.
TEST(Calibration, IsShort) {
    mpisec_aead_plugin at_once = lenient_plugin(), slow = at_once;
    at_once.seal = [](auto...) {
        ++sealed;
        return 0;
    };
    slow.seal = [](auto...) {
        ++sealed;
        std::this_thread::sleep_for(
            std::chrono::microseconds(200));  // three rounds of 81 take at least 48 ms of the 30
        return 0;
    };
    const Library fast_library(&at_once), slow_library(&slow);
    sealed = 0;
    calibrate({&slow_library}, Cipher::aes_256_gcm);
    EXPECT_EQ(sealed, 3 * 81u);
    sealed = 0;
    calibrate({&fast_library}, Cipher::aes_256_gcm);
    EXPECT_LE(sealed, 12 * 81u);
}

TEST(SelfTest, LibraryThatAcceptsForgeriesFails) {
    EXPECT_FALSE(self_test(Library(&lenient_plugin()), Cipher::aes_256_gcm));
    EXPECT_TRUE(self_test(**load("openssl"), Cipher::aes_256_gcm));
}

TEST(Throughput, TellsFastCiphersFromSlowOnes) {
    mpisec_aead_plugin at_once = lenient_plugin(), medium = at_once, slow = at_once, broken = at_once;
    at_once.seal = [](auto...) { return 0; };
    medium.seal = [](auto...) {
        using Clock = std::chrono::steady_clock;  // 64 KiB in 8 µs are 8.2 GB/s
        for (const auto end = Clock::now() + std::chrono::microseconds(8); Clock::now() < end;) {
        }
        return 0;
    };
    slow.seal = [](auto...) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        return 0;
    };
    broken.seal = [](auto...) { return 1; };
    for (const auto& [plugin, speed] : {std::pair(&at_once, Speed::fast),
                                        {&medium, Speed::medium},
                                        {&slow, Speed::slow},
                                        {&broken, Speed::slow}}) {
        const Library library(plugin);
        Selection selection;
        selection.library.fill(&library);
        EXPECT_EQ(speed_of(selection), speed);
    }
}

TEST(KeySet, SealsAndOpensAcrossSizeClassesAndMoves) {
    Result<Selection> selection = select("auto:aes-128-gcm", "");
    ASSERT_TRUE(selection);
    std::array<std::uint8_t, max_key_bytes> bytes{};
    std::array<std::uint8_t, nonce_bytes> nonce{};
    KeySet sender(*selection, bytes.data());
    KeySet receiver = KeySet(*selection, bytes.data());
    ASSERT_TRUE(sender);
    EXPECT_FALSE(KeySet());
    for (std::size_t n : {0, 1, 1024, 1025, 16384, 16385, 300000}) {
        std::vector<std::uint8_t> plain(n), sealed(n + tag_bytes), opened(n);
        std::iota(plain.begin(), plain.end(), std::uint8_t{0});
        nonce[0]++;
        ASSERT_TRUE(sender.seal(sealed.data(), plain.data(), n, nonce.data(), nullptr, 0));
        ASSERT_TRUE(receiver.open(opened.data(), sealed.data(), n, nonce.data(), nullptr, 0));
        EXPECT_EQ(opened, plain);
        KeySet moved(std::move(receiver));
        ASSERT_TRUE(moved.open(opened.data(), sealed.data(), n, nonce.data(), nullptr, 0));
        receiver = std::move(moved);
    }
    std::array<std::uint8_t, 4> byte{};
    EXPECT_FALSE(KeySet().seal(byte.data(), byte.data(), 0, nonce.data(), nullptr, 0));
}

}  // namespace
}  // namespace mpisec::aead
