// The barrier is dissemination (Hensgen, Finkel, Manber 1988): log2(members) rounds.
#include "shim/p2p/progress_barrier.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

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

/// One message. MPI has a copy of the caller's bytes, which stays when the message is given up.
struct Part {
    std::vector<std::uint8_t> bytes;
    std::unique_ptr<Operation> operation{};
};

Part receive_part(std::int32_t from, std::size_t bytes, int tag) {
    Part part{std::vector<std::uint8_t>(bytes)};
    Guard guard;
    part.operation = begin_receive({part.bytes.data(), static_cast<MPI_Count>(bytes), constants.byte,
                                    rank_in_realm(from), tag, realm_of(from).channel, call});
    return part;
}

Part send_part(std::int32_t to, const void* out, std::size_t bytes, int tag) {
    const auto* begin = static_cast<const std::uint8_t*>(out);
    Part part{std::vector<std::uint8_t>(begin, begin + bytes)};
    Guard guard;
    part.operation = begin_send({SendSpec::Mode::standard, part.bytes.data(), static_cast<MPI_Count>(bytes),
                                 constants.byte, rank_in_realm(to), tag, realm_of(to).channel, call});
    return part;
}

/// Completes the message, unless `look()` says that a process that has yet to arrive has died, or that the communicator was revoked.
template <class Look>
int complete(Part& part, Look look) {
    if (!state.fault_tolerant) {
        complete_operation(*part.operation);
        return part.operation->outcome().error;
    }
    FailureWatch failures;
    Backoff backoff;
    while (true) {
        progress();
        {
            Guard guard;
            if (part.operation->advance()) return part.operation->outcome().error;
            enlist(*part.operation);
            if (const int code = failures.now_and_then(look); code != MPI_SUCCESS) {
                abandon(std::move(part.operation));
                (void)new auto(std::move(part.bytes));
                return code;
            }
        }
        backoff.pause();
    }
}

template <class Look>
int complete_receive(Part& part, void* in, Look look) {
    const std::size_t bytes = part.bytes.size();
    if (const int code = complete(part, look); code != MPI_SUCCESS) return code;
    if (part.operation->outcome().bytes != bytes) return report_length_violation(call, bytes);
    if (bytes > 0) std::memcpy(in, part.bytes.data(), bytes);
    return MPI_SUCCESS;
}

/// What is sent to a process and what is received from one at the same time.
struct Swap {
    std::int32_t to;
    const void* out;
    std::int32_t from;
    void* in;
};

template <class Look>
int swap(const Swap& swap, std::size_t bytes, int tag, Look look) {
    Part receiving = receive_part(swap.from, bytes, tag);
    Part sending = send_part(swap.to, swap.out, bytes, tag);
    const int received = complete_receive(receiving, swap.in, look);
    const int sent = complete(sending, look);
    return received != MPI_SUCCESS ? received : sent;
}

template <class Look>
int barrier(Ranks members, const wire::ContextId& context, Look look) {
    const auto here = std::find(members.begin(), members.end(), own_number(members));
    // Where all are proven to be on one node, there are no messages that need to be kept moving.
    if (here == members.end() || !realm_of(members).job_secret) return MPI_SUCCESS;
    const auto size = members.size();
    const auto index = static_cast<std::size_t>(here - members.begin());
    const int tag = barrier_tag(context);
    int met = MPI_SUCCESS;
    for (std::size_t distance = 1; distance < size; distance *= 2) {
        const int to = members[(index + distance) % size];
        const int from = members[(index + size - distance) % size];
        const int code = swap({to, nullptr, from, nullptr}, 0, tag, look);
        if (is_failure(code)) return code;
        if (met == MPI_SUCCESS) met = code;  // the others wait for this rank's further messages (S8)
    }
    return met;
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
    return swap({world, out, world, in}, bytes, barrier_tag(context),
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
    int received = MPI_SUCCESS;
    if (place != 0) {
        Part receiving = receive_part(member(place - bit), bytes, tag);
        received = complete_receive(receiving, data, look);
        if (is_failure(received)) return received;
    }
    for (bit /= 2; bit > 0; bit /= 2) {
        if (place + bit >= size) continue;
        // Without the data a message of the wrong length, so that nobody waits for ever (S8).
        Part sending = send_part(member(place + bit), data, received == MPI_SUCCESS ? bytes : 0, tag);
        if (int code = complete(sending, look); code != MPI_SUCCESS) return code;
    }
    return received;
}

int hand_down(const Communicator& comm, int root, void* data, std::size_t bytes) {
    if (realm_of(comm.members).job_secret)
        return hand_down(comm.members, static_cast<std::size_t>(root), data, bytes, comm.context);
    return real.Bcast(data, static_cast<int>(bytes), constants.byte, root, comm.handle);
}

}  // namespace mpisec::shim
