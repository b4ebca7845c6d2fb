// Going on when processes have died (User-Level Failure Mitigation). The MPI library finds out who has died, and which of the others go on
// together; it exchanges this in clear and believes what it receives. So MPIsec takes from its answers only who takes part, and compares
// that with what all of them say under seal: what a shrunken communicator's context is derived from never travels in clear, nor do the
// flags of an agreement (communicators/agreement.hpp).
//
// MPIX_Comm_shrink makes attempts. In each, the library shrinks the communicator to the survivors; these exchange their reports, sealed,
// over the communicator that it made; a process that meets an error there revokes that communicator, so that nobody waits; and the
// library's agreement on one bit, whether all have the result, ends the attempt on all of them alike.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "keys/hkdf.hpp"
#include "shim/calls/entry.hpp"
#include "shim/communicators/agreement.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {
namespace {

enum Tag : int { report_tag = 1, result_tag };

std::array<std::uint8_t, 32> digest_of(Ranks members) {
    std::string bytes = "mpisec survivors";
    for (std::int32_t number : members) bytes += " " + std::to_string(rank_in_realm(number));
    std::array<std::uint8_t, 32> digest;
    std::ranges::copy(keys::sha256(keys::as_bytes(bytes)), digest.begin());
    return digest;
}

/// Whether the members are some of the parent's, in the same order.
bool is_part_of(Ranks members, Ranks parents) {
    auto next = parents.begin();
    for (std::int32_t number : members) {
        next = std::find(next, parents.end(), number);
        if (next == parents.end()) return false;
        ++next;
    }
    return true;
}

std::unique_ptr<Operation> start(bool sends, Report& report, int peer, int tag, const Communicator& among,
                                 const char* procedure) {
    Guard guard;
    if (sends)
        return begin_send({SendSpec::Mode::standard, &report, sizeof report, constants.byte, peer, tag,
                           among.handle, procedure});
    return begin_receive({&report, sizeof report, constants.byte, peer, tag, among.handle, procedure});
}

/// One attempt of one call on a communicator.
class Attempt {
  public:
    Attempt(Communicator& parent, const char* procedure, Report mine)
        : parent_(parent), procedure_(procedure), mine_(mine) {}

    /// Asks the library who goes on. False when it has no answer.
    bool shrink();
    /// Exchanges the reports. Then those that have the result call `finish()`, which returns an error code, before all agree that the
    /// attempt has succeeded.
    template <class Finish>
    void run(Finish finish);
    /// The library's agreement travels in clear: it means nothing where this process has no result of its own.
    bool succeeded() const { return has_result_ && !forged() && (agreed_ & have_result) != 0; }
    /// A process was told something that no process of the job has said: there are no further attempts.
    bool forged() const { return violation_ != MPI_SUCCESS || (agreed_ & nothing_forged) == 0; }
    int violation() const { return violation_; }
    const Report& result() const { return result_; }
    const Membership& survivors() const { return survivors_; }
    MPI_Comm made() const { return made_; }
    void forget_made() {
        if (among_) forget(*among_);
        among_ = nullptr;
    }
    void give_back() {
        forget_made();
        if (made_ != constants.comm_null) real.Comm_free(&made_);
    }

  private:
    int exchange();
    int collect();
    int transfer(bool sends, Report& report, int peer, int tag);
    int take(const Report& report);
    int report_difference(const char* difference);

    Communicator& parent_;
    const char* procedure_;
    Report mine_, result_{};
    MPI_Comm made_ = constants.comm_null;
    Membership survivors_;
    Communicator* among_ = nullptr;
    bool has_result_ = false;
    int agreed_ = nothing_forged;
    int violation_ = MPI_SUCCESS;
};

int Attempt::report_difference(const char* difference) {
    violation_ = report_wrong_communicator(procedure_, difference);
    return violation_;
}

bool Attempt::shrink() {
    if (fault_tolerance().shrink(parent_.handle, &made_) != MPI_SUCCESS || made_ == constants.comm_null)
        return false;
    real.Comm_set_errhandler(made_, constants.errors_return);
    const std::optional<Membership> made = read_membership(made_, realm_of(parent_.members));
    int rank = -1;
    real.Comm_rank(made_, &rank);
    if (!made || made->inter || !is_part_of(made->members, parent_.members) || rank < 0 ||
        static_cast<std::size_t>(rank) >= made->members.size() ||
        made->members[static_cast<std::size_t>(rank)] != own_number(parent_.members)) {
        report_difference("its ranks are not some of those of the communicator that lost processes");
        return true;
    }
    survivors_ = *made;
    mine_.members = digest_of(survivors_.members);
    // The reports are bound to the parent, to the survivors and, by what they say, to the call.
    std::string bytes = "mpisec survivors' reports";
    bytes.append(reinterpret_cast<const char*>(parent_.context.data()), parent_.context.size());
    bytes.append(reinterpret_cast<const char*>(mine_.members.data()), mine_.members.size());
    const keys::Digest digest = keys::sha256(keys::as_bytes(bytes));
    wire::ContextId context;
    std::copy_n(digest.begin(), context.size(), context.begin());
    among_ = adopt(made_, survivors_, context);
    return true;
}

int Attempt::transfer(bool sends, Report& report, int peer, int tag) {
    const std::unique_ptr<Operation> part = start(sends, report, peer, tag, *among_, procedure_);
    complete_operation(*part);
    const Outcome& outcome = part->outcome();
    if (outcome.error == MPI_SUCCESS && outcome.bytes != sizeof report && !sends)
        return report_difference("a report has another length");
    // A death is no violation: the next attempt does without that process.
    if (outcome.error != MPI_SUCCESS && !outcome.raised && !is_failure(outcome.error))
        violation_ = outcome.error;
    return outcome.error;
}

/// Adds another process's report to the result.
int Attempt::take(const Report& report) {
    if (report.purpose != mine_.purpose || report.number != mine_.number)
        return report_difference("its processes are not all in the same call");
    if (report.members != mine_.members)
        return report_difference("its processes were told of different ones");
    result_.attempt = std::max(result_.attempt, report.attempt);
    return MPI_SUCCESS;
}

int Attempt::collect() {
    for (int from = 1; from < among_->size; ++from) {
        Report theirs;
        if (const int code = transfer(false, theirs, from, report_tag); code != MPI_SUCCESS) return code;
        if (const int code = take(theirs); code != MPI_SUCCESS) return code;
    }
    int code = MPI_SUCCESS;
    for (int to = 1; to < among_->size && code == MPI_SUCCESS; ++to)
        code = transfer(true, result_, to, result_tag);
    return code;
}

/// Rank 0 makes the result from all reports, and sends it to the others.
int Attempt::exchange() {
    result_ = mine_;
    if (among_->rank == 0) return collect();
    if (const int code = transfer(true, mine_, 0, report_tag); code != MPI_SUCCESS) return code;
    Report theirs;
    if (const int code = transfer(false, theirs, 0, result_tag); code != MPI_SUCCESS) return code;
    return take(theirs);
}

template <class Finish>
void Attempt::run(Finish finish) {
    // First all leave the library's call: Open MPI crashes when a communicator is revoked that it is still making.
    int left = 0;
    fault_tolerance().agree(made_, &left);
    int code = among_ ? exchange() : violation_;
    if (code == MPI_SUCCESS) code = finish();
    has_result_ = code == MPI_SUCCESS;
    if (!has_result_) fault_tolerance().revoke(made_);
    agreed_ = (has_result_ ? have_result : 0) | (violation_ == MPI_SUCCESS ? nothing_forged : 0);
    // If a process has died in the meantime, the next attempt does without it.
    if (fault_tolerance().agree(made_, &agreed_) != MPI_SUCCESS) agreed_ &= ~have_result;
}

int end_of_attempts(const Communicator& parent, const char* procedure, const Attempt& attempt) {
    if (attempt.violation() != MPI_SUCCESS) return raise(&parent, attempt.violation(), procedure);
    if (attempt.forged()) {
        say(std::string(procedure) + " ends, because another process has met an integrity error in it.");
        return raise(&parent, MPI_ERR_OTHER, procedure);
    }
    say(std::string(procedure) + ": the MPI library does not say who goes on");
    return raise(&parent, MPI_ERR_OTHER, procedure);
}

/// Between worlds there is no channel; and where processes may die, the library's verdict is needed, but Open MPI's MPIX_Comm_iagree gives
/// the two groups of an inter-communicator different ones.
bool can_agree(const Communicator& comm) {
    return !comm.inter ||
           (!state.fault_tolerant && &realm_of(comm.members) == &realm_of(comm.remote_members));
}

std::unique_ptr<Operation> begin(Report::Purpose purpose, Communicator& comm, int* flag) {
    Guard guard;
    return begin_agreement(purpose, comm, flag);
}

/// A process that waits in the library moves nothing of MPIsec's (M5). So all survivors meet first, as in an agreement.
int meet_before_shrinking(Communicator& parent) {
    if (!realm_of(parent.members).job_secret) return MPI_SUCCESS;
    int flag = 0;
    const std::unique_ptr<Operation> meeting = begin(Report::Purpose::shrinking, parent, &flag);
    complete_operation(*meeting);
    const int code = meeting->outcome().error;
    return is_failure(code) ? MPI_SUCCESS : code;
}

std::uint64_t number_of_call(Communicator& comm, const char* procedure) {
    Guard guard;
    return comm.count_creation(procedure);
}

/// What the program gets: derived from the parent, from the survivors, and from a number that none of them has used before.
Construction shrunken(Communicator& parent, const Attempt& attempt) {
    const std::string constructor = "MPIX_Comm_shrink " + std::to_string(attempt.result().number) + " " +
                                    std::to_string(attempt.result().attempt);
    Construction construction =
        begin_construction("MPIX_Comm_shrink", parent, attempt.survivors(), Topology{}, constructor);
    construction.by_all = false;
    return construction;
}

}  // namespace

int Comm_agree(MPI_Comm comm, int* flag) {
    constexpr const char* procedure = "MPIX_Comm_agree";
    Communicator* known = find_communicator(comm);
    if (comm == constants.comm_null) return fault_tolerance().agree(comm, flag);
    if (auto error = bad_arguments(procedure, known, flag)) return *error;
    if (!realm_of(known->members).job_secret) return fault_tolerance().agree(comm, flag);
    if (!can_agree(*known)) return refuse(procedure, comm);
    const std::unique_ptr<Operation> agreement = begin(Report::Purpose::agreement, *known, flag);
    complete_operation(*agreement);
    return raise(known, agreement->outcome().error, procedure);
}

int Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request) {
    constexpr const char* procedure = "MPIX_Comm_iagree";
    Communicator* known = find_communicator(comm);
    if (comm == constants.comm_null) return fault_tolerance().iagree(comm, flag, request);
    if (auto error = bad_arguments(procedure, known, flag ? request : nullptr)) return *error;
    if (!realm_of(known->members).job_secret) return fault_tolerance().iagree(comm, flag, request);
    if (!can_agree(*known)) return refuse(procedure, comm);
    Guard guard;
    *request = give_request(begin(Report::Purpose::agreement_without_waiting, *known, flag));
    return MPI_SUCCESS;
}

int Comm_shrink(MPI_Comm comm, MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPIX_Comm_shrink";
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return fault_tolerance().shrink(comm, newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    if (parent->inter) return refuse(procedure, comm);
    if (const int code = meet_before_shrinking(*parent); code != MPI_SUCCESS)
        return raise(parent, code, procedure);
    const std::uint64_t number = number_of_call(*parent, procedure);
    for (std::uint64_t attempts = 0;; ++attempts) {
        Attempt attempt(*parent, procedure, {Report::Purpose::shrinking, ~0, number, attempts, {}});
        const bool known = attempts < most_attempts(*parent) && attempt.shrink();
        MPI_Comm shadow = constants.comm_null;
        if (known)
            attempt.run([&] {
                return crosses_nodes(attempt.survivors())
                           ? make_shadow_communicator(attempt.made(), attempt.survivors(), &shadow)
                           : MPI_SUCCESS;
            });
        if (known && attempt.succeeded()) {
            attempt.forget_made();
            if (const int code = check_made(shrunken(*parent, attempt), attempt.made(), shadow);
                code != MPI_SUCCESS)
                return raise(parent, code, procedure);
            inherit_error_handler(comm, attempt.made());
            *newcomm = attempt.made();
            return MPI_SUCCESS;
        }
        if (shadow != constants.comm_null) real.Comm_free(&shadow);
        attempt.give_back();
        if (!known || attempt.forged()) return end_of_attempts(*parent, procedure, attempt);
    }
}

}  // namespace mpisec::shim
