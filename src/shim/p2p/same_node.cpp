#include "shim/p2p/same_node.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hex.hpp"
#include "fabric/sent_records.hpp"
#include "keys/schedule.hpp"
#include "shim/p2p/backoff.hpp"
#include "shim/p2p/same_node_check.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/pmpi/status.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/pool.hpp"
#include "shim/runtime/state.hpp"
#include "wire/content_order.hpp"

namespace mpisec::shim {
namespace {

using wire::Content, wire::ContentOrder, wire::ReceivedContent;

/// Messages that MPI keeps in order.
struct Stream {
    std::uint64_t context;
    std::int32_t tag;
    bool operator==(const Stream&) const = default;
};
struct StreamHash {
    std::size_t operator()(const Stream& stream) const {
        return stream.context ^
               static_cast<std::uint64_t>(static_cast<std::uint32_t>(stream.tag)) * 0x9E3779B97F4A7C15u;
    }
};
using Streams = std::unordered_map<Stream, ContentOrder, StreamHash>;

struct Records {
    fabric::SentRecords memory;
    ContentHash hash;              ///< for checks of messages that are too long for a record
    std::vector<Streams> streams;  ///< by node peer: records that were read but not settled
};

}  // namespace

/// Under the Guard.
struct SameNodeRecords {
    std::optional<Records> records;
    bool said_full = false;  ///< whether it has said that there is no memory for more
};

namespace {

/// Valid from open_records() to close_records(). A function should ask for it only once: every look-up counts with short messages.
Records& opened() {
    return *process.same_node_records->records;
}

constexpr std::uint64_t withdrawal = std::numeric_limits<std::uint64_t>::max();  ///< as a record's length

std::uint64_t context_of(const wire::ContextId& context) {
    std::uint64_t first;
    std::memcpy(&first, context.data(), sizeof first);
    return first;
}
/// Messages of collectives are kept apart from the user's.
Stream stream_of(const wire::ContextId& context, int tag) {
    return {~context_of(context), tag};
}

/// What a record says of a message's content.
[[gnu::always_inline]] inline void fill_check(const std::uint8_t* bytes, std::size_t n, Check& check) {
    if (n <= sizeof check) [[likely]]
        return copy_short(check, bytes, bytes ? n : 0);
    opened().hash(bytes, n, check);
}

/// The first n bytes of data at buf, in one run: the user's own, or packed.
const std::uint8_t* run_of(const Landing& at, std::size_t n, Buffer& packed) {
    if (at.facts.contiguous || n == 0) return static_cast<const std::uint8_t*>(at.buf);
    const std::size_t elements = (n + at.facts.size - 1) / at.facts.size;
    packed = Buffer(elements * at.facts.size);
    pack(at.buf, static_cast<MPI_Count>(elements), at.type, at.facts, packed.data());
    return packed.data();
}

/// Waits for the record of an announced message: MPI has the message or is about to get it, and its sender is about to leave the record. A
/// sender that still waits in MPI may need this rank to drive MPI's progress.
[[gnu::noinline]] const fabric::SentRecord* announced_record(unsigned node_peer) {
    constexpr unsigned looks = 100;
    fabric::SentRecords& memory = opened().memory;
    if (node_peer == static_cast<unsigned>(state.world.rank_on_node)) return nullptr;  // nothing is under way
    Backoff backoff;
    for (unsigned i = 0; memory.more_announced(node_peer); ++i) {
        if (const fabric::SentRecord* record = memory.first(node_peer)) return record;
        int flag = 0;
        if (i % looks == looks - 1) real.Test(&state.never, &flag, MPI_STATUS_IGNORE);
        backoff.pause_inside();
    }
    return nullptr;
}

/// The first unread record of this node peer; null when nothing was announced.
const fabric::SentRecord* next_record(unsigned node_peer) {
    const fabric::SentRecord* record = opened().memory.first(node_peer);
    return record ? record : announced_record(node_peer);
}

/// Takes every record of this node peer out of the shared memory: those that are there or, depending on `next`, also those that were
/// announced.
template <class Next>
void read_all(unsigned node_peer, Next next) {
    Records& records = opened();
    Streams& streams = records.streams[node_peer];
    while (const fabric::SentRecord* record = next(node_peer)) {
        const Stream stream{record->context, record->tag};
        if (fabric::SentRecords::withdrawn(*record)) {
            records.memory.pop(node_peer);
            continue;
        }
        if (record->bytes == withdrawal) {
            std::uint32_t number;
            std::memcpy(&number, record->check, sizeof number);
            auto found = streams.find(stream);
            if (found != streams.end()) {
                found->second.withdrawn(number);
                if (found->second.empty()) streams.erase(found);
            }
        } else {
            Content content;
            content.bytes = record->bytes;
            std::memcpy(content.check, record->check, sizeof content.check);
            streams[stream].sent(record->number.load(std::memory_order_relaxed) & fabric::record_number,
                                 content);
        }
        records.memory.pop(node_peer);
    }
}

/// For when there is no memory for another record until the node peer has read some. Keeps everything moving while it waits: the node peer
/// may wait for this rank.
[[gnu::cold, gnu::noinline]] fabric::SentRecord* wait_for_room(unsigned node_peer) {
    if (!std::exchange(process.same_node_records->said_full, true))
        say("so many messages wait on this node to be received that there is no memory for more records "
            "(MPISEC_SAME_NODE=verify): sending goes on when some were received");
    Records& records = opened();
    for (;;) {
        if (fabric::SentRecord* record = records.memory.next(node_peer)) return record;
        const auto there = [&](unsigned other) { return records.memory.first(other); };
        for (unsigned other = 0; other < records.streams.size(); ++other) read_all(other, there);
        int flag = 0;
        real.Test(&state.never, &flag, MPI_STATUS_IGNORE);
        progress();
        sched_yield();
    }
}

fabric::SentRecord& room_for_record(unsigned node_peer) {
    fabric::SentRecord* record = opened().memory.next(node_peer);
    return record ? *record : *wait_for_room(node_peer);
}

unsigned node_peer_of(std::int32_t world_rank) {
    const World& world = state.world;
    const bool consecutive = world.first_on_node >= 0;
    return static_cast<unsigned>(consecutive ? world_rank - world.first_on_node
                                             : world.topology.local(world_rank));
}
unsigned node_peer_at(const Communicator& comm, int peer) {
    return node_peer_of(comm.peer(peer));
}

void announce(unsigned node_peer) {
    room_for_record(node_peer);  // before the receiver counts on it
    opened().memory.announce(node_peer);
}

/// Leaves a record that was announced; `fill` fills in the check.
template <class Fill>
LeftRecord put(unsigned node_peer, const Stream& stream, std::uint64_t bytes, Fill fill) {
    fabric::SentRecord& record = room_for_record(node_peer);
    record.tag = stream.tag;
    record.context = stream.context;
    record.bytes = bytes;
    fill(record.check);
    return {node_peer, stream.context, stream.tag, opened().memory.publish(node_peer), &record};
}

/// Whether this is the next message of its sender, and nothing is left open: the usual case.
bool take_next(unsigned node_peer, const Stream& stream, const ReceivedContent& received) {
    Records& records = opened();
    if (!records.streams[node_peer].empty() || received.truncated) return false;
    const fabric::SentRecord* record = next_record(node_peer);
    if (!record || record->bytes != received.content.bytes || record->tag != stream.tag ||
        record->context != stream.context)
        return false;
    if (fabric::SentRecords::withdrawn(*record)) return false;
    if (!equal(record->check, received.content.check)) return false;
    records.memory.pop(node_peer);
    return true;
}

bool take_in_order(unsigned node_peer, const Stream& stream, std::uint64_t position, std::uint64_t oldest,
                   const ReceivedContent& received) {
    read_all(node_peer, next_record);
    Streams& streams = opened().streams[node_peer];
    auto found = streams.try_emplace(stream).first;
    const bool good = found->second.received(position, received, oldest);
    if (found->second.empty()) streams.erase(found);
    return good;
}

bool was_sent(const Communicator& comm, const MPI_Status& status, std::uint64_t position,
              const ReceivedContent& received) {
    const unsigned node_peer = node_peer_at(comm, status.MPI_SOURCE);
    const Stream stream{context_of(comm.context), status.MPI_TAG};
    const std::uint64_t oldest = comm.oldest_position() > position
                                     ? comm.oldest_position()
                                     : comm.oldest_position(status.MPI_SOURCE, status.MPI_TAG);
    if (position < oldest && take_next(node_peer, stream, received)) [[likely]]
        return true;
    return take_in_order(node_peer, stream, position, oldest, received);
}

/// Data that was not sent must not stay where it was received (S2).
void wipe_landing(const Landing& landing, std::size_t n) {
    if (n == 0) return;
    if (landing.facts.contiguous) {
        std::memset(landing.buf, 0, n);
        return;
    }
    Buffer zeros(n);
    std::memset(zeros.data(), 0, n);
    unpack(zeros.data(), n, landing.buf, landing.count, landing.type, landing.facts);
}

[[gnu::cold, gnu::noinline]] int reject(const Communicator& comm, const Landing& landing, std::size_t n,
                                        MPI_Status& status) {
    wipe_landing(landing, n);
    real.Status_set_elements_x(&status, constants.byte, 0);
    return report_violation(Violation::forged, comm, status.MPI_SOURCE, status.MPI_TAG,
                            "which is on this node and did not send it");
}

}  // namespace

bool verifies_same_node() {
    using SameNode = config::Settings::SameNode;
    const SameNode setting = state.settings.same_node;
    // auto: every MPI library that was examined takes messages from the network for the node's own (docs/threat-model.md, "The MPI library
    // below").
    // A rank alone on its node needs records too: an envelope may name the receiver itself.
    return (setting == SameNode::verify || setting == SameNode::automatic) && state.world.crosses_nodes;
}

void open_records() {
    if (!verifies_same_node()) return;
    const World& world = state.world;
    const auto node_peers = static_cast<unsigned>(world.ranks_on_node);
    constexpr wire::ContextId context = {'s', 'a', 'm', 'e', ' ', 'n', 'o', 'd',
                                         'e', ' ', 'r', 'e', 'c', 'o', 'r', 'd'};
    const int node = world.own_node;
    auto memory = fabric::SentRecords::attach(memory_name(context, node), node_peers,
                                              static_cast<unsigned>(world.rank_on_node));
    if (!memory) abort_job("For MPISEC_SAME_NODE=verify, " + memory.error().message + ".");
    ContentHash::require_library();
    const std::span<std::uint8_t> agreement = memory->agreement();
    process.same_node_records->records.emplace(
        Records{std::move(*memory), ContentHash(agreement), std::vector<Streams>(node_peers)});
}

void close_records() {
    process.same_node_records->records.reset();
}

void announce(const SendSpec& spec, const Communicator& comm) {
    announce(node_peer_at(comm, spec.peer));
}

void retract(const SendSpec& spec, const Communicator& comm) {
    opened().memory.retract(node_peer_at(comm, spec.peer));
}

LeftRecord leave_record(const SendSpec& spec, const Communicator& comm, const TypeFacts& facts) {
    const std::size_t n = static_cast<std::size_t>(spec.count) * facts.size;
    const Stream stream{context_of(comm.context), spec.tag};
    return put(node_peer_at(comm, spec.peer), stream, n, [&](Check& check) {
        if (facts.contiguous) return fill_check(static_cast<const std::uint8_t*>(spec.buf), n, check);
        Buffer packed;
        fill_check(run_of({const_cast<void*>(spec.buf), spec.count, spec.type, facts}, n, packed), n, check);
    });
}

void expect_record(const Communicator& comm, int peer) {
    constexpr unsigned looks = 100;  // some two microseconds, in which a rank that answers has answered
    opened().memory.expect(node_peer_at(comm, peer), looks);
}

void withdraw(const LeftRecord& left) {
    opened().memory.withdraw(left.node_peer, *left.record, left.number);
    // The node peer may have read the record before it was marked.
    announce(left.node_peer);
    put(left.node_peer, {left.context, left.tag}, withdrawal,
        [&](Check& check) { std::memcpy(check, &left.number, sizeof left.number); });
}

void announce_part(const wire::ContextId& context, std::int32_t world_peer, int tag,
                   std::span<const std::uint8_t> bytes) {
    announce(node_peer_of(world_peer));
    put(node_peer_of(world_peer), stream_of(context, tag), bytes.size(),
        [&](Check& check) { fill_check(bytes.data(), bytes.size(), check); });
}

bool part_was_sent(const wire::ContextId& context, std::int32_t world_peer, int tag,
                   std::span<const std::uint8_t> bytes, ReceiveOrder order) {
    ReceivedContent received;
    fill_check(bytes.data(), bytes.size(), received.content.check);
    received.content.bytes = bytes.size();
    const unsigned node_peer = node_peer_of(world_peer);
    const Stream stream = stream_of(context, tag);
    if (order.position < order.oldest && take_next(node_peer, stream, received)) return true;
    return take_in_order(node_peer, stream, order.position, order.oldest, received);
}

Judgement judge(Communicator& comm, std::uint64_t position, const Landing& landing, int code,
                MPI_Status& status) {
    if (comm.is_local(status.MPI_SOURCE)) opened().memory.fetch(node_peer_at(comm, status.MPI_SOURCE));
    ReceivedContent received;
    const std::size_t capacity = static_cast<std::size_t>(landing.count) * landing.facts.size;
    std::size_t n = capacity;
    if (code == MPI_SUCCESS) {
        n = std::min(wire_bytes_of(status), capacity);
        Buffer packed;
        fill_check(run_of(landing, n, packed), n, received.content.check);
        received.content.bytes = n;
    } else {
        int error_class = MPI_SUCCESS;
        real.Error_class(code, &error_class);
        if (error_class != MPI_ERR_TRUNCATE) return {code, true};
        received.content.bytes = capacity;
        received.truncated = true;
    }
    const bool possible = comm.is_local(status.MPI_SOURCE);
    if (!possible || !was_sent(comm, status, position, received)) [[unlikely]] {
        // MPICH 5 returns MPI_SUCCESS after it has called a handler of the program's, which hears of this error once more; Intel MPI where
        // the buffer has no room at all; Open MPI for short messages to oneself.
        received.truncated = code == MPI_SUCCESS && n == capacity;
        if (!possible || !received.truncated || !was_sent(comm, status, position, received))
            return {reject(comm, landing, n, status), code != MPI_SUCCESS};
        wipe_landing(landing, capacity);
        return {MPI_ERR_TRUNCATE, false};
    }
    if (received.truncated) wipe_landing(landing, capacity);
    return {code, code != MPI_SUCCESS};
}

std::string memory_name(const wire::ContextId& context, int node) {
    std::array<std::uint8_t, 16> secret;
    keys::node_memory_name(*state.world.job_secret, context, secret);
    return "/mpisec-" + hex(secret) + "-" + std::to_string(node);  // "nodes" of a test may share /dev/shm
}

}  // namespace mpisec::shim
