// From a fresh MPI_COMM_WORLD to a job that shares a job secret (docs/protocol.md, "Start-up"; S5, S7).
#pragma once

#include <array>
#include <cstdint>

#include "config/settings.hpp"
#include "shim/process/world.hpp"

namespace mpisec::shim {

/// Collective over MPI_COMM_WORLD, right after the real MPI_Init. Finds the node map and proves it by shared
/// memory, compares every rank's settings (S7), runs Noise NNpsk0 over the binomial tree of node leaders and
/// hands the job secret to the ranks of each node through shared memory that has no name afterwards. On
/// failure every rank that knows the reason prints it in a sentence on standard error, and the job is aborted with a
/// non-zero exit status; the call does not return. `selection`: a digest of what decides which algorithms run, the same on
/// all ranks.
World establish(const config::Settings& settings, const std::array<std::uint8_t, 16>& selection);

}  // namespace mpisec::shim
