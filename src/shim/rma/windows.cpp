// Windows that cross nodes: construction, queries and freeing.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "fabric/node_memory.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/route.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/entry.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/stats.hpp"

namespace mpisec::shim {

/// Under the Guard.
struct RmaWindows {
    std::unordered_map<MPI_Win, std::shared_ptr<rma::Window>> all;
    /// In `all`: the window of the last call, usually the next call's, too.
    const std::shared_ptr<rma::Window>* last = nullptr;
};

}  // namespace mpisec::shim

namespace mpisec::shim::rma {
namespace {

/// Makes a communicator for the window's messages alone, which the program does not see.
int make_private(const char* procedure, Communicator& parent, MPI_Comm* made) {
    MPI_Group group;
    if (int code = real.Comm_group(parent.handle, &group); code != MPI_SUCCESS) return code;
    const int code = construct(begin_construction(procedure, parent, membership_of(parent)), made,
                               [&](MPI_Comm* copy) { return real.Comm_create(parent.handle, group, copy); });
    real.Group_free(&group);
    if (code != MPI_SUCCESS) return code;
    real.Comm_set_errhandler(*made, constants.errors_return);
    find_communicator(*made)->traffic = traffic_of_collective(procedure);
    return MPI_SUCCESS;
}

void free_private(MPI_Comm comm) {
    Communicator* known = find_communicator(comm);
    finish_collectives(*known);
    {
        Guard guard;
        hold(*known);
    }
    if (real.Comm_free(&comm) == MPI_SUCCESS) {
        unequip(*known);
        mpisec::shim::forget(*known);
    }
    Guard guard;
    release(*known);
}

/// One rank's part of a window that is being made.
struct Making {
    const Communicator& own;           ///< the window's private communicator
    MPI_Win win = constants.win_null;  ///< the library's window, of this process alone
    Part part{};
    WindowMemory memory{};
    /// shared memory that holds this rank's part and those of other ranks of its node
    std::optional<fabric::SharedSegment> segment{};
    AllocatedMemory allocated{};
    std::vector<std::uint8_t*> near{};  ///< each rank's memory, behind its lock; null: not in `segment`
};

/// Builds a window on its private communicator: `make` makes this rank's part, and the ranks tell each other of their
/// parts. If no window can be made, frees that communicator and returns the error code without raising it.
template <class Make>
int build_window(const char* procedure, MPI_Comm own, Make make, std::shared_ptr<Window>& window) {
    Making mine{.own = *find_communicator(own)};
    make(mine);
    std::vector<Part> parts(static_cast<std::size_t>(mine.own.size));
    int code = run_collective(plan::Allgather(procedure, &mine.part, sizeof(Part), constants.byte,
                                              parts.data(), sizeof(Part), constants.byte, own));
    // What fails on one rank fails on all, so that no rank waits in a window that another rank does not have.
    for (const Part& part : parts)
        if (code == MPI_SUCCESS) code = part.code;
    if (mine.part.code != MPI_SUCCESS) code = mine.part.code;
    if (code != MPI_SUCCESS) {
        if (mine.win != constants.win_null && mine.part.code == MPI_SUCCESS) real.Win_free(&mine.win);
        free_private(own);
        return code;
    }
    window = std::make_shared<Window>(mine.win, own, mine.own, std::move(mine.memory), parts);
    for (std::size_t i = 0; i < mine.near.size(); ++i)
        window->targets[i].near = parts[i].shared ? mine.near[i] : nullptr;
    window->segment = std::move(mine.segment);
    window->allocated = std::move(mine.allocated);
    return MPI_SUCCESS;
}

/// Builds a window that the program gets.
template <class Make>
int make_window(const char* procedure, int flavor, MPI_Comm comm, MPI_Win* win, Make make) {
    Communicator* parent = find_communicator(comm);
    if (auto error = bad_arguments(procedure, parent, win)) return *error;
    if (parent->inter) return raise(parent, MPI_ERR_COMM);
    MPI_Comm own = constants.comm_null;
    if (int code = make_private(procedure, *parent, &own); code != MPI_SUCCESS) return code;
    std::shared_ptr<Window> window;
    if (int code = build_window(procedure, own, make, window); code != MPI_SUCCESS)
        return raise(parent, code);
    window->flavor = flavor;
    *win = window->handle;
    remember(std::move(window));
    return MPI_SUCCESS;
}

/// Allocates memory for MPI_Win_allocate that all ranks of this node can reach, if there is enough: all of them are in
/// this call.
void allocate_shared(Making& mine) {
    constexpr std::size_t alignment = 64;
    constexpr std::int64_t longest_lock = NodeLock::bytes + alignment;
    const Communicator& own = mine.own;
    const auto ranks = static_cast<std::size_t>(own.size);
    std::vector<std::int64_t> sizes(ranks);
    if (run_collective(plan::Allgather("MPI_Win_allocate", &mine.part.size, 1, constants.int64, sizes.data(),
                                       1, constants.int64, own.handle)) != MPI_SUCCESS)
        return;
    std::vector<std::size_t> places(ranks, SIZE_MAX);
    std::size_t bytes = 0;
    unsigned here = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
        if (!own.is_local(static_cast<int>(i)) && static_cast<int>(i) != own.rank) continue;
        if (sizes[i] < 0 || sizes[i] > PTRDIFF_MAX / own.size - longest_lock) return;
        places[i] = bytes + NodeLock::bytes;
        bytes = places[i] + (static_cast<std::size_t>(sizes[i]) + alignment - 1) / alignment * alignment;
        ++here;
    }
    if (here < 2 || bytes == here * NodeLock::bytes) return;
    // This must not be the name of the memory for the private communicator's collectives.
    wire::ContextId context = own.context;
    context[0] ^= 0xff;
    const std::string name = memory_name(context, facts_of(own_number(own.members)).node);
    auto memory = fabric::SharedSegment::attach(name, bytes, here);
    if (!memory) return;  // too little shared memory: this rank uses messages inside its node too
    mine.segment.emplace(std::move(*memory));
    mine.near.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i)
        if (places[i] != SIZE_MAX) mine.near[i] = mine.segment->bytes().data() + places[i];
    NodeLock::make(mine.near[static_cast<std::size_t>(own.rank)] - NodeLock::bytes);
    mine.part.shared = 1;
}

/// The library's window around no memory, of which only the handle, name, info, attributes and error handler are used: the library may
/// open memory that is in its own windows to the network.
int make_handle(MPI_Info info, MPI_Win* made) {
    void* nothing = nullptr;
    return real.Win_allocate(0, 1, info, state.private_self, &nothing, made);
}

/// Finds arguments of MPI_Win_create and MPI_Win_allocate that MPI must refuse.
int check_part(MPI_Aint size, MPI_Aint unit) {
    if (size < 0) return MPI_ERR_SIZE;
    return unit <= 0 ? MPI_ERR_DISP : MPI_SUCCESS;
}

/// An error class that means the same on every rank.
int class_of(int code) {
    int error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) real.Error_class(code, &error_class);
    return error_class;
}

}  // namespace

const std::shared_ptr<Window>* look_up(MPI_Win win) {
    Guard guard;
    RmaWindows& windows = *process.rma_windows;
    if (windows.last && (*windows.last)->handle == win) return windows.last;
    const auto found = windows.all.find(win);
    if (found == windows.all.end()) return nullptr;
    return windows.last = &found->second;
}

std::shared_ptr<Window> find(MPI_Win win) {
    const std::shared_ptr<Window>* found = look_up(win);
    return found ? *found : nullptr;
}

bool is_known(MPI_Win win) {
    Guard guard;
    const RmaWindows& windows = *process.rma_windows;
    return (windows.last && (*windows.last)->handle == win) || windows.all.contains(win);
}

void remember(std::shared_ptr<Window> window) {
    Guard guard;
    const MPI_Win win = window->handle;
    process.rma_windows->all[win] = std::move(window);
    process.rma_window_count.fetch_add(1, std::memory_order_relaxed);
}

void forget(const Window& window) {
    Guard guard;
    RmaWindows& windows = *process.rma_windows;
    windows.last = nullptr;
    process.rma_window_count.fetch_sub(1, std::memory_order_relaxed);
    // The library may have given the handle to another thread's new window by now.
    const auto found = windows.all.find(window.handle);
    if (found != windows.all.end() && found->second.get() == &window) windows.all.erase(found);
}

void close_windows() {
    auto& all = process.rma_windows->all;
    process.rma_windows->last = nullptr;
    for (auto& [handle, window] : all) {
        window->close();
        // After an error not all ranks complete what was begun on the communicator.
        if (window->failure() == MPI_SUCCESS) free_private(window->comm);
    }
    all.clear();
    process.rma_window_count = 0;
}

int Win_create(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
    return make_window("MPI_Win_create", MPI_WIN_FLAVOR_CREATE, comm, win, [&](Making& mine) {
        mine.part = {size, disp_unit, check_part(size, disp_unit), 0};
        if (mine.part.code == MPI_SUCCESS) mine.part.code = class_of(make_handle(info, &mine.win));
        mine.memory = WindowMemory(base, size, disp_unit);
    });
}

int Win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                 MPI_Win* win) {
    return make_window("MPI_Win_allocate", MPI_WIN_FLAVOR_ALLOCATE, comm, win, [&](Making& mine) {
        mine.part = {size, disp_unit, check_part(size, disp_unit), 0};
        allocate_shared(mine);
        if (mine.part.code != MPI_SUCCESS) return;
        void* base = mine.part.shared ? mine.near[static_cast<std::size_t>(mine.own.rank)] : nullptr;
        int code = MPI_SUCCESS;
        if (!base) {
            code = real.Alloc_mem(size, info, &base);
            mine.allocated.reset(code == MPI_SUCCESS ? base : nullptr);
        }
        if (code == MPI_SUCCESS) code = make_handle(info, &mine.win);
        mine.part.code = class_of(code);
        NodeLock* lock =
            mine.part.shared ? NodeLock::at(static_cast<std::uint8_t*>(base) - NodeLock::bytes) : nullptr;
        mine.memory = WindowMemory(base, size, disp_unit, lock);
        *static_cast<void**>(baseptr) = base;
    });
}

int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
    return make_window("MPI_Win_create_dynamic", MPI_WIN_FLAVOR_DYNAMIC, comm, win, [&](Making& mine) {
        mine.part = {0, 1, class_of(make_handle(info, &mine.win)), 0};
        mine.memory = WindowMemory::dynamic();
    });
}

namespace {

/// Waits until all ranks have met and what they asked of each other until then has been answered.
int leave_together(const char* call, Window& window) {
    auto all_sent = [&] { return window.all_sent(); };
    int code = window.wait(call, all_sent);
    if (code == MPI_SUCCESS) code = window.run_together(plan::Barrier(call, window.comm));
    // The other ranks have received the answers to all that they asked for before the barrier; only this rank's own sends are
    // left to complete.
    if (code == MPI_SUCCESS) code = window.wait(call, all_sent);
    return code;
}

/// raise_on_window() for a window whose handle the library has freed, which had this error handler: on another window.
int raise_on_freed(MPI_Errhandler handler, int code, const char* call) {
    MPI_Win stand_in = constants.win_null;
    if (code != MPI_SUCCESS && make_handle(constants.info_null, &stand_in) == MPI_SUCCESS) {
        real.Win_set_errhandler(stand_in, handler);
        raise_on_window(stand_in, code, call);
        real.Win_free(&stand_in);
    }
    give_back_handler(handler);
    return code;
}

}  // namespace

int Win_free(MPI_Win* win) {
    constexpr const char* call = "MPI_Win_free";
    const auto window = find(*win);
    MPI_Errhandler handler;
    if (int code = real.Win_get_errhandler(*win, &handler); code != MPI_SUCCESS) return code;
    // Deletes attributes: the program's procedures may still use the window. The memory stays until all have met.
    const int freed = real.Win_free(win);
    const int code = leave_together(call, *window);
    window->close();
    forget(*window);
    if (code == MPI_SUCCESS) free_private(window->comm);
    raise_on_freed(handler, code, call);
    return code != MPI_SUCCESS ? code : freed;
}

int make_hidden(const char* call, Communicator& parent, void* base, MPI_Aint size,
                std::shared_ptr<Window>& window) {
    MPI_Comm own = constants.comm_null;
    if (int code = make_private(call, parent, &own); code != MPI_SUCCESS) return code;
    auto make = [&](Making& mine) {
        mine.part = {size, 1, MPI_SUCCESS, 0};
        mine.memory = WindowMemory(base, size, 1);
    };
    if (int code = build_window(call, own, make, window); code != MPI_SUCCESS) return code;
    window->all_held = true;
    return MPI_SUCCESS;
}

int leave_hidden(const char* call, Window& window) {
    return leave_together(call, window);
}

void free_hidden(Window& window, bool all_met) {
    window.close();
    if (all_met) free_private(window.comm);
}

namespace {

template <class Action>
auto under_guard(Action action) {
    Guard guard;
    return action();
}

}  // namespace

int Win_attach(MPI_Win win, void* base, MPI_Aint size) {
    constexpr const char* call = "MPI_Win_attach";
    const auto window = find(win);
    if (!window->dynamic) return raise_on_window(win, MPI_ERR_RMA_FLAVOR, call);
    if (size < 0) return raise_on_window(win, MPI_ERR_SIZE, call);
    return under_guard([&] { return window->memory.attach(base, size); })
               ? MPI_SUCCESS
               : raise_on_window(win, MPI_ERR_RMA_ATTACH, call);
}

int Win_detach(MPI_Win win, const void* base) {
    constexpr const char* call = "MPI_Win_detach";
    const auto window = find(win);
    if (!window->dynamic) return raise_on_window(win, MPI_ERR_RMA_FLAVOR, call);
    return under_guard([&] { return window->memory.detach(base); })
               ? MPI_SUCCESS
               : raise_on_window(win, MPI_ERR_RMA_ATTACH, call);
}

int Win_get_group(MPI_Win win, MPI_Group* group) {
    return real.Comm_group(find(win)->comm, group);
}

int Win_get_attr(MPI_Win win, int keyval, void* value, int* flag) {
    const auto window = find(win);
    // The library's values of these attributes describe its own window, which may have no memory (make_handle).
    void* answer = nullptr;
    if (keyval == MPI_WIN_BASE) answer = window->memory.base();
    if (keyval == MPI_WIN_SIZE) answer = &window->target(window->rank).size;
    if (keyval == MPI_WIN_DISP_UNIT) answer = &window->unit;
    if (keyval == MPI_WIN_CREATE_FLAVOR) answer = &window->flavor;
    if (keyval == MPI_WIN_MODEL) answer = &window->model;
    if (!value || !flag || (!answer && keyval != MPI_WIN_BASE))
        return real.Win_get_attr(win, keyval, value, flag);
    *static_cast<void**>(value) = answer;
    *flag = 1;
    return MPI_SUCCESS;
}

namespace {

/// This process can access its own memory, and that of ranks of its node where MPI_Win_allocate shared it.
template <class Unit>
int query(MPI_Win win, int rank, MPI_Aint* size, Unit* disp_unit, void* baseptr) {
    constexpr const char* call = "MPI_Win_shared_query";
    const auto window = find(win);
    if (window->dynamic) return raise_on_window(win, MPI_ERR_RMA_FLAVOR, call);
    if (rank == MPI_PROC_NULL) {  // the first one that has memory
        const auto& targets = window->targets;
        const auto first = std::ranges::find_if(targets, [](const Target& each) { return each.size > 0; });
        rank = first == targets.end() ? 0 : static_cast<int>(first - targets.begin());
    }
    if (rank < 0 || rank >= window->size()) return raise_on_window(win, MPI_ERR_RANK, call);
    const Target& target = window->target(rank);
    const bool is_own = rank == window->rank;
    void* base = is_own ? window->memory.base() : target.near;
    *size = base ? target.size : 0;
    *disp_unit = base || is_own ? unit_as<Unit>(target.unit) : 0;
    *static_cast<void**>(baseptr) = base;
    return MPI_SUCCESS;
}

}  // namespace

int Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* baseptr) {
    return query(win, rank, size, disp_unit, baseptr);
}

int Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit, void* baseptr) {
    return query(win, rank, size, disp_unit, baseptr);
}

}  // namespace mpisec::shim::rma
