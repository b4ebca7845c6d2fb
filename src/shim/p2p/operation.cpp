#include "shim/p2p/operation.hpp"

#include <algorithm>
#include <atomic>

#include "shim/p2p/backoff.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/staged.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/trace.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {

/// Under the Guard.
struct WorkList {
    std::vector<Operation*> listed;
    std::vector<std::unique_ptr<Operation>> detached;  ///< all of them are listed too
    std::size_t passes = 0;
    std::size_t next = 0;  ///< to be polled, of those that take turns

    void add(Operation& operation) {
        operation.listed = true;
        listed.push_back(&operation);
        process.work_count.store(listed.size(), std::memory_order_relaxed);
    }
    void remove(Operation& operation) {
        operation.listed = false;
        std::erase(listed, &operation);
        process.work_count.store(listed.size(), std::memory_order_relaxed);
    }
};

namespace {

// Polling enters MPI, which polls the network. In a window of many messages only the oldest can make progress (segments.hpp), so the others
// take turns: an eighth of them in each pass, and never so many that a pass takes long.
constexpr std::size_t always_polled = 8, passes_between_polls = 8, most_in_turn = 64;

}  // namespace

void write_status(const Outcome& outcome, MPI_Status* status) {
    if (status == MPI_STATUS_IGNORE) return;
    status->MPI_SOURCE = outcome.source;
    status->MPI_TAG = outcome.tag;
    real.Status_set_elements_x(status, constants.byte, static_cast<MPI_Count>(outcome.bytes));
    real.Status_set_cancelled(status, outcome.cancelled);
}

ErrorOwner Operation::error_owner() const {
    return {handler_owner(comm_), {}, {}, comm_ ? comm_->heir : nullptr};
}

int raise_at(const ErrorOwner& owner, int code, const char* call) {
    if (owner.window) return raise_on_window(*owner.window, code, call);
    if (owner.file) return raise_on_file(*owner.file, code, call);
    return raise_on(owner.comm, code, call);
}

Route route_unknown(MPI_Comm comm) {
    if (comm == constants.comm_null) return {};
    return {Route::invalid, nullptr, MPI_ERR_COMM};
}

int raise_route(const Route& route, const char* call) {
    if (!route.comm && gate.phase == Phase::ended)
        say(std::string(call) +
            " was called after MPI_Finalize had wiped the keys, so it is refused: nothing may be sent any "
            "more");
    else if (!route.comm)
        say(std::string(call) +
            ": MPIsec does not know this communicator and cannot protect its traffic, so the call is "
            "refused");
    return raise(route.comm, route.error, call);
}

std::unique_ptr<Operation> begin_send(const SendSpec& spec) {
    if (needs_staging(spec)) [[unlikely]]
        return start_staged_send(spec);
    const Route route = route_send(spec.peer, spec.tag, spec.comm, spec.count);
    if (route.kind == Route::sealed) return start_send(spec, route);
    if (route.kind == Route::verified) return start_verified_send(spec, *route.comm);
    if (route.kind == Route::invalid) return std::make_unique<FailedOperation>(route.comm, route.error);
    MPI_Request request = constants.request_null;
    const int started = isend_plain(spec, &request);
    return std::make_unique<PlainOperation>(route.comm, started, request);
}

std::unique_ptr<Operation> begin_receive(const ReceiveSpec& spec) {
    // MPI_PROC_NULL is not left to MPI: MPICH 4.0 shows another source for such a request (MPI standard section 3.10).
    if (spec.peer == MPI_PROC_NULL)
        return std::make_unique<DoneOperation>(
            nullptr, Outcome{MPI_PROC_NULL, MPI_ANY_TAG, 0, false, MPI_SUCCESS, false});
    if (needs_staging(spec)) [[unlikely]]
        return start_staged_receive(spec, begin_receive);
    const Route route = route_receive(spec.peer, spec.tag, spec.comm, spec.count);
    if (route.kind == Route::sealed || route.kind == Route::mixed) return start_receive(spec, route);
    if (route.kind == Route::verified) return start_verified_receive(spec, *route.comm);
    if (route.kind == Route::invalid) return std::make_unique<FailedOperation>(route.comm, route.error);
    MPI_Request request = constants.request_null;
    const int started = ireceive_plain(spec, &request);
    return std::make_unique<PlainOperation>(route.comm, started, request);
}

void enlist(Operation& operation) {
    if (operation.listed || operation.complete() || !(operation.needs_progress() || operation.urged)) return;
    process.work->add(operation);
}

void leave_work_list(Operation& operation) {
    if (operation.listed) process.work->remove(operation);
}

void abandon(std::unique_ptr<Operation> operation) {
    if (!operation || operation->complete()) return;
    operation->cancel();
    leave_work_list(*operation);
    if (operation->advance()) return;
    operation->stop_workers();
    (void)operation.release();
}

void detach(std::unique_ptr<Operation> operation) {
    if (operation->advance()) {
        leave_work_list(*operation);
        return;
    }
    if (!operation->listed) process.work->add(*operation);
    process.work->detached.push_back(std::move(operation));
}

namespace {

/// Polls the operation at this place of the list. True when it has ended, and is not listed any more.
bool poll(WorkList& work, std::size_t place) {
    Operation* operation = work.listed[place];
    if (!operation->advance()) return false;
    leave_work_list(*operation);
    // Its end may free things of the program's, whose procedures may make progress again: it ends outside the list.
    const auto mine = std::ranges::find(work.detached, operation, [](const auto& one) { return one.get(); });
    if (mine == work.detached.end()) return true;
    const auto ended = std::move(*mine);
    work.detached.erase(mine);
    return true;
}

}  // namespace

bool has_many_operations() {
    return process.work_count.load(std::memory_order_relaxed) >
           always_polled + passes_between_polls * most_in_turn;
}

void progress() {
    if (!work_outstanding()) return;
    Guard guard;
    WorkList& work = *process.work;
    // An operation may start others (an error handler that communicates): index, do not iterate.
    for (std::size_t i = 0; i < std::min(always_polled, work.listed.size());)
        if (!poll(work, i)) ++i;
    if (work.listed.size() <= always_polled) return;
    const std::size_t others = work.listed.size() - always_polled;
    const bool one_more = work.passes++ % passes_between_polls < others % passes_between_polls;
    for (std::size_t turns = std::min(others / passes_between_polls + one_more, most_in_turn);
         turns > 0 && work.listed.size() > always_polled; --turns) {
        if (work.next < always_polled || work.next >= work.listed.size()) work.next = always_polled;
        if (!poll(work, work.next)) ++work.next;
    }
}

void finish_detached() {
    Backoff backoff;
    auto first = [] {
        Guard guard;
        const auto& detached = process.work->detached;
        return detached.empty() ? nullptr : detached.front().get();
    };
    while (Operation* operation = first()) {
        WaitInfo at;
        {
            Guard guard;
            at = operation->wait_info();
        }
        WaitScope waiting(at.call, at.peer, at.tag);
        while (first() == operation) {
            progress();
            backoff.pause();
        }
    }
}

void complete_operation(Operation& operation) {
    const WaitInfo at = [&] {
        Guard guard;
        return operation.wait_info();
    }();
    WaitScope waiting(at.call, at.peer, at.tag);
    Backoff backoff;
    while (true) {
        if (may_block()) {
            // Nothing else to move: let MPI block on the one request there is.
            if (MPI_Request* request = operation.complete() ? nullptr : operation.sole_request()) {
                MPI_Status status{};  // MPICH leaves the status of a send unchanged
                TraceScope traced("MPI wait");
                const int code = real.Wait(request, &status);
                operation.sole_request_done(code, status);
            }
        }
        progress();
        {
            Guard guard;
            if (operation.advance()) {
                leave_work_list(operation);
                return;
            }
            enlist(operation);
        }
        backoff.pause();
    }
}

int complete_and_raise(Operation& operation, MPI_Status* status) {
    complete_operation(operation);
    const Outcome& outcome = operation.outcome();
    write_status(outcome, status);
    return outcome.raised ? outcome.error
                          : raise(operation.comm(), outcome.error, operation.wait_info().call);
}

int complete_plain(int started, MPI_Request* request, MPI_Status* status) {
    if (started != MPI_SUCCESS) return started;
    WaitScope waiting("a message of this node", MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    while (true) {
        if (may_block()) return real.Wait(request, status);
        int flag = 0;
        const int code = real.Test(request, &flag, status);
        if (code != MPI_SUCCESS || flag) return code;
        progress();
        backoff.pause();
    }
}

int finish_nonblocking(int started_error, MPI_Request* request) {
    return complete_plain(started_error, request, MPI_STATUS_IGNORE);
}

}  // namespace mpisec::shim
