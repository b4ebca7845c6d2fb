// Making a communicator: the MPI library makes it, and before the program gets it, it is compared with what it must be
// (S2). The library's own messages, in clear, are therefore metadata only: each rank knows by itself, or was told under
// seal, who the members are, in which order, and with which topology. The context follows from that too, never from the
// library's result.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include "shim/collective/collective_context.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/progress_barrier.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {

/// What the topology queries of MPI say of a communicator (MPI standard section 8.5). Only what belongs to
/// `kind` is filled.
struct Topology {
    int kind = MPI_UNDEFINED;
    std::vector<int> dims = {}, periods = {}, coordinates = {};  ///< MPI_CART
    std::vector<int> index = {}, edges = {};                     ///< MPI_GRAPH
    /// MPI_DIST_GRAPH
    std::vector<int> sources = {}, source_weights = {}, destinations = {}, dest_weights = {};
    bool operator==(const Topology&) const = default;
};
/// The library's answer, which it has in its memory: no message is exchanged.
Topology read_topology(MPI_Comm comm);

/// Waits until the library's part of each MPI_Comm_idup of `parent` that is under way here has ended. To be
/// called before the members of a later constructor meet: all of them have called MPI_Comm_idup by then, so this
/// holds up no rank that is not in that constructor too. Open MPI hangs now and then when it makes a
/// communicator while it duplicates one.
void finish_duplications(Communicator& parent, const char* procedure);

/// A constructor call of the program.
struct Construction {
    const char* procedure;  ///< for messages
    Communicator* parent;   ///< its error handler gets the errors
    Membership expected;
    std::optional<Topology> topology = Topology{};  ///< not compared when there is none
    wire::ContextId context{};
    bool by_all = true;  ///< all members of the parent are in the call
    bool raises = true;  ///< else errors are the caller's to raise, and the library is to return them
    TagBlocks blocks{};  ///< for its collectives, on the parent's shadow communicator; none: it gets a
                         ///< shadow communicator of its own
};

/// Derives the context at once, because all members make their constructor calls in the same order. `constructor` is the
/// procedure's name unless given.
Construction begin_construction(const char* procedure, Communicator& parent, Membership expected,
                                std::optional<Topology> topology = Topology{},
                                const std::string& constructor = {});

/// Takes blocks of tags on the parent's shadow communicator where all members of the parent are in the call and have met. A
/// parent that has used up its own blocks gets a new shadow communicator. Returns an error code, raised as `construction` says.
int reserve_blocks(Construction& construction);

/// Compares a communicator, and the private one for its collectives where it needs one, with what they must be.
/// If they are right, MPIsec knows the communicator from now on. Otherwise returns the integrity error, not yet raised, and
/// abandons the handles without freeing them, because that would wait for ranks that may have been told something else.
int check_made(const Construction& construction, MPI_Comm made, MPI_Comm shadow);

/// Makes the private communicator where one is needed, then calls check_made(); raises errors. On success `newcomm`
/// is written.
int hand_out(const Construction& construction, MPI_Comm made, MPI_Comm* newcomm);

/// Tells apart meetings of the same members for calls that differ by tag.
inline wire::ContextId with_tag(wire::ContextId context, int tag) {
    store_le(context.data(), load_le<std::uint32_t>(context.data()) ^ static_cast<std::uint32_t>(tag));
    return context;
}

/// The group of these ranks of the communicator, MPI_GROUP_NULL when the library fails; and what frees it.
MPI_Group subgroup(MPI_Comm comm, const std::vector<int>& ranks);
void free_group(MPI_Group group);

/// The error that the program gets for a communicator that MPIsec does not know or for a null pointer to the result;
/// nothing when all is well.
std::optional<int> bad_arguments(const char* procedure, const Communicator* parent, const void* newcomm);

/// Lets the MPI library make the communicator by `call(MPI_Comm*)`, and hands it out. All members are in the call: they
/// have met.
template <class Call>
int construct_met(Construction construction, MPI_Comm* newcomm, Call call) {
    *newcomm = constants.comm_null;
    MPI_Comm made = constants.comm_null;
    if (const int code = reserve_blocks(construction); code != MPI_SUCCESS) return code;
    {
        WaitScope waiting(construction.procedure, MPI_ANY_SOURCE, MPI_ANY_TAG);
        if (const int code = call(&made); code != MPI_SUCCESS) return code;  // the library has raised it
    }
    return hand_out(construction, made, newcomm);
}

/// The same for members that have met, with this result on this rank. After an integrity error, too: the others may have met, and wait for this
/// rank in the library (S8). Then the error comes at the end.
template <class Call>
int construct_after(int met, Construction construction, MPI_Comm* newcomm, Call call) {
    Communicator& parent = *construction.parent;
    const bool raises = construction.raises;
    if (is_failure(met)) return raises ? raise(&parent, met) : met;
    const int code = construct_met(std::move(construction), newcomm, call);
    if (met == MPI_SUCCESS || code != MPI_SUCCESS) return code;
    *newcomm = constants.comm_null;
    return raises ? raise(&parent, met) : met;
}

/// The same for members that have yet to meet.
template <class Call>
int construct(Construction construction, MPI_Comm* newcomm, Call call) {
    Communicator& parent = *construction.parent;
    finish_duplications(parent, construction.procedure);
    const int met = progress_barrier(parent);
    return construct_after(met, std::move(construction), newcomm, call);
}

/// The ranks of `parent`, of both its groups, tell each other whether they have learned what they need to make a communicator: `code` is how
/// the collective ended in which this rank learned it. So nobody waits in the library for a rank that does not know what to make (S8).
struct AllLearned {
    int code;  ///< not MPI_SUCCESS: some rank has not; the constructor ends here, with this error
    int told;  ///< not MPI_SUCCESS: what a rank told did not arrive. All may have learned, and the constructor goes on, to fail at its end.
};
AllLearned tell_learned(const char* procedure, Communicator& parent, int code);
/// What other ranks are told of an error: its class where that is one of the MPI standard's, which means the same on every rank. An integrity
/// error is raised only by a rank that has found one.
std::uint8_t class_to_tell(int code);
/// The class of an error, which means the same on every rank where it is one of the standard's; never that of a success.
int class_of_error(int code);

/// `make()` makes the communicator, and raises errors, once all ranks have learned what they need.
template <class Make>
int construct_learned(const char* procedure, Communicator& parent, int code, MPI_Comm* newcomm, Make make) {
    *newcomm = constants.comm_null;
    const AllLearned all = tell_learned(procedure, parent, code);
    if (all.code != MPI_SUCCESS) return raise(&parent, all.code);
    const int made = make();
    if (made != MPI_SUCCESS || all.told == MPI_SUCCESS) return made;
    *newcomm = constants.comm_null;
    return raise(&parent, all.told);
}

/// For arguments with which the MPI library must fail or return no communicator.
template <class Call>
int construct_none(const char* procedure, Communicator& parent, MPI_Comm* newcomm, Call call) {
    return construct_met({.procedure = procedure, .parent = &parent, .expected = {}, .by_all = false},
                         newcomm, call);
}

}  // namespace mpisec::shim
