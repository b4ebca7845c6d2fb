#include "shim/communicators/agreement.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "keys/hkdf.hpp"
#include "shim/p2p/backoff.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/waits.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

const char* procedure_of(Report::Purpose purpose) {
    switch (purpose) {
        case Report::Purpose::shrinking:
            return "MPIX_Comm_shrink";
        case Report::Purpose::agreement_without_waiting:
            return "MPIX_Comm_iagree";
        default:
            return "MPIX_Comm_agree";
    }
}

/// Members of both groups, in an order that all of them know.
std::vector<std::int32_t> everyone_on(const Communicator& comm) {
    std::vector<std::int32_t> everyone = comm.members.list();
    everyone.insert(everyone.end(), comm.remote_members.begin(), comm.remote_members.end());
    std::ranges::sort(everyone);
    return everyone;
}

/// Says which communicator is meant and who its members are, because all communicators use the same channel.
std::array<std::uint8_t, 32> digest_of(const Communicator& comm, const std::vector<std::int32_t>& everyone) {
    std::string bytes = "mpisec agreement";
    bytes.append(reinterpret_cast<const char*>(comm.context.data()), comm.context.size());
    for (std::int32_t number : everyone) bytes += " " + std::to_string(rank_in_realm(number));
    return keys::sha256(keys::as_bytes(bytes));
}

/// Each attempt has a tag of its own, because messages of an earlier one may still arrive.
int tag_of(const Report& report) {
    const keys::Digest digest = keys::sha256(
        {reinterpret_cast<const std::uint8_t*>(&report.number), sizeof report - offsetof(Report, number)});
    wire::ContextId context;
    std::copy_n(digest.begin(), context.size(), context.begin());
    return barrier_tag(context);
}

/// The messages of one attempt. Messages that a dead process leaves unfinished stay in memory, because MPI may still use them.
class Exchange {
  public:
    Exchange(const Communicator& comm, const std::vector<std::int32_t>& everyone, const Report& mine);
    ~Exchange();
    /// True when the exchange has ended here, with a result or without; must not be called again then.
    bool advance() { return collects() ? collect() : hear(); }
    /// Advances what this process sends. True when all of it has been sent.
    bool move_sends();
    const std::optional<Report>& result() const { return result_; }
    int violation() const { return violation_; }

  private:
    enum class Heard : std::uint8_t { nothing, report, death };
    // Each receive reserves room for the longest first message.
    static constexpr std::size_t most_receives = 32;

    bool collects() const { return coordinator_ == own_; }
    bool collect();
    bool hear();
    Heard heard(std::size_t from, bool somebody_has_died);
    bool is_of_this_attempt(const Report& theirs);
    bool somebody_has_died();
    void post_receives();
    void receive(std::size_t from);
    void send(std::size_t to, const Report& report);
    void answer();

    const char* procedure_;
    const std::vector<std::int32_t>& everyone_;
    MPI_Comm channel_;
    Report mine_;
    int tag_;
    std::size_t own_, coordinator_;
    std::size_t asked_ = 0;               ///< members below this one have a receive, or had one
    std::size_t open_ = 0;                ///< receives that have not ended
    std::vector<Report> reports_, sent_;  ///< by member: from it, to it
    std::vector<bool> is_remote_;         ///< by member: of the other group
    bool is_inter_;
    std::int32_t flags_[2] = {~0, ~0};                  ///< of this group, of the other one
    std::vector<std::unique_ptr<Operation>> receives_;  ///< by member; null: none is under way
    std::vector<std::unique_ptr<Operation>> sends_;
    std::vector<bool> has_ended_, is_dead_;  ///< by member
    FailureWatch watch_;
    std::optional<Report> result_;
    int violation_ = MPI_SUCCESS;
};

Exchange::Exchange(const Communicator& comm, const std::vector<std::int32_t>& everyone, const Report& mine)
    : procedure_(procedure_of(mine.purpose)),
      everyone_(everyone),
      channel_(realm_of(comm.members).channel),
      mine_(mine),
      tag_(tag_of(mine)),
      own_(
          static_cast<std::size_t>(std::ranges::find(everyone, own_number(comm.members)) - everyone.begin())),
      coordinator_((mine.number + mine.attempt) % everyone.size()),
      reports_(everyone.size()),
      sent_(everyone.size()),
      is_remote_(everyone.size()),
      is_inter_(comm.inter),
      receives_(everyone.size()),
      has_ended_(everyone.size()),
      is_dead_(everyone.size()) {
    flags_[0] = mine.flag;
    for (std::int32_t number : comm.remote_members)
        is_remote_[static_cast<std::size_t>(std::ranges::lower_bound(everyone, number) - everyone.begin())] =
            true;
    if (collects()) return;
    receive(coordinator_);
    send(coordinator_, mine_);
}

Exchange::~Exchange() {
    auto give_up = [](std::unique_ptr<Operation>& part) {
        if (!part || part->advance()) return true;
        part->cancel();
        if (part->advance()) return true;
        (void)part.release();
        return false;
    };
    bool all = true;
    for (auto& part : receives_) all = give_up(part) && all;
    for (auto& part : sends_) all = give_up(part) && all;
    if (all) return;
    (void)new std::vector<Report>(std::move(reports_));
    (void)new std::vector<Report>(std::move(sent_));
}

void Exchange::receive(std::size_t from) {
    receives_[from] = begin_receive({&reports_[from], sizeof(Report), constants.byte,
                                     rank_in_realm(everyone_[from]), tag_, channel_, procedure_});
}

void Exchange::post_receives() {
    for (; asked_ < everyone_.size() && open_ < most_receives; ++asked_) {
        if (asked_ == own_) continue;
        receive(asked_);
        ++open_;
    }
}

/// Sends from memory that lives as long as the messages can.
void Exchange::send(std::size_t to, const Report& report) {
    sent_[to] = report;
    sends_.push_back(begin_send({SendSpec::Mode::standard, &sent_[to], sizeof(Report), constants.byte,
                                 rank_in_realm(everyone_[to]), tag_, channel_, procedure_}));
}

bool Exchange::move_sends() {
    bool all = true;
    for (const auto& part : sends_) {
        all = part->advance() && all;
        const int error = part->complete() ? part->outcome().error : MPI_SUCCESS;
        // A process that has died needs no message.
        if (error != MPI_SUCCESS && !is_failure(error) && violation_ == MPI_SUCCESS) violation_ = error;
    }
    return all;
}

Exchange::Heard Exchange::heard(std::size_t from, bool somebody_has_died) {
    std::unique_ptr<Operation>& part = receives_[from];
    // Only the library's list of dead processes tells that somebody has died.
    auto has_died = [&] { return failure_among(Ranks::one(everyone_[from])) != MPI_SUCCESS; };
    if (!part->advance()) return somebody_has_died && has_died() ? Heard::death : Heard::nothing;
    const std::unique_ptr<Operation> received = std::move(part);
    const Outcome& outcome = received->outcome();
    if (is_failure(outcome.error) && has_died()) return Heard::death;
    if (outcome.error != MPI_SUCCESS)
        violation_ = outcome.error;
    else if (outcome.bytes != sizeof(Report))
        violation_ = report_length_violation(procedure_, sizeof(Report));
    return Heard::report;
}

bool Exchange::is_of_this_attempt(const Report& theirs) {
    if (violation_ != MPI_SUCCESS) return false;
    if (theirs.number == mine_.number && theirs.attempt == mine_.attempt && theirs.members == mine_.members &&
        theirs.purpose == mine_.purpose)
        return true;
    violation_ = report_wrong_communicator(procedure_, "its processes are not all in the same call");
    return false;
}

bool Exchange::somebody_has_died() {
    return watch_.now_and_then([&] { return failure_among(everyone_); }) != MPI_SUCCESS;
}

bool Exchange::collect() {
    post_receives();
    const bool deaths = somebody_has_died();
    for (std::size_t from = 0; from < asked_; ++from) {
        if (from == own_ || has_ended_[from]) continue;
        const Heard what = heard(from, deaths);
        if (what == Heard::nothing) continue;
        has_ended_[from] = true;
        is_dead_[from] = what == Heard::death;
        --open_;
        if (what == Heard::report && is_of_this_attempt(reports_[from]))
            flags_[is_remote_[from]] &= reports_[from].flag;
    }
    if (asked_ < everyone_.size() || open_ > 0) return false;
    answer();
    return true;
}

void Exchange::answer() {
    Report answer = mine_;
    if (violation_ != MPI_SUCCESS) answer.purpose = Report::Purpose::no_result;  // no rank must wait
    for (std::size_t to = 0; to < everyone_.size(); ++to) {
        answer.flag = flags_[is_inter_ && !is_remote_[to]];
        if (to != own_ && !is_dead_[to]) send(to, answer);
        if (to == own_ && violation_ == MPI_SUCCESS) result_ = answer;
    }
}

bool Exchange::hear() {
    move_sends();
    if (violation_ != MPI_SUCCESS) return true;
    const Heard what = heard(coordinator_, somebody_has_died());
    if (what != Heard::report) return what == Heard::death;
    const Report& answer = reports_[coordinator_];
    const bool refused = violation_ == MPI_SUCCESS && answer.purpose == Report::Purpose::no_result;
    if (!refused && is_of_this_attempt(answer)) result_ = answer;
    return true;
}

/// Makes attempts until all have a result. Agreements on one communicator take turns.
class Agreement final : public Operation {
  public:
    Agreement(Report::Purpose purpose, Communicator& comm, int* flag)
        : Operation(&comm),
          everyone_(everyone_on(comm)),
          mine_{purpose, *flag, comm.count_creation("MPIX_Comm_agree"), 0, digest_of(comm, everyone_)},
          flag_(flag) {
        comm.agreements.push_back(this);
    }
    ~Agreement() override {
        leave_work_list(*this);
        std::erase(comm_->agreements, this);
        drop_comm();
    }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return {procedure_of(mine_.purpose), MPI_ANY_SOURCE, MPI_ANY_TAG}; }

  private:
    void step() override;
    void ask_library();
    bool library_has_answered();
    void conclude_attempt();
    void end(int error) {
        std::erase(comm_->agreements, this);
        finish(error);
    }

    const std::vector<std::int32_t> everyone_;
    Report mine_;
    int* flag_;
    std::optional<Exchange> exchange_;
    bool stepping_ = false;  ///< sending may make progress, which may step this agreement too
    bool asked_ = false;
    int verdict_ = 0;  ///< what the library agrees on
    int code_ = MPI_SUCCESS;
    MPI_Request request_ = constants.request_null;
};

void Agreement::step() {
    if (stepping_ || comm_->agreements.front() != this) return;
    stepping_ = true;
    if (!exchange_) exchange_.emplace(*comm_, everyone_, mine_);
    if (!asked_ && exchange_->advance()) ask_library();
    if (asked_) {
        const bool all_sent = exchange_->move_sends();
        if (library_has_answered() && (all_sent || state.fault_tolerant)) conclude_attempt();
    }
    stepping_ = false;
}

void Agreement::ask_library() {
    asked_ = true;
    verdict_ = (exchange_->result() ? have_result : 0) |
               (exchange_->violation() == MPI_SUCCESS ? nothing_forged : 0);
    // Where nobody may die the answer is final, and without a call here the library's other collectives stay in their order.
    if (!state.fault_tolerant) return;
    const ErrorsReturned to_here(comm_->handle);
    code_ = fault_tolerance().iagree(comm_->handle, &verdict_, &request_);
}

bool Agreement::library_has_answered() {
    if (request_ == constants.request_null) return true;
    int done = 0;
    real.Request_get_status(request_, &done, MPI_STATUS_IGNORE);
    if (!done) return false;
    // Dead processes cause an error here each time; the program gets that error only at the end.
    const ErrorsReturned to_here(comm_->handle);
    code_ = real.Wait(&request_, MPI_STATUS_IGNORE);
    return true;
}

void Agreement::conclude_attempt() {
    if (exchange_->violation() != MPI_SUCCESS) return end(exchange_->violation());
    if (code_ != MPI_SUCCESS && !is_failure(code_)) return end(code_);
    const std::string procedure = procedure_of(mine_.purpose);
    const bool nobody_dies = !state.fault_tolerant;
    if ((verdict_ & nothing_forged) == 0 || (nobody_dies && !exchange_->result())) {
        say(procedure + " ends, because another process has met an integrity error in it.");
        return end(MPI_ERR_OTHER);
    }
    // The library's agreement travels in clear: without a result of this process's own it means nothing.
    if (exchange_->result() && (verdict_ & have_result) != 0) {
        *flag_ = exchange_->result()->flag;
        return end(code_);
    }
    if (++mine_.attempt >= most_attempts(*comm_)) {
        say(procedure + ": the processes that are left come to no result");
        return end(MPI_ERR_OTHER);
    }
    exchange_.reset();
    asked_ = false;
}

}  // namespace

std::unique_ptr<Operation> begin_agreement(Report::Purpose purpose, Communicator& comm, int* flag) {
    auto agreement = std::make_unique<Agreement>(purpose, comm, flag);
    agreement->advance();
    enlist(*agreement);
    return agreement;
}

void finish_agreements(const Communicator& comm) {
    WaitScope waiting("agreements under way on the communicator", MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    auto are_under_way = [&] {
        Guard guard;
        return !comm.agreements.empty();
    };
    while (are_under_way()) {
        progress();
        backoff.pause();
    }
}

}  // namespace mpisec::shim
