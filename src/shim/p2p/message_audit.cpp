#include "shim/p2p/message_audit.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "shim/p2p/backoff.hpp"
#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/notices.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/stats.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

bool transfer(bool sending, std::vector<std::uint64_t>& values, int peer) {
    const auto bytes = static_cast<MPI_Count>(values.size() * sizeof values[0]);
    std::unique_ptr<Operation> operation;
    {
        Guard guard;
        operation = sending
                        ? begin_send({SendSpec::Mode::standard, values.data(), bytes, constants.byte, peer,
                                      audit_tag(), state.world.channel, "MPI_Finalize (message audit)"})
                        : begin_receive({values.data(), bytes, constants.byte, peer, audit_tag(),
                                         state.world.channel, "MPI_Finalize (message audit)"});
    }
    FailureWatch failures;
    Backoff backoff;
    const WaitInfo at = operation->wait_info();
    WaitScope waiting(at.call, at.peer, at.tag);
    // Not inside the MPI library: others may wait in a collective, and ask what this rank has called (call_comparison.hpp).
    while (!operation->complete()) {  // until it is known that somebody has died, for whom nobody would wait
        progress();
        {
            Guard guard;
            if (operation->advance() || failures.now_and_then([] { return any_failure(); })) break;
        }
        backoff.pause();
    }
    if (!operation->complete()) {
        operation->cancel();
        leave_work_list(*operation);
        (void)operation.release();  // MPI may have its memory
        return false;
    }
    return operation->outcome().error == MPI_SUCCESS;
}

/// Sums every rank's vector at rank 0 over a binomial tree, then hands the sums down the same tree. To the
/// end after a rejected message too: the others wait for this rank's part. One word more counts the ranks
/// whose part is in the sum: false, on every rank that got an incomplete one, or none. Of the last `maxima`
/// words it is the largest.
bool sum_everywhere(std::vector<std::uint64_t>& values, std::size_t maxima = 0) {
    const std::size_t summed = values.size() - maxima;
    const int rank = state.world.rank, size = state.world.size;
    values.push_back(1);
    std::vector<std::uint64_t> theirs(values.size());
    int mask = 1;
    for (; mask < size && !(rank & mask); mask *= 2) {
        if (rank + mask >= size || !transfer(false, theirs, rank + mask)) continue;
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] =
                i < summed || i + 1 == values.size() ? values[i] + theirs[i] : std::max(values[i], theirs[i]);
    }
    if (rank != 0) {
        transfer(true, values, rank - mask);
        if (!transfer(false, values, rank - mask)) values.back() = 0;
    }
    for (mask /= 2; mask > 0; mask /= 2)
        if (rank + mask < size) transfer(true, values, rank + mask);
    return values.back() == static_cast<std::uint64_t>(size);
}

}  // namespace

void audit_messages() {
    if (any_failure()) {
        finish_notices(0);
        return say(
            "MPI_Finalize: a process has died, so the counts of sent and received messages are not compared");
    }
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(state.world.size));
    std::uint64_t opened = 0;
    for (int peer = 0; peer < state.world.size; ++peer) {
        sent[static_cast<std::size_t>(peer)] = sent_to(peer);
        opened += opened_from(peer);
    }
    const std::vector<std::uint64_t> skips = notices_sent();
    sent.insert(sent.end(), skips.begin(), skips.end());
    const std::size_t counters = sent.size();
    const std::vector<std::uint64_t> sums = stats_sums(), maxima = stats_maxima();
    sent.insert(sent.end(), sums.begin(), sums.end());
    sent.insert(sent.end(), maxima.begin(), maxima.end());
    if (!sum_everywhere(sent, maxima.size())) {
        finish_notices(0);
        return say("MPI_Finalize: the counts of sent and received messages could not be compared");
    }
    const auto first = sent.begin() + static_cast<std::ptrdiff_t>(counters);
    const auto middle = first + static_cast<std::ptrdiff_t>(sums.size());
    if (state.world.rank == 0) print_job_stats({first, middle}, {middle, sent.end()});
    const auto rank = static_cast<std::size_t>(state.world.rank);
    const std::uint64_t expected = sent[rank];
    finish_notices(sent[static_cast<std::size_t>(state.world.size) + rank]);
    if (expected == opened || state.settings.stats.empty())
        return;  // programs may leave messages unreceived, and plain MPI is silent
    say("MPI_Finalize: " + std::to_string(expected) + " sealed messages were sent to this rank and " +
        std::to_string(opened) +
        " were received: messages were lost on the way, or the program never received them");
}

void final_barrier() {
    if (any_failure()) return;
    std::vector<std::uint64_t> nothing;
    if (!sum_everywhere(nothing)) say("MPI_Finalize: the ranks could not leave together");
}

}  // namespace mpisec::shim
