// Spawned programs are protected like those that the launcher starts: `mpisec exec` starts them.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace mpisec::shim {

/// A command of MPI_Comm_spawn: program, arguments and info.
class SpawnCommand {
  public:
    /// `arguments` as in MPI: ended by a null pointer, or MPI_ARGV_NULL, which is null.
    SpawnCommand(const char* program, char** arguments, MPI_Info info);
    ~SpawnCommand();
    SpawnCommand(const SpawnCommand&) = delete;
    SpawnCommand& operator=(const SpawnCommand&) = delete;
    SpawnCommand(SpawnCommand&& other) noexcept;
    char* program() { return words_.front().data(); }
    char** arguments();
    /// Without "path", which says where the library looks for the program: it would now look for mpisec there.
    MPI_Info info() const { return info_; }

  private:
    void take_path();

    std::vector<std::string> words_;
    std::vector<char*> pointers_;
    MPI_Info info_;
    bool own_info_ = false;
};

/// The program `mpisec` of this installation; empty when it is not there.
std::string mpisec_program();

}  // namespace mpisec::shim
