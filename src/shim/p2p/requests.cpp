#include "shim/p2p/requests.hpp"

#include <atomic>
#include <unordered_map>
#include <vector>

#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// Under the Guard; entries stay for reuse.
struct UserRequests {
    std::unordered_map<MPI_Request, std::unique_ptr<UserRequest>> all;
    std::vector<UserRequest*> unused;
};

namespace {

UserRequest& take() {
    auto& [all, unused] = *process.requests;
    if (unused.empty()) {
        auto made = std::make_unique<UserRequest>();
        if (real.Recv_init(nullptr, 0, constants.byte, MPI_PROC_NULL, 0, self_comm(), &made->handle) !=
            MPI_SUCCESS)
            abort_job("the MPI library has no request left");
        UserRequest* entered = made.get();
        all[made->handle] = std::move(made);
        unused.push_back(entered);
    }
    UserRequest& request = *unused.back();
    unused.pop_back();
    request.in_use = true;
    process.requests_in_use.fetch_add(1, std::memory_order_relaxed);
    return request;
}

}  // namespace

MPI_Request give_request(std::unique_ptr<Operation> operation) {
    UserRequest& request = take();
    request.operation = std::move(operation);
    return request.handle;
}

MPI_Request give_persistent(std::function<std::unique_ptr<Operation>()> restart,
                            std::function<void()> at_end) {
    UserRequest& request = take();
    request.restart = std::move(restart);
    request.at_end = std::move(at_end);
    return request.handle;
}

bool any_request_given() {
    return process.requests_in_use.load(std::memory_order_relaxed) != 0;
}

UserRequest* find_request(MPI_Request handle) {
    if (!any_request_given() || handle == constants.request_null) return nullptr;
    Guard guard;
    const auto& all = process.requests->all;
    auto found = all.find(handle);
    return found != all.end() && found->second->in_use ? found->second.get() : nullptr;
}

void retire_request(UserRequest& request) {
    if (request.at_end) request.at_end();
    request.operation.reset();
    request.restart = nullptr;
    request.at_end = nullptr;
    request.in_use = false;
    process.requests_in_use.fetch_sub(1, std::memory_order_relaxed);
    process.requests->unused.push_back(&request);
}

void free_requests() {
    auto& [all, unused] = *process.requests;
    for (auto& [handle, request] : all) {
        // Operations that the program never waited for stay: MPI may write to their buffers to the very end of MPI_Finalize.
        if (request->operation && !request->operation->complete()) {
            leave_work_list(*request->operation);
            (void)request->operation.release();
        }
        request->operation.reset();
        MPI_Request mine = handle;
        real.Request_free(&mine);
    }
    all.clear();
    unused.clear();
    process.requests_in_use = 0;
}

}  // namespace mpisec::shim
