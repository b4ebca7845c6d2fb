#include "shim/p2p/message_audit.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "keys/schedule.hpp"
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

using Words = std::vector<std::uint64_t>;

/// Sends all of `values`, or receives at most that many words. Returns how many were transferred, or nothing where that failed.
std::optional<std::size_t> transfer(bool sending, Words& values, int peer) {
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
        abandon(std::move(operation));
        const Words copy = values;
        (void)new Words(std::exchange(values, copy));  // MPI may still use this memory
        return std::nullopt;
    }
    const Outcome& outcome = operation->outcome();
    if (outcome.error != MPI_SUCCESS) return std::nullopt;
    return sending ? values.size() : static_cast<std::size_t>(outcome.bytes) / sizeof values[0];
}

bool send_words(Words& values, int peer) {
    return transfer(true, values, peer).has_value();
}

/// Receives at most `most` words from `peer`; empty where that fails.
Words receive_words(std::size_t most, int peer) {
    Words values(most);
    values.resize(transfer(false, values, peer).value_or(0));
    return values;
}

/// Sums every rank's vector at rank 0 over a binomial tree, then hands the sums down the same tree. Goes on to the end after a rejected
/// message too, because the other ranks wait for this rank's part. One additional word counts the ranks whose part is in the sum: returns
/// false on every rank that got an incomplete sum, or none. For the last `maxima` words it takes the largest value instead of the sum.
/// Other ranks may be summing vectors of another length, at most `other` words: then this rank has no part in that sum, and gets it,
/// incomplete, as `values`.
bool sum_everywhere(Words& values, std::size_t maxima = 0, std::size_t other = 0) {
    const std::size_t summed = values.size() - maxima;
    const int rank = state.world.rank, size = state.world.size;
    values.push_back(1);
    const std::size_t most = std::max(values.size(), other + 1);
    int mask = 1;
    for (; mask < size && !(rank & mask); mask *= 2) {
        if (rank + mask >= size) continue;
        const Words theirs = receive_words(most, rank + mask);
        if (theirs.size() != values.size()) continue;
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] =
                i < summed || i + 1 == values.size() ? values[i] + theirs[i] : std::max(values[i], theirs[i]);
    }
    if (rank != 0) {
        send_words(values, rank - mask);
        Words sums = receive_words(most, rank - mask);
        if (sums.size() == values.size() || (other > 0 && sums.size() == other + 1))
            values = std::move(sums);
        else
            values.back() = 0;
    }
    for (mask /= 2; mask > 0; mask /= 2)
        if (rank + mask < size) send_words(values, rank + mask);
    const bool complete = values.back() == static_cast<std::uint64_t>(size);
    values.pop_back();
    return complete;
}

using MessageCounts = std::vector<MessageCount>;

/// Adds up to 0 over all ranks when each rank accepted exactly as many messages from each other rank as that rank sent to it; otherwise to
/// a value that nobody without the job's secret can choose, and that is 0 with a probability of 2^k in 2^64, where 2^k is the greatest
/// power of two that divides all differences.
std::uint64_t weighed_difference(const MessageCounts& counts) {
    const std::int32_t rank = state.world.rank;
    std::uint64_t difference = 0;
    for (const auto& [peer, sent, opened] : counts) {
        if (sent) difference += sent * keys::message_weight(*state.world.job_secret, rank, peer);
        if (opened) difference -= opened * keys::message_weight(*state.world.job_secret, peer, rank);
    }
    return difference;
}

/// What all ranks report together, in a number of words that does not depend on the number of ranks.
struct AuditTotals {
    bool complete = false;  ///< every rank's part is in it
    std::uint64_t difference = 0, notices = 0, asking = 0;
};

AuditTotals add_up(const MessageCounts& counts, const Words& notices) {
    const Words sums = stats_sums(), maxima = stats_maxima();
    Words words = {weighed_difference(counts), std::reduce(notices.begin(), notices.end()),
                   state.settings.stats.empty() ? 0U : 1U};
    const auto own = static_cast<std::ptrdiff_t>(words.size());
    words.insert(words.end(), sums.begin(), sums.end());
    words.insert(words.end(), maxima.begin(), maxima.end());
    AuditTotals totals;
    totals.complete = sum_everywhere(words, maxima.size());
    totals.difference = words[0], totals.notices = words[1], totals.asking = words[2];
    const auto first = words.begin() + own, middle = first + static_cast<std::ptrdiff_t>(sums.size());
    if (totals.complete && state.world.rank == 0) print_job_stats({first, middle}, {middle, words.end()});
    return totals;
}

std::size_t words_by_receiver() {
    return 2 * static_cast<std::size_t>(state.world.size);
}

struct ForThisRank {
    std::uint64_t messages, notices;
};

/// Counts what was sent to this rank; two words for each rank travel.
std::optional<ForThisRank> sum_by_receiver(const MessageCounts& counts, Words notices) {
    Words words(static_cast<std::size_t>(state.world.size));
    for (const MessageCount& count : counts) words[static_cast<std::size_t>(count.peer)] = count.sent;
    words.insert(words.end(), notices.begin(), notices.end());
    if (!sum_everywhere(words)) return std::nullopt;
    const auto rank = static_cast<std::size_t>(state.world.rank);
    return ForThisRank{words[rank], words[static_cast<std::size_t>(state.world.size) + rank]};
}

void say_difference(std::uint64_t sent, const MessageCounts& counts) {
    std::uint64_t opened = 0;
    for (const MessageCount& count : counts) opened += count.opened;
    if (sent == opened || state.settings.stats.empty())
        return;  // programs may leave messages unreceived, and plain MPI is silent
    say("MPI_Finalize: " + std::to_string(sent) + " sealed messages were sent to this rank and " +
        std::to_string(opened) +
        " were received: messages were lost on the way, or the program never received them");
}

}  // namespace

AuditEnd audit_messages() {
    if (any_failure()) {
        finish_notices(0);
        say("MPI_Finalize: a process has died, so the counts of sent and received messages are not compared");
        return AuditEnd::known;
    }
    const MessageCounts counts = message_counts();
    const Words notices = notices_sent();
    const AuditTotals totals = add_up(counts, notices);
    std::optional<ForThisRank> sent = ForThisRank{0, 0};
    const bool by_receiver = totals.notices > 0 || (totals.difference != 0 && totals.asking > 0);
    if (totals.complete && by_receiver) sent = sum_by_receiver(counts, notices);
    finish_notices(totals.complete && sent ? sent->notices : 0);
    if (!totals.complete || !sent)
        say("MPI_Finalize: the counts of sent and received messages could not be compared");
    else if (by_receiver)
        say_difference(sent->messages, counts);
    return totals.complete ? AuditEnd::known : AuditEnd::unknown;
}

void final_barrier(AuditEnd audit) {
    if (any_failure()) return;
    Words nothing;
    bool together = sum_everywhere(nothing, 0, audit == AuditEnd::known ? 0 : words_by_receiver());
    if (!nothing.empty()) {  // those were the sums by receiver
        nothing.clear();
        together = sum_everywhere(nothing);
    }
    if (!together) say("MPI_Finalize: the ranks could not leave together");
}

}  // namespace mpisec::shim
