// Inter-communicators: what one group must know of the other (its members, their colours, `high`) is
// exchanged under seal, and what the library makes of it is compared (construction.hpp, S2).
#include "shim/calls/intercommunicator_calls.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/hex.hpp"
#include "keys/secret.hpp"
#include "shim/calls/entry.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/communicators/split_type.hpp"
#include "shim/dynamic/worlds.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/progress_barrier.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/unsupported.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/startup/waiting.hpp"

namespace mpisec::shim {
namespace {

/// Gets the value of each rank of the other group, in rank order. Afterwards all ranks of both groups are in the call. Returns an error
/// code that MPIsec has not raised yet.
int exchange_values(Communicator& parent, const char* procedure, std::int32_t mine,
                    std::vector<std::int32_t>& of_remote) {
    of_remote.resize(parent.remote_members.size());
    if (!parent.crosses) {
        if (int code = progress_barrier(parent); code != MPI_SUCCESS) return code;
        return real.Allgather(&mine, 1, constants.int32, of_remote.data(), 1, constants.int32, parent.handle);
    }
    const Ranks everyone = parent.collective_context->members();
    std::vector<std::int32_t> all(everyone.size());
    const int code =
        run_unraised(plan::Allgather_of_both(procedure, &mine, sizeof mine, all.data(), parent.handle));
    std::ranges::transform(places_in(parent.remote_members, everyone), of_remote.begin(),
                           [&](int place) { return all[static_cast<std::size_t>(place)]; });
    return code;
}

/// Connects the two sides in `all`, which has all ranks of both groups of the parent, `everyone`.
int connect_sides_in(MPI_Comm all, Ranks everyone, const Membership& sides, MPI_Comm* made) {
    const MPI_Group local = subgroup(all, places_in(sides.members, everyone));
    MPI_Comm part = constants.comm_null;
    int code = real.Comm_create(all, local, &part);
    free_group(local);
    // Another communicator would make the leaders wait for each other. So none is made, and the comparison reports it.
    if (code == MPI_SUCCESS && part != constants.comm_null &&
        read_membership(part, realm_of(sides.members)) != Membership{sides.members, {}})
        return MPI_SUCCESS;
    if (code == MPI_SUCCESS && part != constants.comm_null && !sides.remote_members.empty()) {
        const auto leader = std::ranges::find(everyone, sides.remote_members.front()) - everyone.begin();
        code = real.Intercomm_create(part, 0, all, static_cast<int>(leader), 0, made);
    }
    if (part != constants.comm_null) real.Comm_free(&part);
    return code;
}

/// Not on the parent's shadow communicator: other communicators may be on it, whose constructors other threads call.
int connect_sides(Communicator& parent, const Membership& sides, MPI_Comm* made) {
    const Ranks everyone = parent.collective_context->members();
    MPI_Comm all = constants.comm_null;
    int code = make_shadow_communicator(parent.handle, membership_of(parent), &all);
    if (code == MPI_SUCCESS) {
        real.Comm_set_errhandler(all, constants.errors_return);
        // With a communicator of other ranks, the next step would give no communicator, or wait. So none is made, and the comparison
        // reports it.
        if (read_membership(all, realm_of(everyone)) == Membership{everyone.list(), {}})
            code = connect_sides_in(all, everyone, sides, made);
        real.Comm_free(&all);
    }
    return raise(&parent, code);
}

/// What the leaders tell each other, and then their groups: the number of ranks and the ranks, padded, so that all messages have one
/// length. A negative number: this group cannot take part. At the end, the context of the communicator that joins the leaders.
using GroupHello = std::vector<std::int32_t>;
enum GroupHelloProblem : std::int32_t { no_bridge = -1, no_answer = -2, other_realm = -3 };

GroupHello hello_of(const Realm& realm, Ranks members) {
    GroupHello hello(static_cast<std::size_t>(realm.size) + 1 +
                     sizeof(wire::ContextId) / sizeof(std::int32_t));
    hello[0] = static_cast<std::int32_t>(members.size());
    std::ranges::transform(members, hello.begin() + 1,
                           [&](std::int32_t number) { return number - realm.first; });
    return hello;
}

/// What the leaders tell each other first, under seal: whether their local communicators are of the realm of the communicator that joins
/// them. If not, the groups do a start-up together, which is named after both leaders' numbers.
struct LeaderHello {
    std::int32_t same_realm;
    std::array<std::uint8_t, 12> number;
};
static_assert(sizeof(LeaderHello) == 16);

/// The leader's answer to its group.
struct OtherGroup {
    GroupHello hello;
    std::array<LeaderHello, 2> leaders{};  ///< the one with the lower number first
    bool can_be_told = false;  ///< of the leader alone: the other leader expects to hear how this group fares
};

std::size_t bytes_of(const GroupHello& hello) {
    return hello.size() * sizeof hello[0];
}

std::int32_t* bridge_in(GroupHello& hello) {
    return hello.data() + hello.size() - sizeof(wire::ContextId) / sizeof(std::int32_t);
}

/// Leaders whose realm is proven to be on one node have neither keys nor a channel.
int exchange_on_node(const Communicator& bridge, int other, int tag, const void* out, void* in,
                     std::size_t bytes) {
    const int n = static_cast<int>(bytes);
    MPI_Request sending, receiving;
    if (const int code = real.Isend(out, n, constants.byte, other, tag, bridge.handle, &sending);
        code != MPI_SUCCESS)
        return code;
    check_mpi(real.Irecv(in, n, constants.byte, other, tag, bridge.handle, &receiving), "MPI_Irecv");
    complete_or_abort(&receiving, "the other leader of MPI_Intercomm_create", state.settings);
    complete_or_abort(&sending, "the other leader of MPI_Intercomm_create", state.settings);
    return MPI_SUCCESS;
}

/// The arguments of an MPI_Intercomm_create.
struct Bridge {
    Communicator& local;
    int local_leader;
    MPI_Comm peer_comm;
    int remote_leader, tag;

    /// Between the leaders, of `bridge`, which is peer_comm.
    int exchange(const Communicator& bridge, const void* out, void* in, std::size_t bytes) const {
        const std::int32_t other = bridge.peer(remote_leader);
        return realm_of(other).job_secret
                   ? exchange_with(other, out, in, bytes, with_tag(bridge.context, tag))
                   : exchange_on_node(bridge, remote_leader, tag, out, in, bytes);
    }
};

/// The leader's part: gets the other group's members, under seal, from that group's leader. First each tells the other whether it has heard the
/// other's hello: the groups are exchanged by both or by none, whichever one message is attacked. Returns how telling that ended.
int ask_other_leader(const Bridge& call, OtherGroup& theirs) {
    const Realm& realm = realm_of(call.local.members);
    const Communicator* bridge = find_communicator(call.peer_comm);
    theirs.hello[0] = no_bridge;
    if (!bridge || !bridge->has_peer(call.remote_leader)) return MPI_SUCCESS;
    theirs.can_be_told = true;
    auto& [mine, its] = theirs.leaders;
    mine.same_realm = &realm_of(bridge->peer(call.remote_leader)) == &realm;
    keys::random_bytes(mine.number.data(), mine.number.size());
    const std::int32_t heard = call.exchange(*bridge, &mine, &its, sizeof mine) == MPI_SUCCESS;
    std::int32_t it_heard = 1;
    const int told = call.exchange(*bridge, &heard, &it_heard, sizeof heard);
    if (told != MPI_SUCCESS) it_heard = 1;
    theirs.hello[0] = no_answer;
    if (!heard || !it_heard) return told;
    if (!mine.same_realm || !its.same_realm) {
        theirs.hello[0] = other_realm;
        if (its.number < mine.number) std::swap(mine, its);
        return told;
    }
    GroupHello ours = hello_of(realm, call.local.members);
    std::memcpy(bridge_in(ours), bridge->context.data(), bridge->context.size());
    theirs.hello = ours;
    if (call.exchange(*bridge, ours.data(), theirs.hello.data(), bytes_of(ours)) != MPI_SUCCESS)
        theirs.hello[0] = no_answer;
    return told;
}

/// The leaders tell each other, and then their groups, whether all of a group know what to make: what one group does not make, nobody makes
/// (S8). `mine`: the class of this group's error. Returns that of either. What did not arrive is noted in `met`, and the group goes on, as the
/// other one does.
int hear_of_both_groups(const Bridge& call, bool can_be_told, std::int32_t mine, int& met) {
    std::int32_t either = mine, its = MPI_SUCCESS;
    if (call.local.rank == call.local_leader && can_be_told) {
        const int told = call.exchange(*find_communicator(call.peer_comm), &mine, &its, sizeof mine);
        if (told != MPI_SUCCESS) its = is_failure(told) ? class_to_tell(told) : MPI_SUCCESS;
        if (told != MPI_SUCCESS && met == MPI_SUCCESS) met = told;
        if (mine == MPI_SUCCESS) either = its;
    }
    const int heard = hand_down(call.local, call.local_leader, &either, sizeof either);
    if (heard != MPI_SUCCESS && met == MPI_SUCCESS) met = heard;
    return heard == MPI_SUCCESS ? either : mine;
}

struct RemoteGroup {
    std::vector<std::int32_t> members;
    /// How both groups name the call: other calls that they make at the same time have other names.
    std::string call;
    /// The group is of another realm, and `call` names the start-up to do with it.
    bool joins_realms = false;
    /// An integrity error of this rank, which knows what to make all the same.
    int met = MPI_SUCCESS;
};

/// What is wrong with a leader's answer: an error code, not yet raised.
int judge(const GroupHello& hello, const Realm& realm) {
    if (hello[0] == no_bridge) return MPI_ERR_COMM;
    if (hello[0] == other_realm || (hello[0] >= 0 && hello[0] <= realm.size)) return MPI_SUCCESS;
    return report_wrong_communicator("MPI_Intercomm_create",
                                     "the leaders could not tell each other their groups");
}

void name_start_up(const OtherGroup& other, int tag, RemoteGroup& remote) {
    remote.joins_realms = true;
    remote.call = "MPI_Intercomm_create " + std::to_string(tag) + " ";
    for (const LeaderHello& each : other.leaders) remote.call.append(each.number.begin(), each.number.end());
}

/// Gets the other group, for every rank of this one. Afterwards all ranks of both groups are in the call. Returns an error code that was
/// raised.
int learn_remote_group(const Bridge& call, RemoteGroup& remote) {
    constexpr const char* procedure = "MPI_Intercomm_create";
    Communicator& local = call.local;
    finish_duplications(local, procedure);
    remote.met = progress_barrier(local);
    if (is_failure(remote.met)) return raise(&local, remote.met);
    const Realm& realm = realm_of(local.members);
    OtherGroup other{hello_of(realm, {})};
    if (local.rank == call.local_leader) {
        const int told = ask_other_leader(call, other);
        if (remote.met == MPI_SUCCESS) remote.met = told;
    }
    GroupHello& hello = other.hello;
    int code = hand_down(local, call.local_leader, hello.data(), bytes_of(hello));
    const int named = hand_down(local, call.local_leader, &other.leaders, sizeof other.leaders);
    if (code == MPI_SUCCESS) code = named != MPI_SUCCESS ? named : judge(hello, realm);
    const AllLearned all = tell_learned(procedure, local, code);
    if (remote.met == MPI_SUCCESS) remote.met = all.told;
    const int outcome = hear_of_both_groups(call, other.can_be_told, class_to_tell(all.code), remote.met);
    if (all.code != MPI_SUCCESS) return raise(&local, all.code);
    if (outcome != MPI_SUCCESS) {
        say(std::string(procedure) + " fails here because it failed in the other group, which says why.");
        return raise(&local, outcome);
    }
    if (hello[0] == other_realm) {
        name_start_up(other, call.tag, remote);
        return MPI_SUCCESS;
    }
    remote.members.assign(hello.begin() + 1, hello.begin() + 1 + hello[0]);
    for (std::int32_t& rank : remote.members) rank += realm.first;
    const auto* bridge_context = reinterpret_cast<const std::uint8_t*>(bridge_in(hello));
    remote.call = std::string(procedure) + " " + std::to_string(call.tag) + " " +
                  hex(std::span(bridge_context, sizeof(wire::ContextId)));
    return MPI_SUCCESS;
}

}  // namespace

namespace {

/// Two groups that do not share keys yet do a start-up of their own.
template <class Call>
int join_other_realm(Communicator& local, const std::string& meeting, MPI_Comm* newcomm, Call call) {
    *newcomm = constants.comm_null;
    MPI_Comm made = constants.comm_null;
    {
        WaitScope waiting("MPI_Intercomm_create", MPI_ANY_SOURCE, MPI_ANY_TAG);
        if (const int code = call(&made); code != MPI_SUCCESS || made == constants.comm_null) return code;
    }
    MPI_Group group;
    real.Comm_group(local.handle, &group);
    const int code =
        join_worlds({"MPI_Intercomm_create", meeting, Side::either, group, constants.group_null}, made);
    real.Group_free(&group);
    if (code == MPI_SUCCESS) *newcomm = made;
    return raise(&local, code);
}

}  // namespace

int split_inter_by(Communicator& parent, const char* procedure, const std::vector<ColorAndKey>& all,
                   MPI_Comm* newcomm) {
    const Ranks everyone = parent.collective_context->members();
    const auto me = std::ranges::find(everyone, own_number(parent.members)) - everyone.begin();
    const std::int32_t color = all[static_cast<std::size_t>(me)].color;
    auto side = [&](Ranks members) {
        std::vector<std::pair<std::int32_t, std::int32_t>> chosen;  // key, world rank; in the order of ranks
        for (int place : places_in(members, everyone)) {
            const ColorAndKey theirs = all[static_cast<std::size_t>(place)];
            if (color != MPI_UNDEFINED && theirs.color == color)
                chosen.emplace_back(theirs.key, everyone[static_cast<std::size_t>(place)]);
        }
        std::ranges::stable_sort(chosen, {}, [](const auto& one) { return one.first; });
        std::vector<std::int32_t> ranks;
        for (const auto& [its_key, world] : chosen) ranks.push_back(world);
        return ranks;
    };
    const Membership sides{side(parent.members), side(parent.remote_members), true};
    return construct_met(begin_construction(procedure, parent, sides), newcomm,
                         [&](MPI_Comm* made) { return connect_sides(parent, sides, made); });
}

int split_inter_sealed(Communicator& parent, const char* procedure, int color, int key, MPI_Comm* newcomm) {
    finish_duplications(parent, procedure);
    const ColorAndKey mine{color, key};
    std::vector<ColorAndKey> all(parent.collective_context->members().size());
    const int code =
        run_unraised(plan::Allgather_of_both(procedure, &mine, sizeof mine, all.data(), parent.handle));
    return construct_learned(procedure, parent, code, newcomm,
                             [&] { return split_inter_by(parent, procedure, all, newcomm); });
}

int create_inter_sealed(Communicator& parent, const char* procedure, MPI_Group group, MPI_Comm* newcomm) {
    finish_duplications(parent, procedure);
    const std::vector<std::int32_t> chosen = numbers_of(group, realm_of(parent.members));
    const auto place = std::ranges::find(chosen, realm_of(parent.members).own_number());
    const std::int32_t mine = place == chosen.end() ? -1 : static_cast<std::int32_t>(place - chosen.begin());
    std::vector<std::int32_t> of_remote;
    const int code = exchange_values(parent, procedure, mine, of_remote);
    return construct_learned(procedure, parent, code, newcomm, [&] {
        std::vector<std::pair<std::int32_t, std::int32_t>> remote;  // place, world rank
        for (std::size_t i = 0; i < of_remote.size(); ++i)
            if (of_remote[i] >= 0) remote.emplace_back(of_remote[i], parent.remote_members[i]);
        std::ranges::sort(remote);
        Membership expected{chosen, {}, true};
        for (const auto& [its_place, world] : remote) expected.remote_members.push_back(world);
        const Construction construction = begin_construction(procedure, parent, expected);
        return construct_met(construction, newcomm, [&](MPI_Comm* made) {
            // Open MPI 5 hangs in MPI_Comm_create of an inter-communicator.
            return parent.crosses ? connect_sides(parent, construction.expected, made)
                                  : real.Comm_create(parent.handle, group, made);
        });
    });
}

// The members of both groups derive the context from what all of them know: the two groups, the communicator that joins their leaders, the
// tag, and how often they have done this.
int Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                     MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPI_Intercomm_create";
    auto call = [&](MPI_Comm* made) {
        return real.Intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag, made);
    };
    Communicator* local = find_communicator(local_comm);
    if (local_comm == constants.comm_null) return call(newcomm);
    if (auto error = bad_arguments(procedure, local, newcomm)) return *error;
    *newcomm = constants.comm_null;
    if (local->inter || local_leader < 0 || local_leader >= local->size)
        return construct_none(procedure, *local, newcomm, call);
    RemoteGroup remote;
    if (int code = learn_remote_group({*local, local_leader, peer_comm, remote_leader, tag}, remote);
        code != MPI_SUCCESS)
        return code;
    if (remote.joins_realms) {
        const int code = join_other_realm(*local, remote.call, newcomm, call);
        if (code != MPI_SUCCESS || remote.met == MPI_SUCCESS) return code;
        *newcomm = constants.comm_null;
        return raise(local, remote.met);
    }
    Construction construction =
        begin_construction(procedure, no_parent(realm_of(local->members)),
                           {local->members.list(), remote.members, true}, std::nullopt, remote.call);
    construction.parent = local;
    construction.by_all = false;
    return construct_after(remote.met, std::move(construction), newcomm, call);
}

int Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPI_Intercomm_merge";
    Communicator* parent = find_communicator(intercomm);
    if (intercomm == constants.comm_null) return real.Intercomm_merge(intercomm, high, newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    if (!parent->inter)
        return construct_none(procedure, *parent, newcomm,
                              [&](MPI_Comm* made) { return real.Intercomm_merge(intercomm, high, made); });
    finish_duplications(*parent, procedure);
    std::vector<std::int32_t> of_remote;
    const int code = exchange_values(*parent, procedure, high != 0, of_remote);
    return construct_learned(procedure, *parent, code, newcomm, [&] {
        // When both groups say the same, either may come first.
        const bool others_high = of_remote.front() != 0;
        const bool second =
            (high != 0) != others_high ? high != 0 : parent->remote_members.front() < parent->members.front();
        Membership expected{(second ? parent->remote_members : parent->members).list(), {}};
        const Ranks others = second ? parent->members : parent->remote_members;
        expected.members.insert(expected.members.end(), others.begin(), others.end());
        return construct_met(begin_construction(procedure, *parent, expected), newcomm,
                             [&](MPI_Comm* made) { return real.Intercomm_merge(intercomm, second, made); });
    });
}

}  // namespace mpisec::shim
