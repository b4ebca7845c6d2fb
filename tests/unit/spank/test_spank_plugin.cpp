// The plug-in for Slurm in a task of a step, of which this test plays slurmstepd: what it sets, and what happens when that fails.
#include <gtest/gtest.h>
#include <slurm/spank.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <fstream>
#include <map>
#include <string>
#include <vector>

extern "C" {
#include "spank/helper.h"
}
extern "C" spank_f slurm_spank_init, slurm_spank_task_init;

namespace {

/// The step's variables, and which of them cannot be set.
struct Step {
    std::map<std::string, std::string> variables;
    std::string refused;
};
Step step;
char program[] = "./app";
char* words_of_program[] = {program, nullptr};
char* environment[] = {nullptr};

}  // namespace

extern "C" {

spank_context_t spank_context() {
    return S_CTX_REMOTE;
}
spank_err_t spank_option_register(spank_t, spank_option*) {
    return ESPANK_SUCCESS;
}
spank_err_t spank_get_item(spank_t, spank_item_t item, ...) {
    va_list to;
    va_start(to, item);
    if (item == S_JOB_ARGV) {
        *va_arg(to, int*) = 1;
        *va_arg(to, char***) = words_of_program;
    } else if (item == S_JOB_ENV) {
        *va_arg(to, char***) = environment;
    } else if (item == S_TASK_ID) {
        *va_arg(to, int*) = 0;
    } else {
        *va_arg(to, uint32_t*) = 7;
    }
    va_end(to);
    return ESPANK_SUCCESS;
}
spank_err_t spank_getenv(spank_t, const char* name, char* value, int size) {
    const auto found = step.variables.find(name);
    if (found == step.variables.end()) return ESPANK_ENV_NOEXIST;
    snprintf(value, static_cast<size_t>(size), "%s", found->second.c_str());
    return ESPANK_SUCCESS;
}
spank_err_t spank_setenv(spank_t, const char* name, const char* value, int overwrite) {
    if (name == step.refused) return ESPANK_ERROR;
    if (!overwrite && step.variables.contains(name)) return ESPANK_ENV_EXISTS;
    step.variables[name] = value;
    return ESPANK_SUCCESS;
}
const char* spank_strerror(spank_err_t) {
    return "no room";
}
void slurm_error(const char*, ...) {}

}  // extern "C"

namespace {

/// A step of a partition that requires protection, with a stand-in for mpisec that prints these lines.
class SpankPlugin : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/mpisec-spank-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        directory_ = name;
        prints("LD_PRELOAD=/lib/ours.so");
        step = {{{"SLURM_JOB_PARTITION", "sealed"}, {"PMI_RANK", "0"}}, ""};
    }
    void TearDown() override {
        unlink(mpisec().c_str());
        rmdir(directory_.c_str());
    }
    void prints(const std::string& line) const { runs("echo '" + line + "'"); }
    void runs(const std::string& script) const {
        std::ofstream(mpisec()) << "#!/bin/sh\n" << script << "\n";
        chmod(mpisec().c_str(), 0755);
    }
    std::string mpisec() const { return directory_ + "/mpisec"; }

    /// What the plug-in returns in the task, and what it prints.
    std::pair<int, std::string> run() const {
        std::string words[] = {"mpisec=" + mpisec(), "key_file=/run/%j.key", "require=all"};
        std::vector<char*> pointers;
        for (std::string& word : words) pointers.push_back(word.data());
        EXPECT_EQ(slurm_spank_init(nullptr, static_cast<int>(pointers.size()), pointers.data()), 0);
        testing::internal::CaptureStderr();
        const int status = slurm_spank_task_init(nullptr, 0, nullptr);
        return {status, testing::internal::GetCapturedStderr()};
    }

  private:
    std::string directory_;
};

TEST_F(SpankPlugin, SetsWhatProtects) {
    EXPECT_EQ(run(), std::pair(0, std::string()));
    EXPECT_EQ(step.variables["LD_PRELOAD"], "/lib/ours.so");
    EXPECT_EQ(step.variables["MPISEC_KEY_FILE"], "/run/7.key");
    EXPECT_EQ(step.variables["MPISEC_UNPROTECTED"], "refuse");
}

TEST_F(SpankPlugin, AKeyOfTheUsersOwnStays) {
    step.variables["MPISEC_KEY_FILE"] = "mine";
    EXPECT_EQ(run(), std::pair(0, std::string()));
    EXPECT_EQ(step.variables["MPISEC_KEY_FILE"], "mine");
}

TEST_F(SpankPlugin, AStepIsNotStartedWithoutAVariableThatProtectsIt) {
    for (const char* name : {"LD_PRELOAD", "MPISEC_KEY_FILE", "MPISEC_UNPROTECTED"}) {
        step.refused = name;
        const auto [status, said] = run();
        EXPECT_EQ(status, -1) << name;
        EXPECT_EQ(said, "mpisec: Slurm cannot set " + std::string(name) +
                            " for this step (no room): it is not started, as it could not be protected.\n");
    }
}

TEST_F(SpankPlugin, AStepIsNotStartedWhenNoVariableIsNamed) {
    prints("LD_PRELOAD");
    const auto [status, said] = run();
    EXPECT_EQ(status, -1);
    EXPECT_NE(said.find("it is not started, as it could not be protected"), std::string::npos) << said;
}

/// A step that is not started has said why; one without a process manager, which may be no MPI program, is.
TEST_F(SpankPlugin, AStepIsNotStartedWhenMpisecDoesNotAnswer) {
    const std::string too_much =
        "i=0; while [ $i -lt 400 ]; do echo LD_PRELOAD=/a/path/to/a/library.so; i=$((i+1)); done";
    const std::pair<std::string, std::string> scripts[] = {
        {"kill -9 $$", "was ended by signal 9"},
        {too_much, "prints more variables than fit"},
        {"echo 'mpisec: no key' >&2; exit 1", "mpisec: no key"},
    };
    for (const auto& [script, reason] : scripts) {
        runs(script);
        const auto [status, said] = run();
        EXPECT_EQ(status, -1) << script;
        EXPECT_NE(said.find(reason), std::string::npos) << script << ": " << said;
    }
    unlink(mpisec().c_str());
    EXPECT_NE(run().second.find("cannot be run: No such file"), std::string::npos);
    step.variables.erase("PMI_RANK");
    runs("kill -9 $$");
    EXPECT_EQ(run(), std::pair(0, std::string()));
}

TEST_F(SpankPlugin, AStepIsNotStartedWhenMpisecCannotBeAsked) {
    rlimit files{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    char output[64];
    testing::internal::CaptureStderr();
    const rlimit none = {0, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    const int status = mpisec_ask("/opt/mpisec", words_of_program, environment, 0, output, sizeof output);
    setrlimit(RLIMIT_NOFILE, &files);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "mpisec: /opt/mpisec cannot be asked: Too many open files: this step is not started, as it "
              "could not be protected.\n");
    EXPECT_EQ(status, 127);
}

}  // namespace
