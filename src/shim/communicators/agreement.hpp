// MPIX_Comm_agree and MPIX_Comm_iagree (User-Level Failure Mitigation): all living members of a communicator get the
// bits that each of them has set (of an inter-communicator, the bits that each process of the other group has set),
// whoever has died. The flags never travel in clear.
//
// In each attempt one of the members collects what the others report, under seal, and answers. Then, where processes
// may die, the library's own agreement, which can go on after a death, says whether all have the answer. If not, all
// try again with another collecting member.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>

#include "shim/p2p/communicator.hpp"
#include "shim/p2p/operation.hpp"

namespace mpisec::shim {

/// What each process reports in an attempt, and the answer that it gets (docs/protocol.md, "Going on without processes").
struct Report {
    enum class Purpose : std::uint32_t { no_result, agreement, shrinking, agreement_without_waiting };
    Purpose purpose;
    std::int32_t flag;
    std::uint64_t number;   ///< of the communicator's calls of this kind
    std::uint64_t attempt;  ///< of this call
    std::array<std::uint8_t, 32> members;
};
static_assert(sizeof(Report) == 56);

/// Bits that the library agrees on, in clear: it gives everyone the bits that all have set.
enum Verdict : int { have_result = 1, nothing_forged = 2 };

/// Each attempt that fails does so because a process has died since the one before it, or because of an attack.
inline std::uint64_t most_attempts(const Communicator& comm) {
    return static_cast<std::uint64_t>(comm.size) + comm.remote_members.size() + 8;
}

/// The agreement ends with `flag` written, and maybe with the error that the library has for failures that not all
/// members know of. Under the Guard.
std::unique_ptr<Operation> begin_agreement(Report::Purpose purpose, Communicator& comm, int* flag);

/// Waits for the agreements under way, because the library tells agreements on a communicator apart by their order.
void finish_agreements(const Communicator& comm);

}  // namespace mpisec::shim
