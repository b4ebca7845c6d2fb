// What `mpisec exec NAME` will really start: PATH searched, scripts followed to their interpreter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/elf.hpp"
#include "base/error.hpp"

namespace mpisec::cli {

/// e_machine (EM_…) of the processor that this program was built for
extern const std::uint16_t this_machine;

struct Program {
    std::string path;  ///< what is executed: the program or the script
    /// the ELF file that the kernel loads for it: path itself, or the script's interpreter
    std::string executable;
    Elf elf;  ///< of `executable`
    bool is_script = false;
    bool is_python = false;  ///< `executable` is a Python interpreter: it may load MPI while it runs (mpi4py)
};

/// Searches PATH as execvp does. Refuses, with a sentence, what LD_PRELOAD cannot reach and would thus run
/// unprotected (S1): set-user-ID and set-group-ID programs and those with file capabilities, static programs
/// and those that contain their MPI library, programs for another processor, and programs that start another one in a container.
Result<Program> find_program(const std::string& name);
/// That of a command, which begins with its name. Refuses the same behind env, numactl and similar programs.
Result<Program> find_program(const std::vector<std::string>& command);

/// The file that execvp would start for `name`; empty when there is none.
std::string search_path(const std::string& name);

}  // namespace mpisec::cli
