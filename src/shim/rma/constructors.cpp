// Windows that cross nodes: how their ranks make one together.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "fabric/node_memory.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/entry.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/stats.hpp"

namespace mpisec::shim::rma {
namespace {

/// Makes a communicator for the window's messages alone, which the program does not see. Returns an error code that was not raised: the
/// program's handler may leave the constructor by an exception, in which the other ranks would wait for this one.
int make_private(const char* procedure, Communicator& parent, MPI_Comm* made) {
    MPI_Group group;
    if (int code = real.Comm_group(parent.handle, &group); code != MPI_SUCCESS) return code;
    Construction construction = begin_construction(procedure, parent, membership_of(parent));
    construction.raises = false;
    const int code = construct(std::move(construction), made, [&](MPI_Comm* copy) {
        const ErrorsReturned errors(parent.handle);
        return real.Comm_create(parent.handle, group, copy);
    });
    real.Group_free(&group);
    if (code != MPI_SUCCESS) return code;
    real.Comm_set_errhandler(*made, constants.errors_return);
    find_communicator(*made)->traffic = traffic_of_collective(procedure);
    return MPI_SUCCESS;
}

/// One rank's part of a window that is being made.
struct Making {
    Communicator& parent;
    /// the window's private communicator, which this rank may have failed to make
    MPI_Comm own = constants.comm_null;
    int learned = MPI_SUCCESS;         ///< the first error of this rank's that no `part` tells the others
    MPI_Win win = constants.win_null;  ///< the library's window, of this process alone
    Part part{};
    WindowMemory memory{};
    /// shared memory that holds this rank's part and those of other ranks of its node
    std::optional<fabric::SharedSegment> segment{};
    std::string segment_name{};
    AllocatedMemory allocated{};
    std::vector<std::uint8_t*> near{};  ///< each rank's memory, behind its lock; null: not in `segment`

    void note(int code) {
        if (learned == MPI_SUCCESS) learned = code;
    }
};

/// The ranks tell each other of their parts, on the communicator that the window is made from: each of them has that. What fails on one rank
/// fails on all, so that no rank waits in a window that another rank does not have (S8).
AllLearned exchange_parts(const char* procedure, Making& mine, std::vector<Part>& parts) {
    if (is_failure(mine.learned)) return {mine.learned, MPI_SUCCESS};
    mine.note(run_unraised(plan::Allgather(procedure, &mine.part, sizeof(Part), constants.byte, parts.data(),
                                           sizeof(Part), constants.byte, mine.parent.handle)));
    AllLearned all = tell_learned(procedure, mine.parent, mine.learned);
    if (all.code == MPI_SUCCESS) all.code = mine.part.code;
    for (const Part& part : parts)
        if (all.code == MPI_SUCCESS) all.code = part.code;
    return all;
}

/// Builds a window: `make` makes this rank's part once the ranks have tried to make the private communicator. If no window can be made, gives
/// back what was made of it and returns the error code without raising it.
template <class Make>
int build_window(const char* procedure, Making& mine, Make make, std::shared_ptr<Window>& window) {
    make(mine);
    std::vector<Part> parts(static_cast<std::size_t>(mine.parent.size));
    const AllLearned all = exchange_parts(procedure, mine, parts);
    const bool has_win = mine.win != constants.win_null && mine.part.code == MPI_SUCCESS;
    // Not all ranks of the node may have come for it.
    if (mine.segment && (all.code != MPI_SUCCESS || all.told != MPI_SUCCESS))
        mine.segment->forget(mine.segment_name);
    if (all.code != MPI_SUCCESS) {
        if (has_win) real.Win_free(&mine.win);
        if (mine.own != constants.comm_null) free_private(mine.own);
        return all.code;
    }
    window = std::make_shared<Window>(mine.win, mine.own, *find_communicator(mine.own),
                                      std::move(mine.memory), parts);
    for (std::size_t i = 0; i < mine.near.size(); ++i)
        window->targets[i].near = parts[i].shared ? mine.near[i] : nullptr;
    window->segment = std::move(mine.segment);
    window->allocated = std::move(mine.allocated);
    if (all.told == MPI_SUCCESS) return MPI_SUCCESS;
    // The other ranks may have the window: it fails there, too. Its communicator stays, as that of a window that failed later.
    {
        Guard guard;
        window->fail(all.told);
    }
    window->close();
    window.reset();
    if (has_win) real.Win_free(&mine.win);
    return all.told;
}

/// Builds a window that the program gets.
template <class Make>
int make_window(const char* procedure, int flavor, MPI_Comm comm, MPI_Win* win, Make make) {
    Communicator* parent = find_communicator(comm);
    if (auto error = bad_arguments(procedure, parent, win)) return *error;
    if (parent->inter) return raise(parent, MPI_ERR_COMM);
    Making mine{.parent = *parent};
    mine.learned = make_private(procedure, *parent, &mine.own);
    std::shared_ptr<Window> window;
    if (int code = build_window(procedure, mine, make, window); code != MPI_SUCCESS)
        return raise(parent, code);
    window->flavor = flavor;
    *win = window->handle;
    remember(std::move(window));
    return MPI_SUCCESS;
}

/// Allocates memory for MPI_Win_allocate that all ranks of this node can reach, if there is enough: all of them are in
/// this call.
void allocate_shared(Making& mine) {
    constexpr std::size_t alignment = 64;
    constexpr std::int64_t longest_lock = NodeLock::bytes + alignment;
    const auto ranks = static_cast<std::size_t>(mine.parent.size);
    std::vector<std::int64_t> sizes(ranks);
    if (is_failure(mine.learned)) return;
    mine.note(run_unraised(plan::Allgather("MPI_Win_allocate", &mine.part.size, 1, constants.int64,
                                           sizes.data(), 1, constants.int64, mine.parent.handle)));
    if (mine.learned != MPI_SUCCESS) return;
    const Communicator& own = *find_communicator(mine.own);
    std::vector<std::size_t> places(ranks, SIZE_MAX);
    std::size_t bytes = 0;
    unsigned here = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
        if (!own.is_local(static_cast<int>(i)) && static_cast<int>(i) != own.rank) continue;
        if (sizes[i] < 0 || sizes[i] > PTRDIFF_MAX / own.size - longest_lock) return;
        places[i] = bytes + NodeLock::bytes;
        bytes = places[i] + (static_cast<std::size_t>(sizes[i]) + alignment - 1) / alignment * alignment;
        ++here;
    }
    if (here < 2 || bytes == here * NodeLock::bytes) return;
    // This must not be the name of the memory for the private communicator's collectives.
    wire::ContextId context = own.context;
    context[0] ^= 0xff;
    const std::string name = memory_name(context, facts_of(own_number(own.members)).node);
    auto memory = fabric::SharedSegment::attach(name, bytes, here);
    if (!memory) return;  // too little shared memory: this rank uses messages inside its node too
    mine.segment.emplace(std::move(*memory));
    mine.segment_name = name;
    mine.near.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i)
        if (places[i] != SIZE_MAX) mine.near[i] = mine.segment->bytes().data() + places[i];
    NodeLock::make(mine.near[static_cast<std::size_t>(own.rank)] - NodeLock::bytes);
    mine.part.shared = 1;
}

/// Finds arguments of MPI_Win_create and MPI_Win_allocate that MPI must refuse.
int check_part(MPI_Aint size, MPI_Aint unit) {
    if (size < 0) return MPI_ERR_SIZE;
    return unit <= 0 ? MPI_ERR_DISP : MPI_SUCCESS;
}

/// What a `part` tells of an error.
int class_of(int code) {
    return code == MPI_SUCCESS ? code : class_of_error(code);
}

/// Memory of this process alone, aligned as the program asks by MPI-4.1's hint. Null when there is not so much. (MPI_Alloc_mem would raise that
/// on another communicator than the window's.)
void* allocate(MPI_Aint size, MPI_Info info) {
    std::size_t alignment = 64;
    char text[32] = "";
    int found = 0;
    if (info != constants.info_null)
        real.Info_get(info, "mpi_minimum_memory_alignment", sizeof text - 1, text, &found);
    if (const std::size_t asked = found ? std::strtoull(text, nullptr, 10) : 0; std::has_single_bit(asked))
        alignment = std::max(alignment, asked);
    void* memory = nullptr;
    const auto bytes = std::max<std::size_t>(static_cast<std::size_t>(size), 1);
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

}  // namespace

int make_handle(MPI_Info info, MPI_Win* made) {
    void* nothing = nullptr;
    return real.Win_allocate(0, 1, info, state.private_self, &nothing, made);
}

int Win_create(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
    return make_window("MPI_Win_create", MPI_WIN_FLAVOR_CREATE, comm, win, [&](Making& mine) {
        mine.part = {size, disp_unit, check_part(size, disp_unit), 0};
        if (mine.part.code == MPI_SUCCESS) mine.part.code = class_of(make_handle(info, &mine.win));
        mine.memory = WindowMemory(base, size, disp_unit);
    });
}

int Win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                 MPI_Win* win) {
    return make_window("MPI_Win_allocate", MPI_WIN_FLAVOR_ALLOCATE, comm, win, [&](Making& mine) {
        mine.part = {size, disp_unit, check_part(size, disp_unit), 0};
        allocate_shared(mine);
        if (mine.part.code != MPI_SUCCESS) return;
        void* base = mine.part.shared ? mine.near[static_cast<std::size_t>(mine.parent.rank)] : nullptr;
        if (!base) mine.allocated.reset(base = allocate(size, info));
        mine.part.code = base ? class_of(make_handle(info, &mine.win)) : MPI_ERR_NO_MEM;
        NodeLock* lock =
            mine.part.shared ? NodeLock::at(static_cast<std::uint8_t*>(base) - NodeLock::bytes) : nullptr;
        mine.memory = WindowMemory(base, size, disp_unit, lock);
        *static_cast<void**>(baseptr) = base;
    });
}

int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
    return make_window("MPI_Win_create_dynamic", MPI_WIN_FLAVOR_DYNAMIC, comm, win, [&](Making& mine) {
        mine.part = {0, 1, class_of(make_handle(info, &mine.win)), 0};
        mine.memory = WindowMemory::dynamic();
    });
}

int make_hidden(const char* call, Communicator& parent, void* base, MPI_Aint size,
                std::shared_ptr<Window>& window) {
    Making mine{.parent = parent};
    mine.learned = make_private(call, parent, &mine.own);
    auto make = [&](Making& hidden) {
        hidden.part = {size, 1, MPI_SUCCESS, 0};
        hidden.memory = WindowMemory(base, size, 1);
    };
    if (int code = build_window(call, mine, make, window); code != MPI_SUCCESS) return code;
    window->all_held = true;
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim::rma
