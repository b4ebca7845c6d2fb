// Files that take another one's place: never half written, and never what somebody else has put there.
#include "base/replaced_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace mpisec {
namespace {

namespace fs = std::filesystem;

class ReplacedFiles : public testing::Test {
  protected:
    void SetUp() override {
        std::string made = testing::TempDir() + "replaced-XXXXXX";
        ASSERT_NE(mkdtemp(made.data()), nullptr);
        directory_ = made;
    }
    void TearDown() override { fs::remove_all(directory_); }
    fs::path at(const char* name) const { return directory_ / name; }
    std::ptrdiff_t files() const {
        return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
    }
    static std::string text_of(const fs::path& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static bool replace(const fs::path& path, std::string_view text, mode_t mode = 0600) {
        ReplacedFile file(path, mode);
        file.write(text);
        return file.finish();
    }

  private:
    fs::path directory_;
};

TEST_F(ReplacedFiles, TakeTheirPlaceWhenTheyAreComplete) {
    ASSERT_TRUE(replace(at("it"), "old"));
    ReplacedFile file(at("it"));
    file.write("ne");
    EXPECT_EQ(text_of(at("it")), "old");
    file.write("w");
    EXPECT_TRUE(file.finish());
    EXPECT_EQ(text_of(at("it")), "new");
    EXPECT_EQ(files(), 1);
}

TEST_F(ReplacedFiles, AreLeftAsTheyWereWhenNotFinished) {
    ASSERT_TRUE(replace(at("it"), "old"));
    {
        ReplacedFile file(at("it"));
        file.write("new");
    }
    EXPECT_EQ(text_of(at("it")), "old");
    EXPECT_EQ(files(), 1);
}

TEST_F(ReplacedFiles, HaveNoNameUntilTheyAreComplete) {
    const int nameless = open(at("").c_str(), O_WRONLY | O_TMPFILE, 0600);
    if (nameless < 0) GTEST_SKIP() << "this file system has no files without a name";
    close(nameless);
    ReplacedFile file(at("it"));
    file.write("text");
    EXPECT_EQ(files(), 0);
    EXPECT_TRUE(file.finish());
    EXPECT_EQ(text_of(at("it")), "text");
}

TEST_F(ReplacedFiles, FollowNoLink) {
    ASSERT_TRUE(replace(at("kept"), "kept"));
    fs::create_symlink(at("kept"), at("it"));
    EXPECT_TRUE(replace(at("it"), "new"));
    EXPECT_EQ(text_of(at("kept")), "kept");
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(at("it"))));
}

TEST_F(ReplacedFiles, DoNotWaitForTheReaderOfAFifo) {
    ASSERT_EQ(mkfifo(at("it").c_str(), 0666), 0);
    EXPECT_TRUE(replace(at("it"), "new"));
    EXPECT_EQ(text_of(at("it")), "new");
}

TEST_F(ReplacedFiles, AreReadableByTheOwnerAlone) {
    const mode_t mask = umask(0);
    EXPECT_TRUE(replace(at("own"), "text"));
    EXPECT_TRUE(replace(at("shared"), "text", 0644));
    umask(mask);
    EXPECT_EQ(fs::status(at("own")).permissions(), fs::perms{0600});
    EXPECT_EQ(fs::status(at("shared")).permissions(), fs::perms{0644});
}

TEST_F(ReplacedFiles, AreNotThereWhereTheyDoNotFit) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small{10, before.rlim_max};
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const bool written = replace(at("it"), "more than ten bytes");
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    EXPECT_FALSE(written);
    EXPECT_EQ(files(), 0);
}

TEST_F(ReplacedFiles, FailWhereThereIsNoDirectory) {
    EXPECT_FALSE(replace(at("none") / "it", "text"));
}

}  // namespace
}  // namespace mpisec
