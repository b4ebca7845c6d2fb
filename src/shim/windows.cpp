// Windows exist inside nodes only, and their memory is the node's. What the MPI library does for all of a
// window's ranks at once waits for them, and some may wait for this rank to move its large messages: they
// meet first (M5).
#include "shim/communicator.hpp"
#include "shim/entry.hpp"
#include "shim/real.hpp"

namespace mpisec::shim {
namespace {

int meet_window(MPI_Win win) {
    MPI_Group group;
    if (int code = real.Win_get_group(win, &group); code != MPI_SUCCESS) return code;
    const std::vector<std::int32_t> members = world_ranks(group);
    real.Group_free(&group);
    return meet(members, wire::ContextId{});
}

}  // namespace

int Win_fence(int assertion, MPI_Win win) {
    const int code = meet_window(win);
    return code == MPI_SUCCESS ? real.Win_fence(assertion, win) : code;
}

int Win_free(MPI_Win* win) {
    const int code = meet_window(*win);
    return code == MPI_SUCCESS ? real.Win_free(win) : code;
}

}  // namespace mpisec::shim
