// Spawned programs are protected like those that the launcher starts: `mpisec exec` starts them.
#pragma once

#include <string>
#include <vector>

namespace mpisec::shim {

/// A command of MPI_Comm_spawn: program and arguments.
class SpawnCommand {
  public:
    /// `arguments` as in MPI: ended by a null pointer, or MPI_ARGV_NULL, which is null.
    SpawnCommand(const char* program, char** arguments);
    SpawnCommand(const SpawnCommand&) = delete;
    SpawnCommand& operator=(const SpawnCommand&) = delete;
    SpawnCommand(SpawnCommand&&) = default;
    char* program() { return words_.front().data(); }
    char** arguments();

  private:
    std::vector<std::string> words_;
    std::vector<char*> pointers_;
};

/// The program `mpisec` of this installation; empty when it is not there.
std::string mpisec_program();

}  // namespace mpisec::shim
