// Communicators that are copies or parts of another one, and freeing them. The user's values, MPI_Comm_split's colours and keys, travel
// sealed (S1); what the library makes of them is compared (construction.hpp, S2).
#include <algorithm>

#include "shim/calls/entry.hpp"
#include "shim/calls/intercommunicator_calls.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/collective/tag_reserve.hpp"
#include "shim/communicators/agreement.hpp"
#include "shim/communicators/assertions.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/communicators/split_type.hpp"
#include "shim/p2p/backoff.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/partitioned/messages.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/family.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/sessions/life.hpp"

namespace mpisec::shim {
namespace {

/// Positions in `all` that have this colour, sorted by key.
std::vector<int> with_color(const std::vector<ColorAndKey>& all, int color) {
    std::vector<int> chosen;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (color != MPI_UNDEFINED && all[rank].color == color) chosen.push_back(static_cast<int>(rank));
    std::ranges::stable_sort(chosen, {}, [&](int rank) { return all[static_cast<std::size_t>(rank)].key; });
    return chosen;
}

std::vector<std::int32_t> pick(Ranks members, const std::vector<int>& positions) {
    std::vector<std::int32_t> picked;
    for (int position : positions) picked.push_back(members[static_cast<std::size_t>(position)]);
    return picked;
}

/// MPI_Comm_create over the groups that follow from colours and keys, which were gathered under seal. A rank that has gathered has met the
/// others.
int split_by(Communicator& parent, const char* constructor, const std::vector<ColorAndKey>& all,
             MPI_Comm* newcomm) {
    const std::vector<int> chosen = with_color(all, all[static_cast<std::size_t>(parent.rank)].color);
    const MPI_Group part = subgroup(parent.handle, chosen);
    const int code =
        construct_met(begin_construction(constructor, parent, {pick(parent.members, chosen), {}}), newcomm,
                      [&](MPI_Comm* made) { return real.Comm_create(parent.handle, part, made); });
    free_group(part);
    return code;
}

int split_sealed(Communicator& parent, const char* constructor, int color, int key, MPI_Comm* newcomm) {
    const ColorAndKey mine{color, key};
    std::vector<ColorAndKey> all(static_cast<std::size_t>(parent.size));
    finish_duplications(parent, constructor);
    const int code = run_unraised(plan::Allgather(constructor, &mine, sizeof mine, constants.byte, all.data(),
                                                  sizeof mine, constants.byte, parent.handle));
    return construct_learned(constructor, parent, code, newcomm,
                             [&] { return split_by(parent, constructor, all, newcomm); });
}

/// A split of a communicator whose ranks are all on this node: the library exchanges colours and keys inside the node, so that the new
/// members are not known here. All of them must belong to the parent.
template <class Call>
int split_in_node(const char* constructor, Communicator& parent, MPI_Comm* newcomm, Call call) {
    finish_duplications(parent, constructor);
    if (int code = progress_barrier(parent); code != MPI_SUCCESS) return raise(&parent, code);
    *newcomm = constants.comm_null;
    MPI_Comm made = constants.comm_null;
    if (int code = call(&made); code != MPI_SUCCESS || made == constants.comm_null) return code;
    const std::optional<Membership> is = read_membership(made, realm_of(parent.members));
    auto within = [](Ranks part, Ranks whole) {
        return std::ranges::all_of(
            part, [&](std::int32_t rank) { return std::ranges::find(whole, rank) != whole.end(); });
    };
    if (!is || is->inter != parent.inter || !within(is->members, parent.members) ||
        !within(is->remote_members, parent.remote_members))
        return raise(&parent,
                     report_wrong_communicator(constructor, "a rank in it is not in the one divided"));
    return hand_out(begin_construction(constructor, parent, *is), made, newcomm);
}

/// What a duplicate of `parent` must be.
Construction duplicate_of(const char* procedure, Communicator& parent, const char* constructor = "") {
    std::optional<Topology> topology;
    if (!parent.inter) topology = read_topology(parent.handle);
    return begin_construction(procedure, parent, membership_of(parent), std::move(topology), constructor);
}

class Duplication;

}  // namespace

/// Under the Guard.
struct Duplications {
    std::vector<Duplication*> under_way;
};

namespace {

// Open MPI has the new handle when MPI_Comm_idup returns, and its Fortran bindings convert it then: they give a variable of their own, which
// must not be written to later.
constexpr bool has_handle_at_once = is_open_mpi;

/// MPI_Comm_idup. The program gets the new communicator once it has been compared.
class Duplication final : public Operation {
  public:
    Duplication(Communicator& parent, Construction construction, MPI_Comm* newcomm)
        : Operation(&parent), construction_(std::move(construction)), newcomm_(newcomm) {
        process.duplications->under_way.push_back(this);
    }
    ~Duplication() override {
        std::erase(process.duplications->under_way, this);
        leave_work_list(*this);
        drop_comm();
    }
    /// Whether the library is still making it from `parent`.
    bool is_made_from(const Communicator& parent) const {
        return comm_ == &parent && made != constants.request_null;
    }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return {construction_.procedure, MPI_ANY_SOURCE, MPI_ANY_TAG}; }

    MPI_Request made = constants.request_null;
    MPI_Comm copy = constants.comm_null;
    std::unique_ptr<ReserveAgreement> agreement;  ///< on a block of tags; null where none is needed

  private:
    void step() override {
        int done = 0;
        if (const int code = real.Test(&made, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS) {
            library_error_ = code;
            made = constants.request_null;
        }
        if (agreement && !agreement->advance()) return;
        if (library_error_ != MPI_SUCCESS) return give_nothing(library_error_, true);
        if (!done) return;
        if (agreement) {
            if (agreement->error() != MPI_SUCCESS) return give_nothing(agreement->error());
            construction_.blocks = agreement->blocks();
        }
        MPI_Comm shadow = constants.comm_null;
        // Needed where the reserve has no free block either. Not by another MPI_Comm_idup at the same time: MPICH 5 loops for ever when the
        // local group of an inter-communicator has one member. All members have made the call by now, and get here with their next MPI call
        // that waits or tests.
        if (construction_.blocks.none() && crosses_nodes(construction_.expected))
            if (const int failed = make_shadow_communicator(copy, construction_.expected, &shadow);
                failed != MPI_SUCCESS)
                return give_nothing(failed);
        if (const int wrong = check_made(construction_, copy, shadow); wrong != MPI_SUCCESS)
            return give_nothing(wrong);
        if (!has_handle_at_once) *newcomm_ = copy;
        finish();
    }
    void give_nothing(int code, bool raised = false) {
        if (!has_handle_at_once) *newcomm_ = constants.comm_null;
        finish(code, raised);
    }
    Construction construction_;
    MPI_Comm* newcomm_;
    int library_error_ = MPI_SUCCESS;
};

/// `start(MPI_Comm*, MPI_Request*)` starts the library's duplication.
template <class Start>
int idup(const char* procedure, MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request, Start start) {
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return start(newcomm, request);
    if (auto error = bad_arguments(procedure, parent, newcomm ? request : nullptr)) return *error;
    std::unique_ptr<Duplication> duplication;
    wire::ContextId context;
    bool needs_block;
    {
        Guard guard;
        // Counted now, in the order of the calls, which all members share; the order of completion can differ.
        Construction construction = duplicate_of(procedure, *parent, "MPI_Comm_idup");
        if (parent->collective_context) construction.blocks = parent->collective_context->take_blocks();
        needs_block = parent->collective_context && construction.blocks.none();
        context = construction.context;
        duplication = std::make_unique<Duplication>(*parent, std::move(construction), newcomm);
    }
    // Without the Guard: attributes are copied by the program's procedures, which may wait for a thread that is inside MPI.
    MPI_Comm copy = constants.comm_null;
    MPI_Request made = constants.request_null;
    const int code = start(&copy, &made);
    Guard guard;
    if (code != MPI_SUCCESS) {
        duplication.reset();
        return code;
    }
    duplication->copy = copy;
    duplication->made = made;
    if (has_handle_at_once) *newcomm = copy;
    if (needs_block) duplication->agreement = agree_on_block(procedure, *parent, context);
    enlist(*duplication);
    *request = give_request(std::move(duplication));
    return MPI_SUCCESS;
}

/// MPI_Comm_dup and MPI_Comm_dup_with_info.
template <class Call>
int duplicate(const char* procedure, MPI_Comm comm, MPI_Comm* newcomm, Call call) {
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return call(newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    return construct(duplicate_of(procedure, *parent), newcomm, call);
}

/// Holds a communicator, also where a procedure of the program's that deletes an attribute throws.
class CommunicatorHold {
  public:
    explicit CommunicatorHold(Communicator& comm) : comm_(comm) {
        Guard guard;
        hold(comm_);
    }
    ~CommunicatorHold() {
        Guard guard;
        release(comm_);
    }
    CommunicatorHold(const CommunicatorHold&) = delete;
    CommunicatorHold& operator=(const CommunicatorHold&) = delete;

  private:
    Communicator& comm_;
};

int free_known(Communicator* known, MPI_Comm* comm, int (*free)(MPI_Comm*)) {
    const CommunicatorHold held(*known);
    finish_collectives(*known);
    finish_agreements(*known);
    bool under_way = false;
    {
        Guard guard;
        under_way = known->holders > 1;
        // The library's communicator stays as long as persistent requests are on it, because they may be started again (MPI 4.1, section
        // 7.4.3).
        known->free_later = free == real.Comm_free && known->persistent_requests > 0;
    }
    if (known->free_later) *comm = constants.comm_null;
    if (under_way && !known->free_later) {
        std::shared_ptr<const Heir> heir = heir_of_handler(*comm);
        Guard guard;
        known->heir = std::move(heir);
    }
    const int code = known->free_later ? MPI_SUCCESS : free(comm);
    if (code == MPI_SUCCESS) {
        unequip(*known);
        forget_partitioned(*known);
        forget(*known);
    }
    return code;
}

int free_communicator(MPI_Comm* comm, int (*free)(MPI_Comm*)) {
    Communicator* known = find_communicator(*comm);
    if (!known) return free(comm);
    const int code = free_known(known, comm, free);
    close_unused_realms();
    return code;
}

}  // namespace

void finish_duplications(Communicator& parent, const char* procedure) {
#if defined(OPEN_MPI)
    auto under_way = [&] {
        Guard guard;
        return std::ranges::any_of(process.duplications->under_way,
                                   [&](const Duplication* each) { return each->is_made_from(parent); });
    };
    WaitScope waiting(procedure, MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    while (under_way()) {
        progress();
        backoff.pause();
    }
#else
    static_cast<void>(parent);
    static_cast<void>(procedure);
#endif
}

int Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
    return duplicate("MPI_Comm_dup", comm, newcomm,
                     [&](MPI_Comm* made) { return real.Comm_dup(comm, made); });
}
int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
    const HintsForLibrary hints(info);
    return duplicate("MPI_Comm_dup_with_info", comm, newcomm,
                     [&](MPI_Comm* made) { return real.Comm_dup_with_info(comm, hints.get(), made); });
}
int Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
    return idup("MPI_Comm_idup", comm, newcomm, request,
                [&](MPI_Comm* made, MPI_Request* started) { return real.Comm_idup(comm, made, started); });
}
int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
    const HintsForLibrary hints(info);
    return idup("MPI_Comm_idup_with_info", comm, newcomm, request, [&](MPI_Comm* made, MPI_Request* started) {
        return real.Comm_idup_with_info(comm, hints.get(), made, started);
    });
}

int Comm_set_info(MPI_Comm comm, MPI_Info info) {
    const HintsForLibrary hints(info);
    return real.Comm_set_info(comm, hints.get());
}

int Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPI_Comm_create";
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return real.Comm_create(comm, group, newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    auto call = [&](MPI_Comm* made) { return real.Comm_create(comm, group, made); };
    if (group == constants.group_null) return construct_none(procedure, *parent, newcomm, call);
    if (parent->inter) return create_inter_sealed(*parent, procedure, group, newcomm);
    return construct(
        begin_construction(procedure, *parent, {numbers_of(group, realm_of(parent->members)), {}}), newcomm,
        call);
}

int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPI_Comm_create_group";
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return real.Comm_create_group(comm, group, tag, newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    auto call = [&](MPI_Comm* made) { return real.Comm_create_group(comm, group, tag, made); };
    if (group == constants.group_null) return construct_none(procedure, *parent, newcomm, call);
    const std::vector<std::int32_t> members = numbers_of(group, realm_of(parent->members));
    *newcomm = constants.comm_null;
    const int met = progress_barrier(members, with_tag(parent->context, tag));
    // Open MPI 5 says that a part of a grid is a grid too. It says so to plain programs as well, so that is not compared.
    std::optional<Topology> none = Topology{};
    int kind = MPI_UNDEFINED;
    if (!parent->inter) real.Topo_test(comm, &kind);
    if (kind != MPI_UNDEFINED) none.reset();
    Construction construction = begin_construction(procedure, *parent, {members, {}}, std::move(none),
                                                   std::string(procedure) + " " + std::to_string(tag));
    construction.by_all = false;
    return construct_after(met, std::move(construction), newcomm, call);
}

int Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPI_Comm_split";
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return real.Comm_split(comm, color, key, newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    if (!parent->crosses)
        return split_in_node(procedure, *parent, newcomm,
                             [&](MPI_Comm* made) { return real.Comm_split(comm, color, key, made); });
    if (color < 0 && color != MPI_UNDEFINED) return raise(parent, MPI_ERR_ARG);
    return parent->inter ? split_inter_sealed(*parent, procedure, color, key, newcomm)
                         : split_sealed(*parent, procedure, color, key, newcomm);
}

int Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPI_Comm_split_type";
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return real.Comm_split_type(comm, split_type, key, info, newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    const HintsForLibrary hints(info);
    if (!parent->crosses) {
        const int code = split_in_node(procedure, *parent, newcomm, [&](MPI_Comm* made) {
            return real.Comm_split_type(comm, split_type, key, hints.get(), made);
        });
        hints.give_answer("mpi_hw_resource_type");
        return code;
    }
    *newcomm = constants.comm_null;
    TypeDivision division;
    finish_duplications(*parent, procedure);
    const int divided = divide_by_type(*parent, split_type, key, info, division);
    MPI_Comm on_node = constants.comm_null;
    auto* split = parent->inter ? split_inter_by : split_by;
    if (int code = construct_learned(procedure, *parent, divided, &on_node,
                                     [&] { return split(*parent, procedure, division.parts, &on_node); });
        code != MPI_SUCCESS)
        return code;
    *newcomm = on_node;
    if (!division.finer || on_node == constants.comm_null) return MPI_SUCCESS;
    // Finer kinds (hardware resources) divide a node: there the library's own exchange stays on the node.
    const int code = split_in_node(
        "MPI_Comm_split_type finer", *find_communicator(on_node), newcomm,
        [&](MPI_Comm* made) { return real.Comm_split_type(on_node, split_type, key, hints.get(), made); });
    Comm_free(&on_node);
    return code;
}

int Comm_free(MPI_Comm* comm) {
    return free_communicator(comm, real.Comm_free);
}
int Comm_disconnect(MPI_Comm* comm) {
    Communicator* known = find_communicator(*comm);
    if (!known) return real.Comm_disconnect(comm);
    // Open MPI's waits for all members inside the library (M5), for a rank with an integrity error, too (S8).
    const int met = progress_barrier(*known);
    if (is_failure(met)) return raise(known, met);
    const auto handler = met == MPI_SUCCESS ? nullptr : heir_of_handler(*comm);
    int code = MPI_SUCCESS;
    {
        WaitScope waiting("MPI_Comm_disconnect", MPI_ANY_SOURCE, MPI_ANY_TAG);
        code = free_communicator(comm, real.Comm_disconnect);
    }
    if (met == MPI_SUCCESS || code != MPI_SUCCESS) return code;
    return handler ? raise_on(handler->comm, met, "MPI_Comm_disconnect") : met;
}

}  // namespace mpisec::shim
