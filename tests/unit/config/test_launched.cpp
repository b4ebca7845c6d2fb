// How many processes the launcher started, by its variables, and what is said to one that MPI left alone.
#include "config/launched.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

namespace mpisec::config {
namespace {

using Environment = std::map<std::string, std::string>;

class Launch : public testing::Test {
  protected:
    void SetUp() override { clean(); }
    void TearDown() override { clean(); }
    static void set(const Environment& environment) {
        clean();
        for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    }
    static int processes(PmiFamily family, const Environment& environment) {
        set(environment);
        return launched_processes(family).processes;
    }
    static std::string sentence(PmiFamily family, const Environment& environment) {
        set(environment);
        return alone_in_world(family, launched_processes(family));
    }

  private:
    static void clean() {
        for (const char* name :
             {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "HYDI_CONTROL_FD"})
            unsetenv(name);
    }
};

TEST_F(Launch, NobodySaysAnything) {
    EXPECT_EQ(processes(PmiFamily::mpich, {}), 1);
    EXPECT_EQ(sentence(PmiFamily::openmpi, {}), "");
}

TEST_F(Launch, OwnLauncherIsBelievedAlone) {
    EXPECT_EQ(processes(PmiFamily::mpich, {{"PMI_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}}), 1);
    EXPECT_EQ(processes(PmiFamily::openmpi,
                        {{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMI_SIZE", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}}),
              1);
    EXPECT_EQ(processes(PmiFamily::mpich, {{"PMI_SIZE", "3"}}), 3);
}

TEST_F(Launch, BatchScriptIsOneProcess) {
    EXPECT_EQ(processes(PmiFamily::mpich, {{"SLURM_NTASKS", "8"}}), 1);
}

TEST_F(Launch, WhatIsNoNumberSaysNothing) {
    EXPECT_EQ(processes(PmiFamily::mpich, {{"PMI_SIZE", "many"}, {"SLURM_STEP_NUM_TASKS", ""}}), 1);
}

TEST_F(Launch, SrunWithAnotherPmiNamesTheOneToUse) {
    const std::string mpich = sentence(PmiFamily::mpich, {{"SLURM_STEP_NUM_TASKS", "4"}});
    EXPECT_NE(mpich.find("srun (SLURM_STEP_NUM_TASKS=4) started 4 processes"), std::string::npos) << mpich;
    EXPECT_NE(mpich.find("srun --mpi=pmi2"), std::string::npos) << mpich;
    const std::string open_mpi =
        sentence(PmiFamily::openmpi, {{"SLURM_STEP_NUM_TASKS", "4"}, {"PMI_SIZE", "4"}});
    EXPECT_NE(open_mpi.find("srun --mpi=pmix"), std::string::npos) << open_mpi;
}

TEST_F(Launch, ForeignMpiexecIsNamed) {
    const std::string mpich =
        sentence(PmiFamily::mpich, {{"OMPI_COMM_WORLD_SIZE", "2"}, {"SLURM_STEP_NUM_TASKS", "1"}});
    EXPECT_NE(mpich.find("Open MPI's mpiexec (OMPI_COMM_WORLD_SIZE=2) started 2 processes"),
              std::string::npos)
        << mpich;
    EXPECT_NE(mpich.find("Use the mpiexec of the program's own MPI"), std::string::npos) << mpich;
    EXPECT_EQ(mpich.find("srun --mpi=pm"), std::string::npos) << mpich;
    EXPECT_NE(sentence(PmiFamily::openmpi,
                       {{"PMI_SIZE", "4"}, {"HYDI_CONTROL_FD", "7"}, {"SLURM_STEP_NUM_TASKS", "2"}})
                  .find("Use the mpiexec"),
              std::string::npos);
}

}  // namespace
}  // namespace mpisec::config
