#include "shim/sockets/failed_connections.hpp"

#include <cstdlib>

#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

using Failure = transport::AuthenticatedStream::Failure;
using Side = transport::AuthenticatedStream::Side;

namespace {

constexpr int most_strangers_named = 8;
constexpr const char* why_false =
    "Either the node there has another key than this one (compare `mpisec key show`), or the nodes see each "
    "other's addresses translated (then set MPISEC_CONNECTIONS=plain), or something between the nodes "
    "changes what is sent.";
constexpr const char* why_strange =
    "Either a rank there runs without MPIsec, or with another version or value of MPISEC_CONNECTIONS; or ";

/// For a connection that this process has asked for.
[[noreturn]] void end_for_answer(const std::string& with, Failure failure) {
    if (failure == Failure::not_ours)
        abort_job(with + " is not answered as MPIsec answers. " + why_strange +
                  "something between the nodes answers for it.");
    abort_job(with + (failure == Failure::refused ? " was refused there. " : " cannot be authenticated. ") +
              why_false);
}

/// For a connection that may not be one of the job's.
void say_who_was_refused(const std::string& peer, Failure failure) {
    const std::string from = "A connection from " + peer + " to the MPI library ";
    const bool not_ours = failure == Failure::not_ours;
    if (not_ours && gate.phase == Phase::starting)  // a rank without MPIsec would wait for ever
        abort_job(from + "does not begin as MPIsec does. " + why_strange + "it is none of this job's.");
    if (process.strangers.fetch_add(1) >= most_strangers_named) return;
    if (not_ours)
        return say(from + "does not begin as MPIsec does, and was refused. " + why_strange +
                   "it is none of this job's.");
    say(from + "cannot be authenticated, and was refused. " + why_false);
}

}  // namespace

void know_rank() {
    if ((gate.phase != Phase::before && gate.phase != Phase::starting) || state.world.rank != 0) return;
    for (const char* variable : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"})
        if (const char* rank = std::getenv(variable)) {
            state.world.rank = static_cast<int>(std::strtol(rank, nullptr, 10));
            return;
        }
}

void say_what_failed(const std::string& peer, Side side, Failure failure) {
    const std::string with = "The MPI library's connection with " + peer;
    know_rank();
    if (failure == Failure::later)
        abort_job(with +
                  " brought what was not sent there: it was changed, dropped, repeated or injected between "
                  "the nodes. The MPI library has got nothing of it.");
    if (failure == Failure::no_memory)
        abort_job(with +
                  " cannot be authenticated: there is no memory for it, or the crypto library failed.");
    if (side == Side::client) end_for_answer(with, failure);
    say_who_was_refused(peer, failure);
}

void count_unanswered(const std::string& peer) {
    constexpr int most_unanswered = 64;
    if (gate.phase != Phase::starting || process.unanswered.fetch_add(1) != most_unanswered) return;
    know_rank();
    abort_job("The MPI library's connections, the last of them with " + peer +
              ", are closed without an answer. " + why_strange + "something between the nodes closes them.");
}

void end_without_memory() noexcept {
    know_rank();
    abort_job("There is no memory for a connection of the MPI library.");
}

}  // namespace mpisec::shim
