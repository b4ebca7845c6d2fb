// A barrier of MPIsec's own, on the private channel: dissemination (Hensgen, Finkel, Manber 1988),
// log2(members) rounds.
#include <algorithm>

#include "shim/communicator.hpp"
#include "shim/constants.hpp"
#include "shim/entry.hpp"
#include "shim/errors.hpp"
#include "shim/operation.hpp"
#include "shim/state.hpp"

namespace mpisec::shim {

int meet_members(MPI_Comm comm) {
    Communicator* known = find_communicator(comm);
    return known ? raise(known, meet(*known)) : MPI_SUCCESS;
}

int meet(Communicator& comm) {
    std::vector<std::int32_t> everyone = comm.members;
    everyone.insert(everyone.end(), comm.remote_members.begin(), comm.remote_members.end());
    std::sort(everyone.begin(), everyone.end());  // both sides of an inter-communicator agree on the order
    return meet(everyone, comm.context);
}

int meet(const std::vector<std::int32_t>& members, const wire::ContextId& context) {
    const auto here = std::find(members.begin(), members.end(), state.world.rank);
    if (here == members.end()) return MPI_SUCCESS;
    const auto size = members.size();
    const auto index = static_cast<std::size_t>(here - members.begin());
    // The upper half of the channel's tags but the top ones (tally.cpp, refusals.cpp, skips.cpp): segments use the
    // lower. Members of several communicators are told apart by its context.
    const int half = state.tag_upper_bound / 2;
    const int tag = half + static_cast<int>(load_le<std::uint32_t>(context.data()) %
                                            static_cast<std::uint32_t>(half - 4));
    for (std::size_t distance = 1; distance < size; distance *= 2) {
        const int to = members[(index + distance) % size];
        const int from = members[(index + size - distance) % size];
        std::unique_ptr<Operation> receiving, sending;
        {
            Guard guard;
            receiving = begin_receive(
                {nullptr, 0, constants.byte, from, tag, state.world.channel, "a barrier of MPIsec"});
            sending = begin_send({SendSpec::Mode::standard, nullptr, 0, constants.byte, to, tag,
                                  state.world.channel, "a barrier of MPIsec"});
        }
        complete_operation(*receiving);
        complete_operation(*sending);
        for (const auto* part : {receiving.get(), sending.get()})
            if (part->outcome().error != MPI_SUCCESS) return part->outcome().error;
    }
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim
