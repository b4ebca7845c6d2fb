// Where a process runs, from what its own kernel and launcher say, without asking the network.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace mpisec::shim {

/// The same for two ranks when they run under one kernel, see the same /dev/shm, and have the same network
/// interfaces, user and launcher. Equal ids make ranks candidates for sharing memory, which node_proof.hpp then
/// proves. Same network interfaces: if the MPI library used TCP between the two, the kernel would keep it on
/// the loopback interface. Same launcher: another job of this user has another launcher, so that an attacker who relays
/// messages between the two jobs cannot splice its ranks into this job. The id is a hash because it travels in clear.
std::array<std::uint8_t, 16> node_id();
/// With Hydra and slurmstepd, the process at the other end of the PMI socket serves the ranks of one job on one
/// node. Returns its process id, or "-", also where that process is outside of our PID namespace.
std::string pmi_server();
/// Whether the launcher says something by which the node id tells this job from another.
bool launcher_is_known();

/// The same under one running kernel, in containers too.
std::string boot_id();

}  // namespace mpisec::shim
