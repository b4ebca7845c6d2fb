// MPI_Comm_split_type between nodes. Types that divide a node are left to the MPI library, inside the node. Whether the
// ranks asked for the same, and whether their nodes share a directory (MPICH's neighbourhoods), is found out under seal.
#include "shim/communicators/split_type.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "keys/hkdf.hpp"
#include "keys/secret.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

constexpr const char* comm_split_type = "MPI_Comm_split_type";

/// What one rank asks for.
struct Wish {
    std::int32_t type, key;
    std::uint8_t hints[16];  ///< hash of the values that all ranks must give alike; zeros: none was given
};

bool has_hints(const Wish& wish) {
    return std::ranges::any_of(wish.hints, [](std::uint8_t byte) { return byte != 0; });
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/// The value of a hint; empty when it was not given.
std::string hint(MPI_Info info, const char* key) {
    if (info == constants.info_null) return "";
    std::string value(MPI_MAX_INFO_VAL + 1, '\0');
    int found = 0;
    if (real.Info_get(info, key, MPI_MAX_INFO_VAL, value.data(), &found) != MPI_SUCCESS || !found) return "";
    // NOLINTNEXTLINE(readability-redundant-string-cstr): MPI ends the value with a zero, within the string
    return value.c_str();
}
#pragma GCC diagnostic pop

[[maybe_unused]] int mpi_version() {  // used with MPICH's own ABI only
    int major = 0, minor = 0;
    real.Get_version(&major, &minor);
    return 10 * major + minor;
}

/// MPICH's MPIX_COMM_TYPE_NEIGHBORHOOD, whose number changed when MPI 4.1 took the old number.
bool is_neighborhood(int type) {
#ifdef MPIX_COMM_TYPE_NEIGHBORHOOD
    return mpi_version() >= 40 && type == (mpi_version() > 40 ? MPIX_COMM_TYPE_NEIGHBORHOOD : 4);
#else
    (void)type;
    return false;
#endif
}

bool is_unguided(int type) {
    // MPI_Isendrecv is a procedure of MPI 4: Open MPI 5 has the type, but says that it is MPI 3.1.
    return real.Isendrecv && type == MPI_COMM_TYPE_HW_UNGUIDED;
}

/// Tells the program what MPI_COMM_TYPE_HW_UNGUIDED found, in words that MPI_COMM_TYPE_HW_GUIDED takes.
void say_node(MPI_Info info) {
#ifdef OPEN_MPI
    constexpr const char* node = "mpi_shared_memory";
#else
    constexpr const char* node = "node";
#endif
    if (info != constants.info_null) real.Info_set(info, "mpi_hw_resource_type", node);
}

Wish wish_of(int type, int key, MPI_Info info) {
    Wish wish{type, key, {}};
    std::string bytes;
    std::vector<const char*> names;
    if (is_neighborhood(type))
        names = {"nbhd_common_dirname"};
    else if (type != MPI_COMM_TYPE_SHARED && type != MPI_UNDEFINED)
        names = {"mpi_hw_resource_type", "mpi_pset_name"};
    for (const char* name : names)
        if (const std::string value = hint(info, name); !value.empty())
            bytes.append(name).append("=").append(value).push_back('\0');
    if (bytes.empty()) return wish;
    const keys::Digest digest = keys::sha256(keys::as_bytes(bytes));
    std::copy_n(digest.begin(), sizeof wish.hints, wish.hints);
    return wish;
}

/// The ranks that take part, of both groups.
Ranks ranks_of(const Communicator& parent) {
    return parent.inter ? parent.collective_context->members() : Ranks(parent.members);
}

/// `all`: by rank among those that take part.
template <class Item>
int gather(Communicator& parent, const Item& mine, std::vector<Item>& all) {
    all.resize(ranks_of(parent).size());
    return run_unraised(
        parent.inter ? plan::Allgather_of_both(comm_split_type, &mine, sizeof mine, all.data(), parent.handle)
                     : plan::Allgather(comm_split_type, &mine, sizeof mine, constants.byte, all.data(),
                                       sizeof mine, constants.byte, parent.handle));
}

/// Whether all ranks that ask can see a file that the first of them makes in `directory`.
int ask_directory(Communicator& parent, const std::vector<Wish>& wishes, const std::string& directory,
                  bool& shared) {
    struct Name {
        std::uint64_t number;
        std::int32_t error;
        std::int32_t zero;
    };
    const auto asks = [](const Wish& wish) { return wish.type != MPI_UNDEFINED; };
    const auto first = static_cast<std::size_t>(std::ranges::find_if(wishes, asks) - wishes.begin());
    const Ranks ranks = ranks_of(parent);
    const auto me =
        static_cast<std::size_t>(std::ranges::find(ranks, own_number(parent.members)) - ranks.begin());
    auto path = [&](std::uint64_t number) { return directory + "/.mpisec-" + std::to_string(number); };
    Name mine{};
    if (me == first) {
        keys::random_bytes(&mine.number, sizeof mine.number);
        const int file = ::open(path(mine.number).c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (file < 0) mine.error = errno;
        if (file >= 0) close(file);
    }
    std::vector<Name> names;
    const int named = gather(parent, mine, names);
    const bool sees =
        named == MPI_SUCCESS && asks(wishes[me]) && access(path(names[first].number).c_str(), F_OK) == 0;
    std::vector<std::int32_t> seen;
    // Also where the names did not come: the others are in this gather.
    const int told = gather(parent, std::int32_t{sees}, seen);
    if (me == first && mine.error == 0) unlink(path(mine.number).c_str());
    if (named != MPI_SUCCESS || told != MPI_SUCCESS) return named != MPI_SUCCESS ? named : told;
    if (names[first].error != 0) return MPI_ERR_NO_SUCH_FILE;
    shared = true;
    for (std::size_t rank = 0; rank < seen.size(); ++rank)
        shared = shared && (seen[rank] || !asks(wishes[rank]));
    return MPI_SUCCESS;
}

void all_of_no_color(TypeDivision& division) {
    for (ColorAndKey& part : division.parts) part.color = MPI_UNDEFINED;
}

}  // namespace

int divide_by_type(Communicator& parent, int type, int key, MPI_Info info, TypeDivision& division) {
    std::vector<Wish> wishes;
    if (int code = gather(parent, wish_of(type, key, info), wishes); code != MPI_SUCCESS) return code;
    const Wish* asked = nullptr;
    bool alike = true;
    for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
        const Wish& wish = wishes[rank];
        const bool none = wish.type == MPI_UNDEFINED;
        const int node = facts_of(ranks_of(parent)[rank]).node;
        division.parts.push_back({none ? MPI_UNDEFINED : node, wish.key});
        if (none) continue;
        if (asked && asked->type != wish.type) return MPI_ERR_ARG;
        if (asked && std::memcmp(asked->hints, wish.hints, sizeof wish.hints) != 0) alike = false;
        if (!asked) asked = &wish;
    }
    // The node is the largest part that the hardware makes.
    if (is_unguided(type)) say_node(info);
    if (!asked || asked->type == MPI_COMM_TYPE_SHARED || is_unguided(asked->type)) return MPI_SUCCESS;
    if (!alike || (is_neighborhood(asked->type) && !has_hints(*asked))) {
        all_of_no_color(division);
        return MPI_SUCCESS;
    }
    if (!is_neighborhood(asked->type)) {
        division.finer = true;
        return MPI_SUCCESS;
    }
    bool shared = false;
    if (int code = ask_directory(parent, wishes, hint(info, "nbhd_common_dirname"), shared);
        code != MPI_SUCCESS)
        return code;
    for (ColorAndKey& part : division.parts)
        if (shared && part.color != MPI_UNDEFINED) part.color = 0;
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim
