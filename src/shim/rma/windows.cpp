// Windows that cross nodes: which there are, queries and freeing.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "shim/collective/collective_context.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/p2p/route.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/entry.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {

/// Under the Guard.
struct RmaWindows {
    std::unordered_map<MPI_Win, std::shared_ptr<rma::Window>> all;
    /// In `all`: the window of the last call, usually the next call's, too.
    const std::shared_ptr<rma::Window>* last = nullptr;
};

}  // namespace mpisec::shim

namespace mpisec::shim::rma {

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

/// The error handler of a window, beyond the life of its handle.
class HandlerOf {
  public:
    explicit HandlerOf(MPI_Win win) : known_(real.Win_get_errhandler(win, &handler_) == MPI_SUCCESS) {}
    ~HandlerOf() {
        if (known_) give_back_handler(handler_);
    }
    HandlerOf(const HandlerOf&) = delete;
    HandlerOf& operator=(const HandlerOf&) = delete;

    /// As raise_on_window(): on another window, which gets the handler.
    void raise(int code, const char* call) const {
        if (!known_ || code == MPI_SUCCESS) return;
        if (handler_ == constants.errors_are_fatal) end_fatally(code, call);
        struct StandIn {
            MPI_Win win = constants.win_null;
            ~StandIn() {
                if (win != constants.win_null) real.Win_free(&win);
            }
        } stand_in;
        if (make_handle(constants.info_null, &stand_in.win) != MPI_SUCCESS) return;
        real.Win_set_errhandler(stand_in.win, handler_);
        raise_on_window(stand_in.win, code, call);
    }

  private:
    MPI_Errhandler handler_{};
    bool known_;
};

}  // namespace

int Win_free(MPI_Win* win) {
    constexpr const char* call = "MPI_Win_free";
    const auto window = find(*win);
    const HandlerOf handler(*win);
    // Deletes attributes, by procedures of the program's that may still use the window: it answers until all have met.
    const int freed = real.Win_free(win);
    forget(*window);  // whose handle the library may now give to another thread's new window
    const int code = leave_together(call, *window);
    window->close();
    if (code == MPI_SUCCESS) free_private(window->comm);
    handler.raise(code, call);
    return code != MPI_SUCCESS ? code : freed;
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
