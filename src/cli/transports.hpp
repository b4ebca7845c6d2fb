// Libraries that carry a program's data to other nodes past MPI, where MPIsec cannot seal it (S1 speaks of
// MPI's messages only, so this is reported, not refused).
#pragma once

#include <string>
#include <vector>

#include "cli/loader.hpp"
#include "cli/program.hpp"

namespace mpisec::cli {

struct Transport {
    std::string library;  ///< as the program or its library names it, e.g. libnccl.so.2; or a linked-in one
    std::string title;    ///< for people, e.g. NCCL
    std::string user;     ///< the file that needs it
};

/// The transports that the program is linked with, or one of its libraries other than the MPI library's own. `libraries`:
/// what libraries_of() says of the program. Empty for scripts and Python programs, which load libraries while they
/// run.
std::vector<Transport> transports_past_mpi(const Program& program,
                                           const std::vector<LoadedLibrary>& libraries);

/// "app is linked with NCCL (libnccl.so.2): what it sends to other nodes is not protected by MPIsec; …"
std::string sentence_about(const Transport& transport);

}  // namespace mpisec::cli
