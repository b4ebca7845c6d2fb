// A barrier of MPIsec's own, on the private channel: dissemination (Hensgen, Finkel, Manber 1988),
// log2(members) rounds.
#include <algorithm>

#include "shim/p2p/backoff.hpp"
#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/waits.hpp"

namespace mpisec::shim {
namespace {

constexpr const char* call = "a barrier of MPIsec";

std::unique_ptr<Operation> begin_part(std::int32_t from, void* in, MPI_Count bytes, int tag) {
    Guard guard;
    return begin_receive({in, bytes, constants.byte, rank_in_realm(from), tag, realm_of(from).channel, call});
}

std::unique_ptr<Operation> begin_part(std::int32_t to, const void* out, MPI_Count bytes, int tag) {
    Guard guard;
    return begin_send({SendSpec::Mode::standard, out, bytes, constants.byte, rank_in_realm(to), tag,
                       realm_of(to).channel, call});
}

/// Completes the operation, unless `look()` says that a process that has yet to arrive has died, or that the communicator was revoked.
template <class Look>
int complete(std::unique_ptr<Operation>& operation, Look look) {
    if (!state.fault_tolerant) {
        complete_operation(*operation);
        return MPI_SUCCESS;
    }
    FailureWatch failures;
    Backoff backoff;
    while (true) {
        progress();
        {
            Guard guard;
            if (operation->advance()) return MPI_SUCCESS;
            enlist(*operation);
            if (const int code = failures.now_and_then(look); code != MPI_SUCCESS) {
                operation->cancel();
                leave_work_list(*operation);
                if (!operation->advance()) (void)operation.release();  // MPI still uses its memory
                return code;
            }
        }
        backoff.pause();
    }
}

template <class Look>
int complete_part(std::unique_ptr<Operation>& part, std::size_t bytes, Look look) {
    if (const int code = complete(part, look); code != MPI_SUCCESS) return code;
    const Operation& receiving = *part;
    if (receiving.outcome().error != MPI_SUCCESS) return receiving.outcome().error;
    return receiving.outcome().bytes == bytes ? MPI_SUCCESS : report_length_violation(call, bytes);
}

/// What is sent to a process and what is received from one at the same time.
struct Swap {
    std::int32_t to;
    const void* out;
    std::int32_t from;
    void* in;
};

template <class Look>
int swap(const Swap& swap, MPI_Count bytes, int tag, Look look) {
    std::unique_ptr<Operation> receiving = begin_part(swap.from, swap.in, bytes, tag);
    std::unique_ptr<Operation> sending = begin_part(swap.to, swap.out, bytes, tag);
    const int received = complete_part(receiving, static_cast<std::size_t>(bytes), look);
    const int sent = complete(sending, look);
    if (received != MPI_SUCCESS) return received;
    return sent != MPI_SUCCESS ? sent : sending->outcome().error;
}

template <class Look>
int barrier(Ranks members, const wire::ContextId& context, Look look) {
    const auto here = std::find(members.begin(), members.end(), own_number(members));
    // Where all are proven to be on one node, there are no messages that need to be kept moving.
    if (here == members.end() || !realm_of(members).job_secret) return MPI_SUCCESS;
    const auto size = members.size();
    const auto index = static_cast<std::size_t>(here - members.begin());
    const int tag = barrier_tag(context);
    for (std::size_t distance = 1; distance < size; distance *= 2) {
        const int to = members[(index + distance) % size];
        const int from = members[(index + size - distance) % size];
        if (int code = swap({to, nullptr, from, nullptr}, 0, tag, look); code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
}

}  // namespace

int progress_barrier_of_members(MPI_Comm comm) {
    Communicator* known = find_communicator(comm);
    return known ? raise(known, progress_barrier(*known)) : MPI_SUCCESS;
}

int barrier_tag(const wire::ContextId& context) {
    // The context tells apart the barriers of communicators that share members.
    return first_barrier_tag() + static_cast<int>(load_le<std::uint32_t>(context.data()) %
                                                  static_cast<std::uint32_t>(barrier_tags()));
}

int progress_barrier_of_group(MPI_Group group, const char* name) {
    if (gate.phase != Phase::closed || group == constants.group_null || group == constants.group_empty)
        return MPI_SUCCESS;
    return progress_barrier(numbers_of(group, state.world), group_context(name ? name : ""));
}

wire::ContextId group_context(const std::string& name) {
    wire::ContextId context{};
    for (std::size_t i = 0; i < name.size(); ++i)
        context[i % 4] = static_cast<std::uint8_t>(context[i % 4] * 31 + name[i]);
    return context;
}

int progress_barrier(Communicator& comm) {
    std::vector<std::int32_t> everyone = comm.members.list();
    everyone.insert(everyone.end(), comm.remote_members.begin(), comm.remote_members.end());
    std::sort(everyone.begin(), everyone.end());  // both sides of an inter-communicator agree on the order
    return barrier(everyone, comm.context, [&] { return failure_on(comm); });
}

int progress_barrier(Ranks members, const wire::ContextId& context) {
    return barrier(members, context, [&] { return failure_among(members); });
}

int exchange_with(std::int32_t world, const void* out, void* in, std::size_t bytes,
                  const wire::ContextId& context) {
    return swap({world, out, world, in}, static_cast<MPI_Count>(bytes), barrier_tag(context),
                [&] { return failure_among(Ranks::one(world)); });
}

int hand_down(Ranks members, std::size_t root, void* data, std::size_t bytes,
              const wire::ContextId& context) {
    const auto here = std::find(members.begin(), members.end(), own_number(members));
    if (here == members.end()) return MPI_SUCCESS;
    const std::size_t size = members.size();
    const std::size_t place = (static_cast<std::size_t>(here - members.begin()) + size - root) % size;
    auto member = [&](std::size_t other) { return members[(other + root) % size]; };
    const int tag = barrier_tag(context);
    auto look = [&] { return failure_among(members); };
    std::size_t bit = 1;
    while (bit < size && !(place & bit)) bit *= 2;
    if (place != 0) {
        auto receiving = begin_part(member(place - bit), data, static_cast<MPI_Count>(bytes), tag);
        if (int code = complete_part(receiving, bytes, look); code != MPI_SUCCESS) return code;
    }
    for (bit /= 2; bit > 0; bit /= 2) {
        if (place + bit >= size) continue;
        auto sending = begin_part(member(place + bit), static_cast<const void*>(data),
                                  static_cast<MPI_Count>(bytes), tag);
        if (int code = complete(sending, look); code != MPI_SUCCESS) return code;
        if (sending->outcome().error != MPI_SUCCESS) return sending->outcome().error;
    }
    return MPI_SUCCESS;
}

int hand_down(const Communicator& comm, int root, void* data, std::size_t bytes) {
    if (realm_of(comm.members).job_secret)
        return hand_down(comm.members, static_cast<std::size_t>(root), data, bytes, comm.context);
    return real.Bcast(data, static_cast<int>(bytes), constants.byte, root, comm.handle);
}

}  // namespace mpisec::shim
