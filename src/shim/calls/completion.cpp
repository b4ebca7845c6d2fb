// MPI_Wait* and MPI_Test*: mixtures of MPIsec's handles and the MPI library's own requests (M6). Without a
// handle of MPIsec's in the call and with nothing to move, the call goes straight to MPI.
#include <algorithm>
#include <vector>

#include "shim/calls/empty_status.hpp"
#include "shim/calls/entry.hpp"
#include "shim/p2p/backoff.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

MPI_Status* at(MPI_Status* statuses, int i) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

/// What a completed request leaves behind.
struct Completed {
    int error = MPI_SUCCESS;
    bool raised = false;
    ErrorOwner owner{};
    const char* call = "";  ///< that started it
};

/// Hands a complete operation's outcome to the program and takes the handle back (a persistent request becomes inactive).
Completed hand_over(UserRequest& mine, MPI_Request* request, MPI_Status* status) {
    Guard guard;
    if (!mine.operation) {
        write_empty_status(status);
        return {};
    }
    const Outcome outcome = mine.operation->outcome();
    const Completed completed = outcome.error == MPI_SUCCESS
                                    ? Completed{}
                                    : Completed{outcome.error, outcome.raised, mine.operation->error_owner(),
                                                mine.operation->wait_info().call};
    write_status(outcome, status);
    leave_work_list(*mine.operation);
    mine.operation.reset();
    if (!mine.restart) {
        retire_request(mine);
        *request = constants.request_null;
    }
    return completed;
}

int raise_completed(const Completed& completed) {
    return completed.raised ? completed.error : raise_at(completed.owner, completed.error, completed.call);
}

/// Advances what progress() does not advance; every caller calls progress() as well. True when complete; an inactive persistent request
/// counts as complete.
bool advanced(UserRequest& mine) {
    Guard guard;
    if (!mine.operation) return true;
    return mine.operation->listed ? mine.operation->complete() : mine.operation->advance();
}

/// The same for the only request of a call. Where many operations take turns, progress() comes to this one too seldom for a program that tests
/// it now and then.
bool advanced_alone(UserRequest& mine) {
    Guard guard;
    return advanced(mine) || mine.operation->advance();
}

/// The requests of one call, each looked up once.
class Mixture {
  public:
    Mixture(int count, MPI_Request* requests)
        : requests_(requests), sealed_(static_cast<std::size_t>(count)) {
        for (int i = 0; i < count; ++i) sealed_[static_cast<std::size_t>(i)] = find_request(requests[i]);
    }
    int count() const { return static_cast<int>(sealed_.size()); }
    UserRequest* sealed(int i) const { return sealed_[static_cast<std::size_t>(i)]; }
    MPI_Request* request(int i) const { return requests_ + i; }
    bool active(int i) const {
        return sealed(i) ? sealed(i)->operation != nullptr : requests_[i] != constants.request_null;
    }

    /// The MPI library's own requests of the call, and where they stand in it.
    struct Plain {
        std::vector<MPI_Request> requests;
        std::vector<int> indices;
    };
    Plain plain() const {
        Plain plain;
        for (int i = 0; i < count(); ++i)
            if (!sealed(i)) {
                plain.requests.push_back(requests_[i]);
                plain.indices.push_back(i);
            }
        return plain;
    }
    void put_back(const Plain& plain) {
        for (std::size_t k = 0; k < plain.indices.size(); ++k)
            requests_[plain.indices[k]] = plain.requests[k];
    }

  private:
    MPI_Request* requests_;
    std::vector<UserRequest*> sealed_;
};

bool straight_to_mpi(int count, const MPI_Request* requests, bool may_go = may_block()) {
    if (count < 0) [[unlikely]]
        return true;  // MPI reports the error
    if (!may_go) return false;
    if (!any_request_given()) return true;
    return std::none_of(requests, requests + count,
                        [](MPI_Request request) { return find_request(request); });
}

/// Makes one error of the errors of several completions: each status carries its own, and the call returns MPI_ERR_IN_STATUS (MPI standard
/// section 3.7.5). Without an error they say so too: the standard has them left alone then, but MPI libraries do it, and programs look at it.
class ErrorsInStatus {
  public:
    void add(const Completed& completed, MPI_Status* status) {
        if (status != MPI_STATUS_IGNORE) touched_.push_back({status, completed.error});
        if (completed.error == MPI_SUCCESS || any_) return;
        any_ = true;
        first_ = completed;
    }
    int result() {
        for (auto& [status, error] : touched_) status->MPI_ERROR = error;
        if (!any_) return MPI_SUCCESS;
        if (first_.raised) return MPI_ERR_IN_STATUS;
        // Of a job that ends nobody reads the statuses.
        if (first_.owner.comm != MPI_Comm{} && first_.owner.comm != constants.comm_null &&
            !first_.owner.window && !first_.owner.file && is_fatal(first_.owner.comm))
            end_fatally(first_.error, first_.call);
        return raise_at(first_.owner, MPI_ERR_IN_STATUS, first_.call);
    }

  private:
    bool any_ = false;
    Completed first_;
    std::vector<std::pair<MPI_Status*, int>> touched_;
};

/// If all operations of the call need only their one MPI request, waits for those in one call, as the plain program would.
void wait_for_sole_requests(Mixture& mixture, std::vector<MPI_Status>& plain_statuses,
                            std::vector<int>& plain_errors, std::vector<bool>& done) {
    if (!may_block()) return;
    const auto count = static_cast<std::size_t>(mixture.count());
    std::vector<MPI_Request> bare(count, constants.request_null);
    for (std::size_t i = 0; i < count; ++i) {
        UserRequest* mine = mixture.sealed(static_cast<int>(i));
        if (!mine) {
            bare[i] = *mixture.request(static_cast<int>(i));
        } else if (mine->operation && !mine->operation->complete()) {
            MPI_Request* sole = mine->operation->sole_request();
            if (!sole) return;
            bare[i] = *sole;
        }
    }
    std::vector<MPI_Request> before = bare;
    const int code = real.Waitall(mixture.count(), bare.data(), plain_statuses.data());
    for (std::size_t i = 0; i < count; ++i) {
        const int error = code == MPI_ERR_IN_STATUS ? plain_statuses[i].MPI_ERROR : code;
        if (error == MPI_ERR_PENDING) continue;
        UserRequest* mine = mixture.sealed(static_cast<int>(i));
        if (!mine) {
            *mixture.request(static_cast<int>(i)) = bare[i];
            plain_errors[i] = error;
            done[i] = true;
        } else if (before[i] != constants.request_null) {
            mine->operation->sole_request_done(error, plain_statuses[i]);
            enlist(*mine->operation);
        }
    }
}

/// Every request of the call is complete: hands statuses and handles to the program.
int hand_over_all(Mixture& mixture, const std::vector<MPI_Status>& plain_statuses,
                  const std::vector<int>& plain_errors, MPI_Status* statuses) {
    ErrorsInStatus errors;
    for (int i = 0; i < mixture.count(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        MPI_Status* status = at(statuses, i);
        if (UserRequest* mine = mixture.sealed(i)) {
            errors.add(hand_over(*mine, mixture.request(i), status), status);
            continue;
        }
        if (status != MPI_STATUS_IGNORE) {
            const int kept = status->MPI_ERROR;
            *status = plain_statuses[k];
            status->MPI_ERROR = kept;
        }
        errors.add({plain_errors[k], plain_errors[k] != MPI_SUCCESS}, status);
    }
    return errors.result();
}

}  // namespace

int Wait(MPI_Request* request, MPI_Status* status) {
    UserRequest* mine = find_request(*request);
    if (!mine) return may_block() ? real.Wait(request, status) : complete_plain(MPI_SUCCESS, request, status);
    if (mine->operation) complete_operation(*mine->operation);
    return raise_completed(hand_over(*mine, request, status));
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
    progress();
    UserRequest* mine = find_request(*request);
    if (!mine) return real.Test(request, flag, status);
    *flag = has_many_operations() ? advanced_alone(*mine) : advanced(*mine);
    if (!*flag) return MPI_SUCCESS;
    return raise_completed(hand_over(*mine, request, status));
}

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
    if (straight_to_mpi(count, requests)) return real.Waitall(count, requests, statuses);
    Mixture mixture(count, requests);
    std::vector<MPI_Status> plain_statuses(static_cast<std::size_t>(count));
    std::vector<int> plain_errors(static_cast<std::size_t>(count), MPI_SUCCESS);
    std::vector<bool> done(static_cast<std::size_t>(count), false);
    WaitScope waiting("MPI_Waitall", MPI_ANY_SOURCE, MPI_ANY_TAG);
    wait_for_sole_requests(mixture, plain_statuses, plain_errors, done);

    Backoff backoff;
    for (bool all = false; !all;) {
        all = true;
        for (int i = 0; i < count; ++i) {
            const auto k = static_cast<std::size_t>(i);
            if (done[k]) continue;
            if (UserRequest* mine = mixture.sealed(i)) {
                done[k] = advanced(*mine);
            } else {
                int flag = 0;
                plain_errors[k] = real.Test(mixture.request(i), &flag, &plain_statuses[k]);
                done[k] = flag || plain_errors[k] != MPI_SUCCESS;
            }
            all = all && done[k];
        }
        if (all) break;
        progress();
        backoff.pause();
    }
    return hand_over_all(mixture, plain_statuses, plain_errors, statuses);
}

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
    progress();
    if (straight_to_mpi(count, requests, !work_outstanding()))
        return real.Testall(count, requests, flag, statuses);
    Mixture mixture(count, requests);
    *flag = 1;
    for (int i = 0; i < count; ++i) {
        UserRequest* mine = mixture.sealed(i);
        if (mine && !advanced(*mine)) *flag = 0;
    }
    if (!*flag) return MPI_SUCCESS;
    // The library's own requests complete together or not at all, in its own MPI_Testall.
    Mixture::Plain plain = mixture.plain();
    std::vector<MPI_Status> statuses_of_plain(plain.requests.size() + 1);
    const int code = real.Testall(static_cast<int>(plain.requests.size()), plain.requests.data(), flag,
                                  statuses_of_plain.data());
    mixture.put_back(plain);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
    if (code == MPI_SUCCESS && !*flag) return MPI_SUCCESS;
    *flag = 1;
    std::vector<MPI_Status> plain_statuses(static_cast<std::size_t>(count));
    std::vector<int> plain_errors(static_cast<std::size_t>(count), MPI_SUCCESS);
    for (std::size_t k = 0; k < plain.indices.size(); ++k) {
        const auto i = static_cast<std::size_t>(plain.indices[k]);
        plain_statuses[i] = statuses_of_plain[k];
        if (code == MPI_ERR_IN_STATUS) plain_errors[i] = statuses_of_plain[k].MPI_ERROR;
    }
    return hand_over_all(mixture, plain_statuses, plain_errors, statuses);
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
    progress();
    if (straight_to_mpi(count, requests, !work_outstanding()))
        return real.Testany(count, requests, index, flag, status);
    Mixture mixture(count, requests);
    bool any_active = false;
    for (int i = 0; i < count; ++i) {
        UserRequest* mine = mixture.sealed(i);
        if (!mine || !mine->operation) continue;
        any_active = true;
        if (!advanced(*mine)) continue;
        *index = i;
        *flag = 1;
        return raise_completed(hand_over(*mine, requests + i, status));
    }
    Mixture::Plain plain = mixture.plain();
    int plain_index = MPI_UNDEFINED;
    *flag = 0;
    const int code = real.Testany(static_cast<int>(plain.requests.size()), plain.requests.data(),
                                  &plain_index, flag, status);
    mixture.put_back(plain);
    if (plain_index != MPI_UNDEFINED && (*flag || code != MPI_SUCCESS)) {
        *index = plain.indices[static_cast<std::size_t>(plain_index)];
        return code;
    }
    *index = MPI_UNDEFINED;
    if (any_active) *flag = 0;  // no plain request is active, but a sealed one is
    if (*flag && code == MPI_SUCCESS) write_empty_status(status);  // MPICH 4 does not
    return code;
}

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
    if (straight_to_mpi(count, requests)) return real.Waitany(count, requests, index, status);
    WaitScope waiting("MPI_Waitany", MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    while (true) {
        int flag = 0;
        const int code = Testany(count, requests, index, &flag, status);
        if (flag || code != MPI_SUCCESS) return code;
        backoff.pause();
    }
}

int Testsome(int incount, MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses) {
    progress();
    if (straight_to_mpi(incount, requests, !work_outstanding()))
        return real.Testsome(incount, requests, outcount, indices, statuses);
    Mixture mixture(incount, requests);
    ErrorsInStatus errors;
    int found = 0;
    bool any_active = false;
    for (int i = 0; i < incount; ++i) {
        UserRequest* mine = mixture.sealed(i);
        if (!mine || !mine->operation) continue;
        any_active = true;
        if (!advanced(*mine)) continue;
        errors.add(hand_over(*mine, requests + i, at(statuses, found)), at(statuses, found));
        indices[found++] = i;
    }
    Mixture::Plain plain = mixture.plain();
    const auto plain_count = static_cast<int>(plain.requests.size());
    std::vector<int> plain_indices(plain.requests.size() + 1);
    std::vector<MPI_Status> plain_statuses(plain.requests.size() + 1);
    int plain_found = MPI_UNDEFINED;
    const int code = real.Testsome(plain_count, plain.requests.data(), &plain_found, plain_indices.data(),
                                   plain_statuses.data());
    mixture.put_back(plain);
    for (int k = 0; plain_found != MPI_UNDEFINED && k < plain_found; ++k) {
        MPI_Status* status = at(statuses, found);
        const MPI_Status& theirs = plain_statuses[static_cast<std::size_t>(k)];
        if (status != MPI_STATUS_IGNORE) {
            const int kept = status->MPI_ERROR;
            *status = theirs;
            status->MPI_ERROR = kept;
        }
        const int error = code == MPI_ERR_IN_STATUS ? theirs.MPI_ERROR : code;
        errors.add({error, error != MPI_SUCCESS}, status);
        indices[found++] =
            plain.indices[static_cast<std::size_t>(plain_indices[static_cast<std::size_t>(k)])];
    }
    *outcount = !any_active && plain_found == MPI_UNDEFINED ? MPI_UNDEFINED : found;
    return errors.result();
}

int Waitsome(int incount, MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses) {
    if (straight_to_mpi(incount, requests))
        return real.Waitsome(incount, requests, outcount, indices, statuses);
    WaitScope waiting("MPI_Waitsome", MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    while (true) {
        const int code = Testsome(incount, requests, outcount, indices, statuses);
        if (*outcount != 0 || code != MPI_SUCCESS) return code;
        backoff.pause();
    }
}

}  // namespace mpisec::shim
