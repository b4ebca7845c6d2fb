// Epochs of windows that cross nodes (MPI standard section 12.5). An operation has ended at its target when
// the target has answered a flush that was sent after it; at its origin, when the data that it sent may be changed and
// the data that it fetched has arrived. Every call that ends an epoch first waits until its operations have ended at
// their targets, so that what it tells other ranks afterwards, or in a barrier, is true.
#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "shim/collective/collective_operation.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/entry.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim::rma {

bool Window::holds(int of) const {
    return all_held || targets[static_cast<std::size_t>(of)].held != Held::no;
}

bool Window::may_access(int of) const {
    return fence_open || holds(of) || targets[static_cast<std::size_t>(of)].started;
}

void Window::send_control(int to, Kind kind, bool answered) {
    if (std::uint8_t* last = target(to).batch.last; last && (kind == Kind::flush || kind == Kind::unlock)) {
        last[ending_at] = static_cast<std::uint8_t>(kind == Kind::flush ? Ending::flush : Ending::unlock);
    } else {
        Header header;
        header.kind = kind;
        room_for_request(to, header_bytes);
        add_request(to, header, header_bytes);
    }
    send_batch(to);
    if (!answered) return;
    auto transfer = std::make_shared<Transfer>();
    transfer->message = Buffer(sizeof(std::int32_t));
    std::uint8_t* status = transfer->message.data();
    transfer->expect({status, sizeof(std::int32_t), constants.byte}, sizeof(std::int32_t));
    transfer->status = status;
    receive_answer(*transfer, status, sizeof(std::int32_t), to,
                   tag_of(Piece::answer, target(to).sequence - 1));  // the request that carries the flush
    target(to).transfers.push_back(std::move(transfer));
}

bool Window::settle(Target& of) {
    while (!of.transfers.empty() && of.transfers.front()->advance()) {
        const auto& transfer = of.transfers.front();
        if (transfer->broken())
            fail(transfer->error());
        else
            note_error(transfer->error());
        fetches -= transfer->fetches;
        of.transfers.pop_front();
    }
    return of.transfers.empty();
}

int Window::run_together(std::unique_ptr<CollectivePlan> plan) {
    const char* call = plan->procedure;
    if (const int code = failure(); code != MPI_SUCCESS) return code;
    if (!plan->good()) return plan->raise();  // on the private communicator, where errors are only returned
    std::unique_ptr<Operation> operation;
    {
        Guard guard;
        auto context = plan->comm->collective_context;
        operation = begin_collective(std::move(plan), std::move(context));
    }
    int code = wait(call, [&] { return operation->advance(); });
    if (code != MPI_SUCCESS) {
        (void)operation.release();  // MPI may still use its memory
    } else if (code = operation->outcome().error; code != MPI_SUCCESS) {
        Guard guard;
        fail(code);
    }
    return code;
}

bool Window::progress_is_due() {
    // A look for messages takes longer than an operation in memory that the node's ranks share.
    constexpr std::chrono::microseconds between_looks{2};
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < between_looks) return false;
    looked_ = now;
    return true;
}

int Window::take_error() {
    return std::exchange(error_, MPI_SUCCESS);
}

namespace {

using RankList = std::vector<int>;
using SomeRanks = std::span<const int>;

RankList everyone(const Window& window) {
    RankList ranks(static_cast<std::size_t>(window.size()));
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
    return ranks;
}

/// Waits until all transfers to these ranks are complete at this origin. Makes progress even where there are none, because a
/// program may repeat the call until another rank has done something.
int wait_for_transfers(const char* call, Window& window, SomeRanks ranks) {
    const auto all_settled = [&] {
        return std::ranges::all_of(ranks, [&](int to) { return window.settle(window.target(to)); });
    };
    {
        Guard guard;
        for (int to : ranks) window.send_batch(to);
        if (window.failure() == MPI_SUCCESS && all_settled() && !window.progress_is_due()) return MPI_SUCCESS;
    }
    progress();
    return window.wait(call, all_settled);
}

/// The same, and returns the first error of these transfers.
int complete_transfers(const char* call, Window& window, SomeRanks ranks) {
    if (int code = wait_for_transfers(call, window, ranks); code != MPI_SUCCESS) return code;
    Guard guard;
    return window.take_error();
}

/// Waits until all operations on these ranks are done at their targets; `ending`: gives the locks back too. The caller
/// must raise the error that is returned.
int end_operations(const char* call, Window& window, SomeRanks ranks, bool ending = false) {
    // Ranks of this node must see what was written to the memory that they share before they hear of it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    {
        Guard guard;
        for (int to : ranks) {
            Target& target = window.target(to);
            const bool locked = ending && !target.unchecked;
            if (ending && to == window.rank && locked) window.give_back_own_lock(target.held);
            if (to != window.rank && (target.outstanding || locked))
                window.send_control(to, locked ? Kind::unlock : Kind::flush, true);
            target.outstanding = false;
            if (ending) target.held = Held::no, target.unchecked = false;
        }
    }
    return complete_transfers(call, window, ranks);
}

/// Takes the locks of these ranks, asking all of them at once.
int take_locks(const char* call, Window& window, SomeRanks ranks, Held kind, bool unchecked) {
    std::vector<std::shared_ptr<Transfer>> grants;
    {
        Guard guard;
        for (int of : ranks) {
            window.target(of).held = kind;
            window.target(of).unchecked = unchecked;
            if (unchecked) continue;
            if (of == window.rank) {
                window.ask_for_own_lock(kind);
                continue;
            }
            auto grant = std::make_shared<Transfer>();
            window.receive_answer(*grant, nullptr, 0, of, grant_tag);
            grants.push_back(grant);
            window.send_control(of, kind == Held::shared ? Kind::lock_shared : Kind::lock_exclusive, false);
        }
    }
    const bool own = !unchecked && std::ranges::find(ranks, window.rank) != ranks.end();
    const int code = window.wait(call, [&] {
        const bool all = std::ranges::all_of(grants, [](auto& grant) { return grant->advance(); });
        return all && (!own || window.own_lock_granted);
    });
    Guard guard;
    for (auto& grant : grants) {
        if (code != MPI_SUCCESS) grant->abandon();
        if (grant->broken()) window.fail(grant->error());
    }
    return code != MPI_SUCCESS ? code : window.failure();
}

/// Raises the window's failure, or MPI_ERR_RMA_SYNC unless the call is allowed now.
int refuse_unless(const char* call, Window& window, bool allowed) {
    if (window.failure() != MPI_SUCCESS) return raise_on_window(window.handle, window.failure(), call);
    return allowed ? MPI_SUCCESS : raise_on_window(window.handle, MPI_ERR_RMA_SYNC, call);
}

bool any_held(const Window& window) {
    return window.all_held ||
           std::ranges::any_of(window.targets, [](const Target& each) { return each.held != Held::no; });
}

bool is_rank(const Window& window, int rank) {
    return rank >= 0 && rank < window.size();
}

/// The ranks, in the window, of a group's processes.
RankList ranks_of(Window& window, MPI_Group group) {
    MPI_Group all;
    int size = 0;
    real.Group_size(group, &size);
    RankList theirs(static_cast<std::size_t>(size)), here(theirs.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) theirs[i] = static_cast<int>(i);
    if (size == 0) return {};
    real.Comm_group(window.comm, &all);
    real.Group_translate_ranks(group, size, theirs.data(), all, here.data());
    real.Group_free(&all);
    return here;
}

int flush(const char* call, Window& window, SomeRanks ranks) {
    return raise_on_window(window.handle, end_operations(call, window, ranks), call);
}

}  // namespace

int Win_fence(int assertion, MPI_Win win) {
    constexpr const char* call = "MPI_Win_fence";
    const auto window = find(win);
    if (int code = refuse_unless(call, *window, !any_held(*window) && !window->access_started);
        code != MPI_SUCCESS)
        return code;
    int code = end_operations(call, *window, everyone(*window));
    if (window->failure() != MPI_SUCCESS) return raise_on_window(win, window->failure(), call);
    if (const int met = window->run_together(plan::Barrier(call, window->comm)); met != MPI_SUCCESS)
        code = met;
    window->fence_open = !(assertion & MPI_MODE_NOSUCCEED);
    window->operations_since = false;
    return raise_on_window(win, code, call);
}

int Win_lock(int kind, int rank, int assertion, MPI_Win win) {
    constexpr const char* call = "MPI_Win_lock";
    const auto window = find(win);
    if (kind != MPI_LOCK_EXCLUSIVE && kind != MPI_LOCK_SHARED)
        return raise_on_window(win, MPI_ERR_LOCKTYPE, call);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    if (!is_rank(*window, rank)) return raise_on_window(win, MPI_ERR_RANK, call);
    const bool free =
        !window->holds(rank) && !window->access_started && !(window->fence_open && window->operations_since);
    if (int code = refuse_unless(call, *window, free); code != MPI_SUCCESS) return code;
    window->fence_open = false;
    const Held held = kind == MPI_LOCK_EXCLUSIVE ? Held::exclusive : Held::shared;
    return raise_on_window(
        win, take_locks(call, *window, {&rank, 1}, held, (assertion & MPI_MODE_NOCHECK) != 0), call);
}

int Win_unlock(int rank, MPI_Win win) {
    constexpr const char* call = "MPI_Win_unlock";
    const auto window = find(win);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    if (!is_rank(*window, rank)) return raise_on_window(win, MPI_ERR_RANK, call);
    const bool held = !window->all_held && window->target(rank).held != Held::no;
    if (int code = refuse_unless(call, *window, held); code != MPI_SUCCESS) return code;
    return raise_on_window(win, end_operations(call, *window, {&rank, 1}, true), call);
}

int Win_lock_all(int assertion, MPI_Win win) {
    constexpr const char* call = "MPI_Win_lock_all";
    const auto window = find(win);
    const bool free =
        !any_held(*window) && !window->access_started && !(window->fence_open && window->operations_since);
    if (int code = refuse_unless(call, *window, free); code != MPI_SUCCESS) return code;
    window->fence_open = false;
    window->all_held = true;
    const bool unchecked = (assertion & MPI_MODE_NOCHECK) != 0;
    return raise_on_window(win, take_locks(call, *window, everyone(*window), Held::shared, unchecked), call);
}

int Win_unlock_all(MPI_Win win) {
    constexpr const char* call = "MPI_Win_unlock_all";
    const auto window = find(win);
    if (int code = refuse_unless(call, *window, window->all_held); code != MPI_SUCCESS) return code;
    window->all_held = false;
    return raise_on_window(win, end_operations(call, *window, everyone(*window), true), call);
}

int Win_flush(int rank, MPI_Win win) {
    constexpr const char* call = "MPI_Win_flush";
    const auto window = find(win);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    if (!is_rank(*window, rank)) return raise_on_window(win, MPI_ERR_RANK, call);
    if (int code = refuse_unless(call, *window, window->holds(rank)); code != MPI_SUCCESS) return code;
    return flush(call, *window, {&rank, 1});
}

int Win_flush_all(MPI_Win win) {
    constexpr const char* call = "MPI_Win_flush_all";
    const auto window = find(win);
    if (int code = refuse_unless(call, *window, any_held(*window)); code != MPI_SUCCESS) return code;
    return flush(call, *window, everyone(*window));
}

int Win_flush_local(int rank, MPI_Win win) {
    constexpr const char* call = "MPI_Win_flush_local";
    const auto window = find(win);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    if (!is_rank(*window, rank)) return raise_on_window(win, MPI_ERR_RANK, call);
    if (int code = refuse_unless(call, *window, window->holds(rank)); code != MPI_SUCCESS) return code;
    return raise_on_window(win, complete_transfers(call, *window, {&rank, 1}), call);
}

int Win_flush_local_all(MPI_Win win) {
    constexpr const char* call = "MPI_Win_flush_local_all";
    const auto window = find(win);
    if (int code = refuse_unless(call, *window, any_held(*window)); code != MPI_SUCCESS) return code;
    return raise_on_window(win, complete_transfers(call, *window, everyone(*window)), call);
}

int Win_post(MPI_Group group, int assertion, MPI_Win win) {
    constexpr const char* call = "MPI_Win_post";
    const auto window = find(win);
    if (int code = refuse_unless(call, *window, !window->exposed); code != MPI_SUCCESS) return code;
    RankList origins = ranks_of(*window, group);
    for (int from : origins)
        if (!is_rank(*window, from)) return raise_on_window(win, MPI_ERR_GROUP, call);
    Guard guard;
    window->exposed = true;
    window->exposed_to = std::move(origins);
    if (assertion & MPI_MODE_NOCHECK) return MPI_SUCCESS;
    for (int to : window->exposed_to) {
        if (to == window->rank) {
            ++window->own_exposures;
            continue;
        }
        auto transfer = std::make_shared<Transfer>();
        window->send_part(transfer, nullptr, 0, to, exposure_tag);
        window->target(to).transfers.push_back(std::move(transfer));
    }
    return MPI_SUCCESS;
}

int Win_start(MPI_Group group, int assertion, MPI_Win win) {
    constexpr const char* call = "MPI_Win_start";
    const auto window = find(win);
    const bool free =
        !window->access_started && !any_held(*window) && !(window->fence_open && window->operations_since);
    if (int code = refuse_unless(call, *window, free); code != MPI_SUCCESS) return code;
    RankList targets = ranks_of(*window, group);
    for (int to : targets)
        if (!is_rank(*window, to)) return raise_on_window(win, MPI_ERR_GROUP, call);
    window->fence_open = false;
    std::vector<std::shared_ptr<Transfer>> exposures;
    bool own = false;
    {
        Guard guard;
        window->access_started = true;
        for (int of : targets) {
            window->target(of).started = true;
            if (assertion & MPI_MODE_NOCHECK) continue;
            if (of == window->rank) {
                own = true;
                continue;
            }
            exposures.push_back(std::make_shared<Transfer>());
            window->receive_answer(*exposures.back(), nullptr, 0, of, exposure_tag);
        }
        window->started = std::move(targets);
    }
    int code = window->wait(call, [&] {
        const bool all = std::ranges::all_of(exposures, [](auto& each) { return each->advance(); });
        return all && (!own || window->own_exposures > 0);
    });
    {
        Guard guard;
        if (own && code == MPI_SUCCESS) --window->own_exposures;
        for (auto& each : exposures) {
            if (code != MPI_SUCCESS) each->abandon();
            if (each->broken()) window->fail(each->error());
        }
        if (code == MPI_SUCCESS) code = window->failure();
    }
    return raise_on_window(win, code, call);
}

int Win_complete(MPI_Win win) {
    constexpr const char* call = "MPI_Win_complete";
    const auto window = find(win);
    if (int code = refuse_unless(call, *window, window->access_started); code != MPI_SUCCESS) return code;
    const int code = end_operations(call, *window, window->started);
    {
        Guard guard;
        for (int to : window->started) {
            window->target(to).started = false;
            if (to == window->rank)
                ++window->origin(to).completes;
            else if (window->failure() == MPI_SUCCESS)
                window->send_control(to, Kind::complete, false);
        }
        window->started.clear();
        window->access_started = false;
    }
    return raise_on_window(win, code, call);
}

namespace {

/// Under the Guard: whether all ranks that this process is exposed to have called MPI_Win_complete; then ends the epoch.
bool exposure_has_ended(Window& window) {
    for (int from : window.exposed_to)
        if (window.origin(from).completes == 0) return false;
    for (int from : window.exposed_to) --window.origin(from).completes;
    window.exposed_to.clear();
    window.exposed = false;
    return true;
}

}  // namespace

int Win_wait(MPI_Win win) {
    constexpr const char* call = "MPI_Win_wait";
    const auto window = find(win);
    if (int code = refuse_unless(call, *window, window->exposed); code != MPI_SUCCESS) return code;
    return raise_on_window(win, window->wait(call, [&] { return exposure_has_ended(*window); }), call);
}

int Win_test(MPI_Win win, int* flag) {
    constexpr const char* call = "MPI_Win_test";
    const auto window = find(win);
    if (int code = refuse_unless(call, *window, window->exposed); code != MPI_SUCCESS) return code;
    progress();
    Guard guard;
    *flag = exposure_has_ended(*window);
    return MPI_SUCCESS;
}

int Win_sync(MPI_Win win) {
    constexpr const char* call = "MPI_Win_sync";
    const auto window = find(win);
    if (int code = refuse_unless(call, *window, true); code != MPI_SUCCESS) return code;
    progress();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim::rma
