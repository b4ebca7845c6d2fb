// By what a process is told from those of another job on its node.
#include "shim/startup/node_id.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "../required.hpp"

namespace mpisec::shim {
namespace {

/// With a PMI socket to this process, and no other launcher.
class NodeId : public testing::Test {
  protected:
    void SetUp() override {
        for (const char* name : {"PMIX_NAMESPACE", "FLUX_JOB_ID", "SLURM_JOB_ID", "SLURM_STEP_ID"})
            unsetenv(name);
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
        setenv("PMI_FD", std::to_string(ends_[0]).c_str(), 1);
    }
    void TearDown() override {
        unsetenv("PMI_FD");
        close(ends_[0]);
        close(ends_[1]);
    }

  private:
    int ends_[2];
};

TEST_F(NodeId, ThePmiServerIsTheLauncher) {
    EXPECT_EQ(pmi_server(), std::to_string(getpid()));
    EXPECT_TRUE(launcher_is_known());
}

/// Such as `apptainer exec --pid`: all servers would look alike there, those of other jobs too.
TEST_F(NodeId, AServerOutsideOfThePidNamespaceIsNotKnown) {
    const pid_t container = fork();
    if (container == 0) {
        if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(2);
        const pid_t rank = fork();
        if (rank == 0) _exit(pmi_server() == "-" && !launcher_is_known() ? 0 : 1);
        int status = -1;
        waitpid(rank, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    int status = -1;
    ASSERT_EQ(waitpid(container, &status, 0), container);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) MPISEC_NOT_TESTED("this machine has no PID namespaces");
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace mpisec::shim
