// Where a process runs, from what its own kernel and launcher say, without asking the network.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace mpisec::shim {

/// Alike for two ranks when they run under one kernel, see the same /dev/shm, have the same network
/// interfaces, user and launcher. It makes them candidates for sharing memory, which node_proof.hpp then
/// proves. Same network interfaces: were the MPI library to use TCP between them, the kernel would keep it on
/// the loopback interface. Same launcher: another job of this user has another one, so that its ranks cannot
/// be spliced into this job by who relays messages between the two. A hash: it travels in clear.
std::array<std::uint8_t, 16> node_id();
/// Hydra and slurmstepd: the process at the other end of the PMI socket serves the ranks of one job on one
/// node. Its id, or "-", also where that process is outside of our PID namespace.
std::string pmi_server();
/// Whether the launcher says something by which the node id tells this job from another.
bool launcher_is_known();

/// Alike under one running kernel, containers too.
std::string boot_id();

}  // namespace mpisec::shim
