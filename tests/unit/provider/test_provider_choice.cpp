// The file that remembers which library serves what: read back as it was written, and nothing of a damaged one.
#include "provider/choice.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support.hpp"

namespace mpisec::provider::test {
namespace {

class ChoiceFile : public testing::Test {
  public:
    ChoiceFile() {
        char name[] = "/tmp/mpisec-choice-XXXXXX";
        directory_ = mkdtemp(name);
        file_ = directory_ + "/inside/provider";
    }
    ~ChoiceFile() override {
        unlink(file_.c_str());
        rmdir((directory_ + "/inside").c_str());
        rmdir(directory_.c_str());
    }

  protected:
    void write(const std::string& text) {
        mkdir((directory_ + "/inside").c_str(), 0700);
        std::ofstream(file_) << text;
    }
    std::string directory_, file_;
};

TEST_F(ChoiceFile, ReadsWhatWasWritten) {
    Choices written;
    written[{2, 16}] = {true, {{{0, 1, 2}, {2, 1, 0}}}};
    written[{8, 32}] = {false, {{{3, 3, 3}, {0, 0, 0}}}};
    remember(file_, "this machine", written);
    const std::optional<Choices> read = recall(file_, "this machine", 4);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->size(), 2u);
    EXPECT_TRUE(read->at({2, 16}).offered);
    EXPECT_FALSE(read->at({8, 32}).offered);
    EXPECT_EQ(read->at({2, 16}).library, (written[{2, 16}].library));
    struct stat status {};
    ASSERT_EQ(stat(file_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_FALSE(recall(file_, "another machine", 4));
    EXPECT_FALSE(recall(file_, "this machine", 3)) << "there is no fourth library";
}

TEST_F(ChoiceFile, NothingOfADamagedOne) {
    EXPECT_FALSE(recall("", "here", 4));
    EXPECT_FALSE(recall(file_, "here", 4)) << "it is not there";
    for (const char* text :
         {"", "here", "here\n", "here\n1 16", "here\n1 16 1 0 0 0 0 0 9\n", "here\n1 16 1 0 0 0 0 0 -1\n",
          "here\n1 16 1 0 0 0 0 0 x\n", "here\n1 16 1 0 0 0 0 0 0\nand more\n"}) {
        write(text);
        EXPECT_FALSE(recall(file_, "here", 4)) << text;
    }
}

}  // namespace
}  // namespace mpisec::provider::test
