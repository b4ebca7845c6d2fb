#include "shim/p2p/failures.hpp"

#include <algorithm>

#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {
namespace {

template <class Procedure>
void look_up(Procedure& procedure, const char* name) {
    procedure = reinterpret_cast<Procedure>(library_symbol(name));
}

}  // namespace

FaultTolerance::FaultTolerance() {
    look_up(revoke, "PMPIX_Comm_revoke");
    look_up(is_revoked, "PMPIX_Comm_is_revoked");
    look_up(get_failed, "PMPIX_Comm_get_failed");
    look_up(shrink, "PMPIX_Comm_shrink");
    look_up(agree, "PMPIX_Comm_agree");
    look_up(iagree, "PMPIX_Comm_iagree");
}

FaultTolerance& fault_tolerance() {
    return *process.fault_tolerance;
}

#if defined(OPEN_MPI)

bool job_is_fault_tolerant() {
    // Open MPI 4 would not know the attribute.
    if (!fault_tolerance().is_revoked || !fault_tolerance().get_failed) return false;
    int* enabled = nullptr;
    int found = 0;
    real.Comm_get_attr(constants.comm_world, MPI_FT, &enabled, &found);
    return found && enabled && *enabled;
}

bool is_failure(int code) {
    if (code == MPI_SUCCESS || !state.fault_tolerant) return false;
    int error_class = MPI_SUCCESS;
    real.Error_class(code, &error_class);
    return error_class == MPI_ERR_PROC_FAILED || error_class == MPI_ERR_PROC_FAILED_PENDING ||
           error_class == MPI_ERR_REVOKED;
}

namespace {

/// Numbers of the processes that have failed in the group of `comm`, which is of this realm.
std::vector<std::int32_t> failed_in(MPI_Comm comm) {
    std::vector<std::int32_t> failed;
    MPI_Group group = constants.group_null;
    if (!fault_tolerance().get_failed || fault_tolerance().get_failed(comm, &group) != MPI_SUCCESS)
        return failed;
    int size = 0;
    real.Group_size(group, &size);
    if (size > 0) failed = numbers_of(group, state.world);
    if (group != constants.group_empty && group != constants.group_null) real.Group_free(&group);
    return failed;
}

bool is_revoked(const Communicator& comm) {
    int revoked = 0;
    return !comm.freed && fault_tolerance().is_revoked(comm.handle, &revoked) == MPI_SUCCESS && revoked;
}

}  // namespace

int look_for_failure(const Communicator& comm) {
    if (is_revoked(comm)) return MPI_ERR_REVOKED;
    const int code = failure_among(comm.members);
    return code != MPI_SUCCESS ? code : failure_among(comm.remote_members);
}

int failure_of_peer(const Communicator& comm, std::int32_t peer) {
    return is_revoked(comm) ? MPI_ERR_REVOKED : failure_among(Ranks::one(peer));
}

int failure_among(Ranks members) {
    if (!state.fault_tolerant) return MPI_SUCCESS;
    const std::vector<std::int32_t> failed = failed_in(constants.comm_world);
    const bool any = std::ranges::any_of(
        failed, [&](std::int32_t number) { return std::ranges::find(members, number) != members.end(); });
    return any ? MPI_ERR_PROC_FAILED : MPI_SUCCESS;
}

bool any_failure() {
    return state.fault_tolerant && !failed_in(constants.comm_world).empty();
}

#else

// MPICH has the extensions, but over OFI its processes wait for dead ones for ever, so no MPICH job counts as one that goes on.
bool job_is_fault_tolerant() {
    return false;
}
bool is_failure(int) {
    return false;
}
int look_for_failure(const Communicator&) {
    return MPI_SUCCESS;
}
int failure_of_peer(const Communicator&, std::int32_t) {
    return MPI_SUCCESS;
}
int failure_among(Ranks) {
    return MPI_SUCCESS;
}
bool any_failure() {
    return false;
}

#endif

}  // namespace mpisec::shim
