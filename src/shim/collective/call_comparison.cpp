#include "shim/collective/call_comparison.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "coll/collective.hpp"
#include "shim/p2p/notices.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// Under the Guard.
struct CollectiveContexts {
    std::vector<CollectiveContext*> all;
    std::chrono::steady_clock::time_point next_hearing{};
};

namespace {

constexpr std::chrono::seconds first_interval{2}, longest_interval{64};
constexpr std::chrono::milliseconds between_hearings{10};

bool has_root(coll::Collective collective) {
    using enum coll::Collective;
    return collective == bcast || collective == gather || collective == scatter || collective == reduce;
}

std::string described(const wire::CallNotice& call) {
    std::string text = call.collective < coll::collectives
                           ? std::string(coll::name(static_cast<coll::Collective>(call.collective)))
                           : "another collective";
    if (call.root >= 0) text += " from or to rank " + std::to_string(call.root);
    if (call.bytes != wire::CallNotice::no_bytes) text += " of " + std::to_string(call.bytes) + " bytes";
    return text;
}

/// MPI_SUCCESS, or the error class of the difference.
int difference(const wire::CallNotice& own, const wire::CallNotice& other) {
    if (own.collective != other.collective) return MPI_ERR_OTHER;
    if (own.root != other.root) return MPI_ERR_ROOT;
    const bool sizes = own.bytes != wire::CallNotice::no_bytes && other.bytes != wire::CallNotice::no_bytes;
    return sizes && own.bytes != other.bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

/// Where rank `to` of the communicator is this one, there is nothing to tell.
void tell(const CollectiveContext& collective_context, const wire::CallNotice& call, int to) {
    if (to == collective_context.rank()) return;
    tell_call(collective_context.members()[static_cast<std::size_t>(to)], call);
    tell_notices();
}

/// No collective on the communicator can be relied on to end any more.
void end_collectives(CollectiveContext& collective_context, int code, const wire::CallNotice& call) {
    collective_context.ended = code;
    wire::CallNotice notice = call;
    notice.ended = true;
    tell(collective_context, notice, 0);
}

void end_because(CollectiveContext& collective_context, int code, const std::string& reason,
                 const wire::CallNotice& call) {
    say(reason + " Collectives on this communicator end in an error from now on.");
    end_collectives(collective_context, code, call);
}

void end_failed(CollectiveContext& collective_context, const std::string& who, const wire::CallNotice& call) {
    end_because(
        collective_context, MPI_ERR_OTHER,
        "The " + described(call) + " failed on some ranks of its communicator, and " + who + " waits in it.",
        call);
}

/// Compares what rank `source` says of a call with what is known of it here.
void compare(CollectiveContext& collective_context, CollectiveContext::Called& own, int source,
             const wire::CallNotice& theirs) {
    const std::string rank = "rank " + std::to_string(source);
    const bool kept = own.call.number == theirs.number;  // else the call is yet to come, or long past
    const bool known = own.procedure && kept;
    const int code = known ? difference(own.call, theirs) : MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        return end_because(collective_context, code,
                           std::string(own.procedure) +
                               " was not called alike by all ranks of its communicator: by " + rank + " as " +
                               described(theirs) + "; by rank " + std::to_string(collective_context.rank()) +
                               " as " + described(own.call) + ".",
                           own.call);
    if (theirs.ended)
        return end_because(collective_context, MPI_ERR_OTHER,
                           "A collective was not called alike by all ranks of a communicator, says " + rank +
                               " of its " + std::to_string(collective_context.members().size()) + ".",
                           theirs);
    if (!theirs.failed) {
        if (kept && own.failed) end_failed(collective_context, rank, theirs);
        return;
    }
    // Remembered even before this rank has made the call, but not in place of the call that it may be in.
    if (!kept && theirs.number > own.call.number &&
        theirs.number + 1 < collective_context.next_number() + wire::calls_kept)
        own = {theirs, nullptr, false};
    if (own.call.number == theirs.number) own.failed = true;
}

/// `world_source` waits, or one of its calls has failed.
void hear(CollectiveContext& collective_context, std::int32_t world_source, const wire::CallNotice& theirs) {
    const auto& ranks = collective_context.members();
    const auto place = std::ranges::find(ranks, world_source);
    if (place == ranks.end()) return;
    CollectiveContext::Called& own = collective_context.called(theirs.number);
    if (collective_context.ended == MPI_SUCCESS)
        compare(collective_context, own, static_cast<int>(place - ranks.begin()), theirs);
    if (collective_context.ended == MPI_SUCCESS || theirs.ended) return;
    wire::CallNotice answer = own.procedure && own.call.number == theirs.number ? own.call : theirs;
    answer.ended = true;
    tell_call(world_source, answer);
}

void hear_call(std::int32_t world_source, const wire::CallNotice& theirs) {
    for (CollectiveContext* one : process.collective_contexts->all)
        if (one->context() == theirs.context) return hear(*one, world_source, theirs);
}

/// Receives notices from all realms whose processes call collectives together.
void hear_calls() {
    Guard guard;
    auto& [all, next] = *process.collective_contexts;
    const auto now = std::chrono::steady_clock::now();
    if (now < next) return;
    next = now + between_hearings;
    std::vector<const Realm*> realms;
    for (const CollectiveContext* one : all) {
        const Realm& realm = realm_of(one->members());
        if (std::ranges::find(realms, &realm) == realms.end()) realms.push_back(&realm);
    }
    for (const Realm* realm : realms) hear_notices(*realm);
    tell_notices();
}

}  // namespace

void make_known(CollectiveContext& collective_context) {
    Guard guard;
    process.collective_contexts->all.push_back(&collective_context);
    process.call_heard = hear_call;
    process.waited_long = hear_calls;
}

void forget(CollectiveContext& collective_context) {
    Guard guard;
    std::erase(process.collective_contexts->all, &collective_context);
}

void remember_call(CollectiveContext& collective_context, std::uint64_t number, const CollectivePlan& plan) {
    CollectiveContext::Called& called = collective_context.called(number);
    called.procedure = nullptr;
    called.failed = called.failed && called.call.number == number;
    // Between two groups the ranks' parts differ.
    if (plan.comm->inter || !plan.participants.empty()) return;
    called.call = {};
    called.call.context = collective_context.context();
    called.call.number = number;
    called.call.bytes = coll::agreed_bytes(plan.collective, plan.call).value_or(wire::CallNotice::no_bytes);
    called.call.root = has_root(plan.collective) ? plan.call.root : -1;
    called.call.collective = static_cast<std::uint8_t>(plan.collective);
    called.procedure = plan.procedure;
}

void remember_failure(CollectiveContext& collective_context, std::uint64_t number) {
    CollectiveContext::Called& own = collective_context.called(number);
    if (!own.procedure || own.call.number != number) return;
    own.failed = true;
    wire::CallNotice notice = own.call;
    notice.failed = true;
    tell(collective_context, notice, 0);
}

void LongWait::look(CollectiveContext& collective_context, std::uint64_t number) {
    const Clock::time_point now = Clock::now();
    if (interval_ == Clock::duration{}) {
        interval_ = first_interval;
        next_ = now + interval_;
        return;
    }
    if (interval_ > first_interval) hear_calls();
    if (now < next_) return;
    const CollectiveContext::Called& own = collective_context.called(number);
    if (own.procedure && own.call.number == number) {
        wire::CallNotice call = own.call;
        call.ended = collective_context.ended != MPI_SUCCESS;
        tell(collective_context, call, 0);
        if (call.root > 0) tell(collective_context, call, call.root);
        if (own.failed && !call.ended) end_failed(collective_context, "this rank", own.call);
    }
    interval_ = std::min<Clock::duration>(2 * interval_, longest_interval);
    next_ = now + interval_;
    hear_calls();
}

}  // namespace mpisec::shim
