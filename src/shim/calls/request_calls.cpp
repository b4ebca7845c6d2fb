// Procedures on request handles other than waiting and testing: status without completion, start, free,
// cancel.
#include "shim/calls/empty_status.hpp"
#include "shim/calls/entry.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
    progress();
    UserRequest* mine = find_request(request);
    if (!mine) return real.Request_get_status(request, flag, status);
    Guard guard;
    *flag = !mine->operation || mine->operation->advance();
    if (!mine->operation)
        write_empty_status(status);
    else if (*flag)
        write_status(mine->operation->outcome(), status);
    return MPI_SUCCESS;
}

int Request_is_complete(MPI_Request request) {
    int flag = 0;
    Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    return flag;
}

int Request_get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses) {
    *flag = 1;
    for (int i = 0; i < count; ++i) {
        int done = 0;
        const int code = Request_get_status(
            requests[i], &done, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i);
        if (code != MPI_SUCCESS) return code;
        *flag = *flag && done;
    }
    return MPI_SUCCESS;
}

namespace {

/// An inactive or null request takes no part in "any" and "some" (MPI standard section 3.7.6). Only the MPI library knows which of its own
/// persistent requests are inactive.
bool takes_part(MPI_Request request) {
    if (UserRequest* mine = find_request(request)) return mine->operation != nullptr;
    if (request == constants.request_null) return false;
#ifndef OPEN_MPI  // which does not have these procedures
    if (real.Request_get_status_any) {
        int index = MPI_UNDEFINED, flag = 0;
        MPI_Status status;
        const int code = real.Request_get_status_any(1, &request, &index, &flag, &status);
        return code != MPI_SUCCESS || !flag || index != MPI_UNDEFINED;
    }
#endif
    return true;
}

}  // namespace

int Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag,
                           MPI_Status* status) {
    *index = MPI_UNDEFINED;
    *flag = 1;
    for (int i = 0; i < count; ++i) {
        if (!takes_part(requests[i])) continue;
        const int code = Request_get_status(requests[i], flag, status);
        if (code != MPI_SUCCESS) return code;
        if (*flag) {
            *index = i;
            return MPI_SUCCESS;
        }
    }
    if (*flag) write_empty_status(status);
    return MPI_SUCCESS;
}

int Request_get_status_some(int incount, const MPI_Request* requests, int* outcount, int* indices,
                            MPI_Status* statuses) {
    int found = 0;
    bool any = false;
    for (int i = 0; i < incount; ++i) {
        if (!takes_part(requests[i])) continue;
        any = true;
        int done = 0;
        const int code = Request_get_status(
            requests[i], &done, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + found);
        if (code != MPI_SUCCESS) return code;
        if (done) indices[found++] = i;
    }
    *outcount = any ? found : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int Start(MPI_Request* request) {
    UserRequest* mine = find_request(*request);
    if (!mine) return real.Start(request);
    if (!mine->restart || mine->operation) return raise(nullptr, MPI_ERR_REQUEST);
    Guard guard;
    mine->operation = mine->restart();
    return MPI_SUCCESS;
}

int Startall(int count, MPI_Request* requests) {
    for (int i = 0; i < count; ++i)
        if (int code = Start(requests + i); code != MPI_SUCCESS) return code;
    return MPI_SUCCESS;
}

int Request_free(MPI_Request* request) {
    UserRequest* mine = find_request(*request);
    if (!mine) return real.Request_free(request);
    Guard guard;
    if (mine->operation) {
        std::unique_ptr<Operation> operation = std::move(mine->operation);
        if (mine->at_end) {
            // The operation goes on with what the persistent request holds, which is given back when the operation has ended.
            auto at_end = std::move(mine->at_end);
            mine->at_end = nullptr;
            operation->at_end = std::move(at_end);
        }
        detach(std::move(operation));
    }
    retire_request(*mine);
    *request = constants.request_null;
    return MPI_SUCCESS;
}

int Cancel(MPI_Request* request) {
    UserRequest* mine = find_request(*request);
    if (!mine) return verifies_same_node() ? cancel_verified(request) : real.Cancel(request);
    Guard guard;
    if (mine->operation) mine->operation->cancel();
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim
