#include "shim/p2p/peer_state.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <tuple>
#include <vector>

#include "shim/p2p/realms.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

// Keys of at most this many directions are kept ready; beyond, the one used longest ago is dropped and
// derived again when needed.
constexpr std::size_t most_ready_keys = 4096;

// Address space is set aside for so many processes of further realms, so that what is kept of one never moves;
// and in a session before MPI_Init, for so many of MPI_COMM_WORLD.
constexpr std::size_t room_for_others = 1 << 20, room_for_world = 1 << 16;

}  // namespace

/// Which numbers are in use: below `world` those of MPI_COMM_WORLD, from `others` to `end` all others. None is
/// used again, so that what is still noted about a process that is gone is not taken for another's.
struct PeerNumbers {
    std::size_t world = 0, others = 0, end = 0, room = 0;
};

namespace {

/// Calls it with the state of each direction.
template <class Visit>
void for_each_pair(Visit visit) {
    if (!peer_send_states) return;
    const PeerNumbers& numbers = *process.peer_numbers;
    for (std::size_t i = 0; i < numbers.end; ++i) {
        if (i == numbers.world) i = numbers.others;
        if (i < numbers.end) visit(peer_send_states[i], peer_receive_states[i]);
    }
}

void drop(EpochKeys*& keys) {
    if (!keys) return;
    delete keys;
    keys = nullptr;
    --process.ready_keys;
}

/// A full sweep over all pairs, but only after thousands of pairs came into use: drops the older half.
void drop_oldest() {
    std::uint64_t sum = 0, pairs = 0;
    auto each = [&](auto&& visit) {
        for_each_pair([&](PeerSendState& out, PeerReceiveState& in) {
            if (out.keys) visit(out.last_use, out.keys, out.keys);
            if (in.keys[0] || in.keys[1]) visit(in.last_use, in.keys[0], in.keys[1]);
        });
    };
    each([&](std::uint64_t last_use, EpochKeys*&, EpochKeys*&) {
        sum += last_use;
        ++pairs;
    });
    const std::uint64_t mean = pairs ? sum / pairs : 0;
    each([&](std::uint64_t last_use, EpochKeys*& first, EpochKeys*& second) {
        if (last_use > mean) return;
        drop(first);
        drop(second);
    });
}

EpochKeys* derive(std::int32_t number, std::int32_t source, std::int32_t destination, std::uint32_t epoch) {
    const Realm& realm = realm_of(number);
    if (!realm.job_secret) abort_job("a message was to be sealed after MPI_Finalize had wiped the keys");
    if (process.ready_keys >= most_ready_keys) drop_oldest();
    keys::PairSecret secret = keys::pair_secret(*realm.job_secret, source, destination, epoch);
    ++process.ready_keys;
    return new EpochKeys{epoch, aead::KeySet(state.world.selection, secret.aead.data()),
                         std::move(secret.message)};
}

template <class T>
T* set_aside(std::size_t room) {
    void* memory =
        mmap(nullptr, room * sizeof(T), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort_job("there is no address space for the state of the other ranks");
    return static_cast<T*>(memory);
}

/// Makes those from `begin` to `end`, whose memory is as it was set aside or was used before.
template <class T>
void make(T* table, std::size_t begin, std::size_t end) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<std::uintptr_t>(table + begin) / page * page;
    const auto to = reinterpret_cast<std::uintptr_t>(table + end);
    if (end > begin && mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE) != 0)
        abort_job("there is no memory for the state of the other ranks");
    for (std::size_t i = begin; i < end; ++i) new (table + i) T();
}

void make_all(std::size_t begin, std::size_t end) {
    make(peer_send_states, begin, end);
    make(peer_receive_states, begin, end);
    make(process.peer_facts, begin, end);
}

/// Before MPI_Init, in a session, MPI_COMM_WORLD has no processes yet.
void set_tables_aside(bool world) {
    PeerNumbers& numbers = *process.peer_numbers;
    numbers.others = world ? static_cast<std::size_t>(state.world.size) : room_for_world;
    numbers.end = numbers.others;
    numbers.room = numbers.others + room_for_others;
    process.peer_facts = set_aside<PeerFacts>(numbers.room);
    peer_receive_states = set_aside<PeerReceiveState>(numbers.room);
    peer_send_states = set_aside<PeerSendState>(numbers.room);
}

}  // namespace

void make_peer_states() {
    PeerNumbers& numbers = *process.peer_numbers;
    const auto size = static_cast<std::size_t>(state.world.size);
    if (numbers.world > 0) return;
    if (!peer_send_states) set_tables_aside(true);
    if (size > numbers.others)
        abort_job(
            "MPI_COMM_WORLD has more ranks than a program may have that makes a session before MPI_Init");
    make_all(0, size);
    numbers.world = size;
    const auto& [node, same_node] = std::tie(state.world.node, state.world.same_node);
    for (std::size_t rank = 0; rank < size; ++rank)
        process.peer_facts[rank] = {&state.world, rank < node.size() ? node[rank] : 0,
                                    rank < same_node.size() && same_node[rank] != 0};
    name_peers(state.world);
}

std::int32_t add_peers(int count) {
    if (!peer_send_states) set_tables_aside(false);
    PeerNumbers& numbers = *process.peer_numbers;
    const auto n = static_cast<std::size_t>(count);
    const std::size_t first = numbers.end;
    if (first + n > numbers.room)
        abort_job("this process has met more processes in other worlds and sessions than MPIsec can number");
    make_all(first, first + n);
    numbers.end += n;
    return static_cast<std::int32_t>(first);
}

void wipe_keys(const Realm& realm) {
    for (std::int32_t number = realm.first; number < realm.first + realm.size; ++number) {
        drop(peer_send_states[number].keys);
        drop(peer_receive_states[number].keys[0]);
        drop(peer_receive_states[number].keys[1]);
        peer_receive_states[number].replay = {};
    }
}

void name_peers(const Realm& realm) {
    for (int rank = 0; rank < realm.size; ++rank) {
        PeerSendState& out = peer_send_states[realm.first + rank];
        PeerReceiveState& in = peer_receive_states[realm.first + rank];
        out.number = in.number = realm.first + rank;
        out.source = in.destination = realm.rank;
        out.destination = in.source = rank;
    }
}

void renew_keys(PeerSendState& pair) {
    if (pair.next_counter.load(std::memory_order_relaxed) > wire::max_counter - state.settings.rekey_messages)
        abort_job("as many messages were sent to world rank " + std::to_string(pair.destination) +
                  " as the protocol can count (2^48)");
    if (pair.epoch_messages >= state.settings.rekey_messages ||
        pair.epoch_bytes >= state.settings.rekey_bytes) {
        if (pair.epoch == wire::max_epoch)
            abort_job("the keys for world rank " + std::to_string(pair.destination) +
                      " were renewed as often as the protocol allows; raise MPISEC_REKEY_MESSAGES or "
                      "MPISEC_REKEY_BYTES");
        ++pair.epoch;
        pair.epoch_messages = pair.epoch_bytes = 0;
        drop(pair.keys);
    }
    if (!pair.keys) pair.keys = derive(pair.number, pair.source, pair.destination, pair.epoch);
}

EpochKeys* other_keys_of_epoch(PeerReceiveState& pair, std::uint32_t epoch) {
    if (pair.keys[1] && pair.keys[1]->epoch == epoch) return pair.keys[1];
    // A forged epoch costs a derivation, no more: the newest epoch is only believed once a message of it has
    // opened.
    EpochKeys* keys = derive(pair.number, pair.source, pair.destination, epoch);
    drop(pair.keys[1]);
    pair.keys[1] = keys;
    return keys;
}

std::uint64_t sent_to(std::int32_t world_rank) {
    return peer_send_states ? peer_send_states[world_rank].sent : 0;
}

std::uint64_t opened_from(std::int32_t world_rank) {
    return peer_receive_states ? peer_receive_states[world_rank].opened : 0;
}

std::size_t replay_runs() {
    std::size_t runs = 0;
    for_each_pair([&](const PeerSendState&, const PeerReceiveState& in) { runs += in.replay.runs(); });
    return runs;
}

void forget_peer_states() {
    for_each_pair([](PeerSendState& out, PeerReceiveState& in) {
        drop(out.keys);
        drop(in.keys[0]);
        drop(in.keys[1]);
        in.~PeerReceiveState();
    });
    PeerNumbers& numbers = *process.peer_numbers;
    if (peer_send_states) {
        munmap(peer_send_states, numbers.room * sizeof(PeerSendState));
        munmap(peer_receive_states, numbers.room * sizeof(PeerReceiveState));
        munmap(process.peer_facts, numbers.room * sizeof(PeerFacts));
    }
    peer_send_states = nullptr;
    peer_receive_states = nullptr;
    process.peer_facts = nullptr;
    numbers = {};
}

}  // namespace mpisec::shim
