// These windows exist inside nodes only, and their memory is the node's: the MPI library moves the data. MPIsec makes sure that no rank
// waits inside the library while another needs its large messages (M5, waits.hpp):
//
// - Calls that all ranks of a window make together: the ranks meet first.
// - Post, start, complete, wait: a rank that posts sends an empty message to those that may access its memory, and a rank that starts
//   receives these first. MPI_Win_complete then waits only for the library's answers; MPI_Win_wait is a loop over MPI_Win_test.
// - Locks: words in memory that the ranks share, taken before the library's own (window_locks.hpp).
// - Unlocking and flushing wait only for the library at the target, which answers in whatever call of MPI the target is: MPIsec's waits all
//   enter the library again and again.
#include <memory>
#include <optional>
#include <unordered_map>

#include "fabric/node_memory.hpp"
#include "shim/calls/window_locks.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/collective/mpi_fabric.hpp"
#include "shim/p2p/backoff.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/progress_barrier.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/waits.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

enum class Held : std::uint8_t { no, shared, exclusive };

struct Window {
    Participants all;
    std::optional<fabric::SharedSegment> memory;  ///< of the locks
    std::optional<WindowLocks> locks;  ///< none when the window has one rank, or a rank on another node
    std::vector<Held> held;            ///< by this process, per rank
    bool all_held = false;             ///< MPI_Win_lock_all
};

}  // namespace

/// Under the Guard.
struct Windows {
    std::unordered_map<MPI_Win, std::unique_ptr<Window>> all;
};

namespace {

/// Null for a window that was made before MPIsec was there (in a session before MPI_Init). The object lives until MPI_Win_free.
Window* find_window(MPI_Win win) {
    Guard guard;
    const auto& windows = process.windows->all;
    auto found = windows.find(win);
    return found == windows.end() ? nullptr : found->second.get();
}

/// Every rank of the window is in the call that makes the window.
void share_locks(Window& window) {
    const std::size_t ranks = window.all.members.size();
    const auto node = [](std::int32_t rank) { return facts_of(rank).node; };
    // Without a secret there is also nobody on another node whose messages a waiting rank might need.
    if (ranks < 2 || !realm_of(window.all.members).job_secret) return;
    const int here = node(own_number(window.all.members));
    for (std::int32_t member : window.all.members)
        if (node(member) != here) return;
    auto memory = fabric::SharedSegment::attach(memory_name(window.all.context, here),
                                                WindowLocks::bytes_for(ranks), static_cast<unsigned>(ranks));
    if (!memory) abort_job("For the locks of a window, " + memory.error().message + ".");
    window.memory.emplace(std::move(*memory));
    window.locks.emplace(window.memory->bytes());
    window.held.resize(ranks, Held::no);
}

/// The tag, one of those for meetings, of the empty messages that say that a window is exposed.
int exposure_tag(const Window& window) {
    wire::ContextId context = window.all.context;
    context[0] ^= 0xff;
    return barrier_tag(context);
}

/// Waits until `take` is true, keeping MPIsec's and the library's messages moving.
template <class Take>
void wait_for_lock(const char* call, Take take) {
    WaitScope waiting(call, MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    for (unsigned looks = 0; !take(looks); ++looks) {
        progress();
        {
            Guard guard;
            drive_progress();
        }
        backoff.pause();
    }
}

bool take_all_shared(WindowLocks& locks, std::size_t ranks, unsigned looks) {
    for (std::size_t taken = 0; taken < ranks; ++taken) {
        if (locks.try_shared(taken, looks)) continue;
        // All or none: a rank that holds some of them and waits for more must not block the rest.
        while (taken > 0) locks.give_back_shared(--taken);
        return false;
    }
    return true;
}

void take_lock(Window& window, std::size_t rank, Held kind) {
    WindowLocks& locks = *window.locks;
    if (kind == Held::exclusive) {
        WindowLocks::Want want(locks, rank);
        wait_for_lock("MPI_Win_lock", [&](unsigned) { return locks.try_exclusive(rank); });
    } else {
        wait_for_lock("MPI_Win_lock", [&](unsigned looks) { return locks.try_shared(rank, looks); });
    }
    window.held[rank] = kind;
}

void give_back_lock(Window& window, std::size_t rank) {
    const Held kind = std::exchange(window.held[rank], Held::no);
    if (kind == Held::exclusive) window.locks->give_back_exclusive(rank);
    if (kind == Held::shared) window.locks->give_back_shared(rank);
}

/// False for what the library must judge alone: an invalid rank or kind, or a lock that this process has already. With MPI_MODE_NOCHECK the
/// program says that the lock is free, and the library takes none either.
bool lock_is_ours(const Window* window, int kind, int rank, int assertion) {
    return window && window->locks && !(assertion & MPI_MODE_NOCHECK) && rank >= 0 &&
           static_cast<std::size_t>(rank) < window->held.size() && !window->all_held &&
           window->held[static_cast<std::size_t>(rank)] == Held::no &&
           (kind == MPI_LOCK_EXCLUSIVE || kind == MPI_LOCK_SHARED);
}

}  // namespace

Participants participants_of(MPI_Comm comm, const char* constructor) {
    Communicator* known = find_communicator(comm);
    if (!known) return {};
    return {known->members.list(), derive_context(*known, constructor, membership_of(*known))};
}

int learn_window(int made, MPI_Comm comm, MPI_Win* win) {
    if (made != MPI_SUCCESS) return made;
    auto window = std::make_unique<Window>();
    window->all = participants_of(comm, "window");
    share_locks(*window);
    Guard guard;
    process.windows->all[*win] = std::move(window);
    return made;
}

int progress_barrier_of_window(const char* call, MPI_Win win) {
    if (const Window* window = find_window(win))
        return raise_on_window(win, progress_barrier(window->all.members, window->all.context), call);
    MPI_Group group;
    if (int code = real.Win_get_group(win, &group); code != MPI_SUCCESS) return code;
    const std::vector<std::int32_t> members = numbers_of(group, state.world);
    real.Group_free(&group);
    return raise_on_window(win, progress_barrier(members, wire::ContextId{}), call);
}

int Win_free(MPI_Win* win) {
    if (int code = progress_barrier_of_window("MPI_Win_free", *win); code != MPI_SUCCESS) return code;
    {
        Guard guard;  // before the library gives the handle to another thread's new window
        process.windows->all.erase(*win);
    }
    return real.Win_free(win);
}

int Win_post(MPI_Group group, int assertion, MPI_Win win) {
    const int code = real.Win_post(group, assertion, win);
    const Window* window = find_window(win);
    if (code != MPI_SUCCESS || !window || (assertion & MPI_MODE_NOCHECK)) return code;
    const int tag = exposure_tag(*window);
    Guard guard;
    for (std::int32_t rank : numbers_of(group, realm_of(window->all.members)))
        detach(begin_send({SendSpec::Mode::standard, nullptr, 0, constants.byte, rank_in_realm(rank), tag,
                           realm_of(rank).channel, "MPI_Win_post"}));
    return code;
}

int Win_start(MPI_Group group, int assertion, MPI_Win win) {
    constexpr const char* call = "MPI_Win_start";
    const Window* window = find_window(win);
    if (!window || (assertion & MPI_MODE_NOCHECK)) return real.Win_start(group, assertion, win);
    std::vector<std::unique_ptr<Operation>> exposures;
    {
        Guard guard;
        const int tag = exposure_tag(*window);
        for (std::int32_t rank : numbers_of(group, realm_of(window->all.members)))
            exposures.push_back(begin_receive(
                {nullptr, 0, constants.byte, rank_in_realm(rank), tag, realm_of(rank).channel, call}));
    }
    // Completes all of them, even when one has failed: the receives of the others would take messages for the next epoch.
    int code = MPI_SUCCESS;
    for (auto& exposure : exposures) {
        complete_operation(*exposure);
        if (code == MPI_SUCCESS) code = exposure->outcome().error;
    }
    if (code != MPI_SUCCESS) return raise_on_window(win, code, call);
    return real.Win_start(group, assertion, win);
}

int Win_wait(MPI_Win win) {
    WaitScope waiting("MPI_Win_wait", MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    while (!may_block()) {
        int flag = 0;
        const int code = real.Win_test(win, &flag);
        if (code != MPI_SUCCESS || flag) return code;
        progress();
        {
            Guard guard;
            drive_progress();  // Open MPI's MPI_Win_test looks at shared memory only
        }
        backoff.pause();
    }
    return real.Win_wait(win);
}

int Win_lock(int kind, int rank, int assertion, MPI_Win win) {
    progress();
    Window* window = find_window(win);
    if (!lock_is_ours(window, kind, rank, assertion)) return real.Win_lock(kind, rank, assertion, win);
    const auto target = static_cast<std::size_t>(rank);
    take_lock(*window, target, kind == MPI_LOCK_EXCLUSIVE ? Held::exclusive : Held::shared);
    const int code = real.Win_lock(kind, rank, assertion, win);
    if (code != MPI_SUCCESS) give_back_lock(*window, target);
    return code;
}

int Win_unlock(int rank, MPI_Win win) {
    progress();
    const int code = real.Win_unlock(rank, win);
    Window* window = find_window(win);
    if (code == MPI_SUCCESS && window && rank >= 0 && static_cast<std::size_t>(rank) < window->held.size())
        give_back_lock(*window, static_cast<std::size_t>(rank));
    return code;
}

int Win_lock_all(int assertion, MPI_Win win) {
    progress();
    Window* window = find_window(win);
    if (!window || !window->locks || (assertion & MPI_MODE_NOCHECK) || window->all_held)
        return real.Win_lock_all(assertion, win);
    WindowLocks& locks = *window->locks;
    const std::size_t ranks = window->held.size();
    wait_for_lock("MPI_Win_lock_all", [&](unsigned looks) { return take_all_shared(locks, ranks, looks); });
    window->all_held = true;
    const int code = real.Win_lock_all(assertion, win);
    if (code == MPI_SUCCESS) return code;
    window->all_held = false;
    for (std::size_t rank = 0; rank < ranks; ++rank) locks.give_back_shared(rank);
    return code;
}

int Win_unlock_all(MPI_Win win) {
    progress();
    const int code = real.Win_unlock_all(win);
    Window* window = find_window(win);
    if (code != MPI_SUCCESS || !window || !std::exchange(window->all_held, false)) return code;
    for (std::size_t rank = 0; rank < window->held.size(); ++rank) window->locks->give_back_shared(rank);
    return code;
}

}  // namespace mpisec::shim
