#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

#include "keys/key_file.hpp"

namespace mpisec::keys {
namespace {

namespace fs = std::filesystem;

// The bytes 0 … 31; checksum from Python's hashlib.
const std::string example =
    "mpisec-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 1ecc1a8e\n";

class KeyFile : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "mpisec-key-test-XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        directory_ = name;
        path_ = (directory_ / "key").string();
    }
    void TearDown() override { fs::remove_all(directory_); }

    void write(const std::string& text, mode_t mode = 0600) {
        std::ofstream(path_) << text;
        ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    }
    std::string text() {
        std::ifstream file(path_);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    /// The error must name the file and hold `word`.
    void expect_refused(const std::string& word) {
        auto key = read_key_file(path_);
        ASSERT_FALSE(key) << "accepted, expected an error about: " << word;
        EXPECT_NE(key.error().message.find(word), std::string::npos) << key.error().message;
        EXPECT_NE(key.error().message.find(path_), std::string::npos) << key.error().message;
    }

    fs::path directory_;
    std::string path_;
};

/// As when the file's content was put into MPISEC_KEY_FILE: no file has a key as its name, and no sentence shows it.
TEST_F(KeyFile, AKeyIsNoPath) {
    const fs::path before = fs::current_path();
    fs::current_path(directory_);
    const std::string line = example.substr(0, example.size() - 1);
    for (const std::string& given : {line, " " + line, (directory_ / line).string()}) {
        const Result<void> results[] = {create_key_file(given),
                                        derive_key_file(given, Secret::random(), "job 7"),
                                        read_key_file(given).map([](const Secret&) {})};
        for (const Result<void>& result : results) {
            ASSERT_FALSE(result) << given;
            EXPECT_NE(result.error().message.find("there is a key itself"), std::string::npos);
            EXPECT_EQ(result.error().message.find("0405"), std::string::npos) << result.error().message;
        }
    }
    EXPECT_TRUE(fs::is_empty(directory_));
    // A file whose name only begins like this: with its directory.
    EXPECT_TRUE(create_key_file("./mpisec-key-of-this-job"));
    fs::current_path(before);
}

TEST_F(KeyFile, DerivedOnesFollowFromKeyAndLabel) {
    write(example);
    const auto from = read_key_file(path_);
    ASSERT_TRUE(from) << from.error().message;
    fs::remove(path_);
    ASSERT_TRUE(derive_key_file(path_, *from, "job 7"));
    // From Python's hmac and hashlib: HMAC(key, "mpisec v1 derived key job 7" | 1).
    EXPECT_EQ(text(),
              "mpisec-key-1 d7a72844f096796d1a1bcdac06ac4abb0a2eb"
              "60b7259c85d8e25bb106bf77650 63976852\n");
    EXPECT_EQ(fingerprint(read_key_file(path_).value()), "d1ac889b3000b501") << "as docs/protocol.md says";
    EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_FALSE(derive_key_file(path_, *from, "job 8")) << "it is there already";
}

TEST_F(KeyFile, CreatedOnesAreReadBack) {
    mode_t before = umask(0);
    ASSERT_TRUE(create_key_file(path_));
    umask(before);
    struct stat status;
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
    EXPECT_EQ(status.st_size, static_cast<off_t>(example.size()));
    auto first = read_key_file(path_), second = read_key_file(path_);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(std::memcmp(first->data(), second->data(), secret_bytes), 0);
    EXPECT_EQ(fingerprint(*first), fingerprint(*second));
}

TEST_F(KeyFile, UmaskCanNotTakeTheOwnersRights) {
    mode_t before = umask(0777);
    auto made = create_key_file(path_);
    umask(before);
    ASSERT_TRUE(made);
    EXPECT_TRUE(read_key_file(path_));
}

TEST_F(KeyFile, TwoKeysDiffer) {
    ASSERT_TRUE(create_key_file(path_));
    std::string first = text();
    fs::remove(path_);
    ASSERT_TRUE(create_key_file(path_));
    EXPECT_NE(text(), first);
}

TEST_F(KeyFile, NeverOverwrites) {
    write("something else");
    auto made = create_key_file(path_);
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message.find("not overwritten"), std::string::npos);
    EXPECT_EQ(text(), "something else");
}

TEST_F(KeyFile, ADanglingLinkIsNotFollowedWhenCreating) {
    ASSERT_EQ(symlink((directory_ / "elsewhere").c_str(), path_.c_str()), 0);
    EXPECT_FALSE(create_key_file(path_));
    EXPECT_FALSE(fs::exists(directory_ / "elsewhere"));
}

TEST_F(KeyFile, ParentDirectoriesAreMadePrivate) {
    path_ = (directory_ / "a" / "b" / "key").string();
    ASSERT_TRUE(create_key_file(path_));
    for (const char* made : {"a", "a/b"}) {
        struct stat status;
        ASSERT_EQ(stat((directory_ / made).c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777, 0700u);
    }
}

TEST_F(KeyFile, FormatIsTheDocumentedOne) {
    write(example);
    auto key = read_key_file(path_);
    ASSERT_TRUE(key) << key.error().message;
    for (std::size_t i = 0; i < secret_bytes; ++i) EXPECT_EQ(key->data()[i], i);
}

TEST_F(KeyFile, LastNewlineMayBeMissing) {
    write(example.substr(0, example.size() - 1));
    EXPECT_TRUE(read_key_file(path_));
}

TEST_F(KeyFile, AnyPermissionOfOthersIsRefused) {
    for (mode_t bit : {0040, 0020, 0010, 0004, 0002, 0001}) {
        write(example, 0600 | bit);
        expect_refused("open to others");
    }
    for (mode_t mode : {0600, 0400}) {
        write(example, mode);
        EXPECT_TRUE(read_key_file(path_));
    }
}

TEST_F(KeyFile, LinksAreJudgedByWhatTheyLeadTo) {
    fs::path target = directory_ / "target";
    std::ofstream(target) << example;
    ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
    ASSERT_EQ(chmod(target.c_str(), 0644), 0);
    expect_refused("open to others");
    ASSERT_EQ(chmod(target.c_str(), 0400), 0);
    EXPECT_TRUE(read_key_file(path_));
}

TEST_F(KeyFile, OthersFilesAreRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
    write(example);
    ASSERT_EQ(chown(path_.c_str(), 12345, 0), 0);
    expect_refused("belongs to user 12345");
}

TEST_F(KeyFile, OnlyRegularFiles) {
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
    expect_refused("not a regular file");  // and no waiting for a writer
    fs::remove(path_);
    fs::create_directory(path_);
    fs::permissions(path_, fs::perms::owner_all);
    expect_refused("not a regular file");
}

TEST_F(KeyFile, MissingOneSaysWhatToDo) {
    expect_refused("mpisec key new");
}

TEST_F(KeyFile, AnyOtherContentIsRefused) {
    for (std::size_t cut = 0; cut < example.size() - 1; ++cut) {
        write(example.substr(0, cut));
        SCOPED_TRACE(cut);
        expect_refused("is incomplete (" + std::to_string(cut) + " of 86 bytes): copy it again");
    }
    write("mpisec-key-2 " + example.substr(13, 20));
    expect_refused("is not a key file of this version");
    for (const char* extra : {"\n", " ", "x", "\nmpisec-key-1"}) {
        write(example + extra);
        EXPECT_FALSE(read_key_file(path_)) << "followed by " << extra;
    }
    for (std::size_t at = 0; at < example.size(); ++at) {
        for (char bit : {1, 2, 4, 8, 16, 32, 64}) {  // 32 turns letters into capitals
            std::string changed = example;
            changed[at] = static_cast<char>(changed[at] ^ bit);
            write(changed);
            EXPECT_FALSE(read_key_file(path_)) << changed;
        }
    }
}

}  // namespace
}  // namespace mpisec::keys
