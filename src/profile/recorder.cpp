#include "profile/recorder.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace mpisec::profile {
namespace {

struct Sum {
    std::uint64_t calls = 0, bytes = 0;
};

/// Sizes of one eighth of an octave are counted together.
unsigned bin(std::uint64_t bytes) {
    if (bytes < 16) return static_cast<unsigned>(bytes);
    const auto width = static_cast<unsigned>(std::bit_width(bytes));
    return width * 8 + static_cast<unsigned>(bytes >> (width - 4) & 7);
}

using Clock = std::chrono::steady_clock;
using Members = std::vector<int>;  ///< world ranks, in rank order; -1: of another world

/// A persistent request.
struct Prepared {
    std::string what;
    std::uint64_t bytes;
    std::optional<int> dest;  ///< none: a collective
    MPI_Comm comm;
};

/// All that is counted. Under `mutex`.
struct Recorder {
    std::mutex mutex;
    bool on = false;
    int rank = 0, size = 0;
    Clock::time_point began;
    std::map<MPI_Comm, Members> comms;
    std::map<MPI_Win, Members> wins;
    std::map<Members, int> groups;                                ///< numbered as they come
    std::map<std::tuple<std::string, int, unsigned>, Sum> sends;  ///< by traffic, world rank, bin
    std::map<std::tuple<std::string, int, unsigned>, Sum> calls;  ///< by collective, group, bin
    std::map<std::tuple<int, unsigned>, Sum> gets;                ///< by world rank, bin
    std::map<MPI_Request, Prepared> requests;
    std::map<std::string, std::uint64_t> others;
};

Recorder& recorder() {
    static Recorder* one = new Recorder;  // MPI may be called from destructors of static variables
    return *one;
}

thread_local int depth = 0;

/// The symbol in some library behind ours: also in one that a Python module has brought in for itself.
struct Search {
    const char* name;
    void* found;
};

int look_into(dl_phdr_info* object, std::size_t, void* data) {
    auto& search = *static_cast<Search*>(data);
    const std::string_view path = object->dlpi_name;
    const std::string_view file = path.substr(path.rfind('/') + 1);
    if (!file.starts_with("libmpi") || file.starts_with("libmpisec")) return 0;
    if (void* library = dlopen(object->dlpi_name, RTLD_NOLOAD | RTLD_LAZY)) {
        search.found = dlsym(library, search.name);
        dlclose(library);
    }
    return search.found != nullptr;
}

void* symbol(const char* name) {
    if (void* found = dlsym(RTLD_NEXT, name)) return found;
    Search search{name, nullptr};
    dl_iterate_phdr(look_into, &search);
    return search.found;
}

#define REAL(procedure)                                                                                  \
    ([] {                                                                                                \
        static const auto real = reinterpret_cast<decltype(&procedure)>(real_procedure("P" #procedure)); \
        return real;                                                                                     \
    }())

// Open MPI's handles are addresses of objects, whose library need not be there when this one is loaded; they are in the program
// where that was linked to have copies.
#ifdef OPEN_MPI
void* object(const char* name) {
    if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
    return real_procedure(name);
}
#define HANDLE(type, constant, name) reinterpret_cast<type>(object(name))
#else
#define HANDLE(type, constant, name) constant
#endif
MPI_Comm world() {
    return HANDLE(MPI_Comm, MPI_COMM_WORLD, "ompi_mpi_comm_world");
}
MPI_Datatype int_type() {
    return HANDLE(MPI_Datatype, MPI_INT, "ompi_mpi_int");
}
MPI_Datatype byte_type() {
    return HANDLE(MPI_Datatype, MPI_BYTE, "ompi_mpi_byte");
}
MPI_Info no_info() {
    return HANDLE(MPI_Info, MPI_INFO_NULL, "ompi_mpi_info_null");
}

Members members(MPI_Group group) {
    int size = 0;
    REAL(MPI_Group_size)(group, &size);
    Members ranks(static_cast<std::size_t>(size)), in_world(ranks.size());
    for (int i = 0; i < size; ++i) ranks[static_cast<std::size_t>(i)] = i;
    MPI_Group all{};
    REAL(MPI_Comm_group)(world(), &all);
    REAL(MPI_Group_translate_ranks)(group, size, ranks.data(), all, in_world.data());
    REAL(MPI_Group_free)(&all);
    for (int& rank : in_world)
        if (rank == MPI_UNDEFINED) rank = -1;
    return in_world;
}

/// Of an inter-communicator: the remote group, to which its ranks send.
const Members& members_of(MPI_Comm comm) {
    Recorder& all = recorder();
    const auto known = all.comms.find(comm);
    if (known != all.comms.end()) return known->second;
    int inter = 0;
    REAL(MPI_Comm_test_inter)(comm, &inter);
    MPI_Group group{};
    inter ? REAL(MPI_Comm_remote_group)(comm, &group) : REAL(MPI_Comm_group)(comm, &group);
    Members found = members(group);
    REAL(MPI_Group_free)(&group);
    return all.comms[comm] = std::move(found);
}

const Members& members_of_window(MPI_Win win) {
    Recorder& all = recorder();
    const auto known = all.wins.find(win);
    if (known != all.wins.end()) return known->second;
    MPI_Group group{};
    REAL(MPI_Win_get_group)(win, &group);
    Members found = members(group);
    REAL(MPI_Group_free)(&group);
    return all.wins[win] = std::move(found);
}

void add(Sum& sum, std::uint64_t bytes) {
    ++sum.calls;
    sum.bytes += bytes;
}

void count_send(Recorder& all, const std::string& traffic, std::uint64_t bytes, int dest, MPI_Comm comm) {
    const Members& to = members_of(comm);
    if (dest < 0 || static_cast<std::size_t>(dest) >= to.size()) return;  // MPI_PROC_NULL, or an error
    add(all.sends[{traffic, to[static_cast<std::size_t>(dest)], bin(bytes)}], bytes);
}

void count_collective(Recorder& all, const std::string& name, std::uint64_t bytes, MPI_Comm comm) {
    const Members& who = members_of(comm);
    if (who.empty() || who[0] != all.rank) return;
    const auto group = all.groups.try_emplace(who, static_cast<int>(all.groups.size())).first;
    add(all.calls[{name, group->second, bin(bytes)}], bytes);
}

std::string list(const Members& numbers) {
    std::string text;
    for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return "[" + text + "]";
}

template <class Key>
std::string rows(const std::map<Key, Sum>& sums) {
    std::string text;
    for (const auto& [key, sum] : sums) {
        std::string row = "[";
        std::apply(
            [&](const auto&... part) {
                const auto put = [&](const auto& value) {
                    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
                        row += "\"" + value + "\",";
                    else
                        row += std::to_string(value) + ",";
                };
                (put(part), ...);
            },
            key);
        text += (text.empty() ? "" : ",") + row + std::to_string(sum.calls) + "," +
                std::to_string(sum.bytes) + "]";
    }
    return "[" + text + "]";
}

/// Where ranks share memory they share a node: its lowest world rank.
int node_leader() {
    MPI_Comm node{};
    int rank = 0, leader = 0;
    REAL(MPI_Comm_rank)(world(), &rank);
    REAL(MPI_Comm_split_type)(world(), MPI_COMM_TYPE_SHARED, rank, no_info(), &node);
    leader = rank;
    REAL(MPI_Bcast)(&leader, 1, int_type(), 0, node);
    REAL(MPI_Comm_free)(&node);
    return leader;
}

std::string told(Recorder& all, int leader) {
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    const int may = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
    const std::string_view mask(reinterpret_cast<const char*>(&cpus), sizeof cpus);
    char kernel[64] = "";
    if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
        if (std::fscanf(file, "%63[0-9a-f-]", kernel) != 1) kernel[0] = 0;
        (void)std::fclose(file);  // it was only read
    }
    std::vector<std::string> groups(all.groups.size());
    for (const auto& [who, number] : all.groups) groups[static_cast<std::size_t>(number)] = list(who);
    std::string text, other;
    for (const std::string& group : groups) text += (text.empty() ? "" : ",") + group;
    for (const auto& [what, count] : all.others)
        other += (other.empty() ? "\"" : ",\"") + what + "\": " + std::to_string(count);
    const double seconds = std::chrono::duration<double>(Clock::now() - all.began).count();
    return "{\"rank\": " + std::to_string(all.rank) + ", \"host\": \"" + host +
           "\", \"node\": " + std::to_string(leader) + ", \"cpus\": " + std::to_string(may) +
           ", \"cpu_set\": \"" + kernel + " " + std::to_string(std::hash<std::string_view>{}(mask)) +
           "\", \"seconds\": " + std::to_string(seconds) + ", \"sends\": " + rows(all.sends) +
           ", \"gets\": " + rows(all.gets) + ", \"collectives\": " + rows(all.calls) + ", \"groups\": [" +
           text + "], \"unpredicted\": {" + other + "}}";
}

/// Rank 0 writes a list of what all ranks tell, one after the other: together that may be more than an int counts.
void write_file(const char* path, const std::string& mine, const std::vector<int>& lengths, MPI_Comm comm) {
    std::FILE* file = std::fopen(path, "w");
    bool written = file != nullptr;
    std::string text = mine;
    for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
        const int length = lengths[rank];
        if (rank > 0) {
            text.resize(static_cast<std::size_t>(length));
            REAL(MPI_Recv)
            (text.data(), length, byte_type(), static_cast<int>(rank), 0, comm, MPI_STATUS_IGNORE);
        }
        if (!file) continue;
        std::fputs(rank > 0 ? ",\n" : "[\n", file);
        written = std::fwrite(text.data(), 1, text.size(), file) == text.size() && written;
    }
    if (file) std::fputs("\n]\n", file);
    if (file && std::fclose(file) != 0) written = false;
    if (!written) std::fprintf(stderr, "mpisec profile: cannot write %s\n", path);
}

template <class Count>
std::uint64_t mean(const Count* counts, const MPI_Datatype* types, std::size_t step, MPI_Comm comm) {
    std::lock_guard lock(recorder().mutex);
    const std::size_t size = members_of(comm).size();
    if (!counts || !types || size == 0) return 0;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < size; ++i)
        sum += bytes_of(static_cast<std::uint64_t>(counts[i]), types[i * step]);
    return sum / size;
}

template <class Count>
std::uint64_t own(const Count* counts, MPI_Datatype type, MPI_Comm comm) {
    int rank = 0;
    REAL(MPI_Comm_rank)(comm, &rank);
    return counts ? bytes_of(static_cast<std::uint64_t>(counts[rank]), type) : 0;
}

}  // namespace

Call::Call() : outermost_(depth++ == 0 && recorder().on) {}

Call::~Call() {
    --depth;
}

void* real_procedure(const char* name) {
    if (void* found = symbol(name)) return found;
    std::fprintf(stderr, "mpisec profile: the MPI library has no %s\n", name);
    std::_Exit(EXIT_FAILURE);
}

std::uint64_t bytes_of(std::uint64_t count, MPI_Datatype type) {
    MPI_Count size = 0;
    if (count == 0 || REAL(MPI_Type_size_x)(type, &size) != MPI_SUCCESS || size < 0) return 0;
    return count * static_cast<std::uint64_t>(size);
}

void sent(const char* traffic, std::uint64_t bytes, int dest, MPI_Comm comm) {
    std::lock_guard lock(recorder().mutex);
    count_send(recorder(), traffic, bytes, dest, comm);
}

void accessed(std::uint64_t there, std::uint64_t back, int target, MPI_Win win) {
    Recorder& all = recorder();
    std::lock_guard lock(all.mutex);
    const Members& who = members_of_window(win);
    if (target < 0 || static_cast<std::size_t>(target) >= who.size()) return;
    const int world_rank = who[static_cast<std::size_t>(target)];
    add(all.sends[{"one_sided", world_rank, bin(there)}], there);
    if (back > 0) add(all.gets[{world_rank, bin(back)}], back);
}

void collective(const char* name, std::uint64_t bytes, MPI_Comm comm) {
    std::lock_guard lock(recorder().mutex);
    count_collective(recorder(), name, bytes, comm);
}

void prepared(const char* what, std::uint64_t bytes, int dest, MPI_Comm comm, const MPI_Request* request) {
    std::lock_guard lock(recorder().mutex);
    recorder().requests[*request] = {what, bytes, dest, comm};
}

void prepared(const char* what, std::uint64_t bytes, MPI_Comm comm, const MPI_Request* request) {
    std::lock_guard lock(recorder().mutex);
    recorder().requests[*request] = {what, bytes, std::nullopt, comm};
}

void started(int count, const MPI_Request* requests) {
    Recorder& all = recorder();
    std::lock_guard lock(all.mutex);
    for (int i = 0; i < count; ++i) {
        const auto known = all.requests.find(requests[i]);
        if (known == all.requests.end()) continue;
        const Prepared& it = known->second;
        it.dest ? count_send(all, it.what, it.bytes, *it.dest, it.comm)
                : count_collective(all, it.what, it.bytes, it.comm);
    }
}

void unpredicted(const char* what) {
    std::lock_guard lock(recorder().mutex);
    ++recorder().others[what];
}

void request_freed(const MPI_Request* request) {
    std::lock_guard lock(recorder().mutex);
    if (request) recorder().requests.erase(*request);
}

void comm_freed(const MPI_Comm* comm) {
    std::lock_guard lock(recorder().mutex);
    if (comm) recorder().comms.erase(*comm);
}

void win_freed(const MPI_Win* win) {
    std::lock_guard lock(recorder().mutex);
    if (win) recorder().wins.erase(*win);
}

void begin() {
    Recorder& all = recorder();
    REAL(MPI_Comm_rank)(world(), &all.rank);
    REAL(MPI_Comm_size)(world(), &all.size);
    all.began = Clock::now();
    all.on = true;
    if (all.rank == 0) std::fputs("mpisec profile: a plain run, in which nothing is sealed\n", stderr);
}

void end() {
    Recorder& all = recorder();
    const char* path = std::getenv("MPISEC_PROFILE");
    if (!all.on || !path) return;
    all.on = false;
    const std::string mine = told(all, node_leader());
    const int length = static_cast<int>(mine.size());
    const bool root = all.rank == 0;
    MPI_Comm own{};  // without the messages and attributes of the program
    REAL(MPI_Comm_split)(world(), 0, all.rank, &own);
    std::vector<int> lengths(root ? static_cast<std::size_t>(all.size) : 0);
    REAL(MPI_Gather)(&length, 1, int_type(), lengths.data(), 1, int_type(), 0, own);
    if (root)
        write_file(path, mine, lengths, own);
    else
        REAL(MPI_Send)(mine.data(), length, byte_type(), 0, 0, own);
    REAL(MPI_Comm_free)(&own);
}

std::uint64_t mean_bytes(const int* counts, MPI_Datatype type, MPI_Comm comm) {
    return mean(counts, &type, 0, comm);
}
std::uint64_t mean_bytes(const int* counts, const MPI_Datatype* types, MPI_Comm comm) {
    return mean(counts, types, 1, comm);
}
std::uint64_t own_bytes(const int* counts, MPI_Datatype type, MPI_Comm comm) {
    return own(counts, type, comm);
}
#if MPI_VERSION >= 4
std::uint64_t mean_bytes(const MPI_Count* counts, MPI_Datatype type, MPI_Comm comm) {
    return mean(counts, &type, 0, comm);
}
std::uint64_t mean_bytes(const MPI_Count* counts, const MPI_Datatype* types, MPI_Comm comm) {
    return mean(counts, types, 1, comm);
}
std::uint64_t own_bytes(const MPI_Count* counts, MPI_Datatype type, MPI_Comm comm) {
    return own(counts, type, comm);
}
#endif

}  // namespace mpisec::profile
