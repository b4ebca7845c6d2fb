// Records of messages between the ranks of one node, in memory that only they share
// (MPISEC_SAME_NODE=verify).
//
// A sender counts a message before MPI has it, and leaves its record afterwards: a message that has neither was sent by nobody. For each
// ordered pair of node peers there is a queue without an end: a sender can leave any number of records before the receiver looks at the
// first. A queue is a list of chunks. The sender takes chunks from its own region, which is large, but of which only what is used has
// pages. The receiver marks a chunk when it has read it to its end, and the sender fills it again, for another receiver when there is no
// room left. A region takes as much memory as was once unread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/relax.hpp"
#include "fabric/node_memory.hpp"

namespace mpisec::fabric {

/// One cache line: a rank that waits for a record gets all of it.
struct alignas(64) SentRecord {
    std::atomic<std::uint32_t> number;  ///< number in the queue, from 1, and the mark below
    std::int32_t tag;
    std::uint64_t context;
    std::uint64_t bytes;
    std::uint8_t check[40];
};
static_assert(sizeof(SentRecord) == 64);

/// A mark in a record's number: what was sent has been taken back.
inline constexpr std::uint32_t withdrawn_record = std::uint32_t{1} << 31;
inline constexpr std::uint32_t record_number = withdrawn_record - 1;

class SentRecords {
  public:
    /// `self`: this process among the `node_peers`, from 0. `region`: bytes that each node peer's unread
    /// records may take.
    static Result<SentRecords> attach(const std::string& name, unsigned node_peers, unsigned self,
                                      std::size_t region = std::size_t{64} << 20);

    static constexpr std::size_t agreement_bytes = 64;
    /// Zero at first, for what the node peers agree on; all of them have the same memory.
    std::span<std::uint8_t> agreement() const;

    /// Counts a record that is going to be published, before MPI gets its message: the node peer that has the message waits for the record.
    /// Until the record is published, this process must not wait for the node peer, except in a call in which it moves MPI on.
    void announce(unsigned node_peer) {
        announced(self_, node_peer).store(++sending_[node_peer].announced, std::memory_order_release);
    }
    /// MPI did not take the message.
    void retract(unsigned node_peer) {
        announced(self_, node_peer).store(--sending_[node_peer].announced, std::memory_order_release);
    }
    /// Room for the next record to `node_peer`, in which all but the number is to be filled in; null when there is no memory left.
    SentRecord* next(unsigned node_peer) {
        Sending& queue = sending_[node_peer];
        if (queue.used == records_per_chunk && !extend(queue, node_peer)) return nullptr;
        return chunk(self_, queue.chunk) + 1 + queue.used;
    }
    /// Lets the node peer see the record, which was announced; returns its number.
    std::uint32_t publish(unsigned node_peer) {
        Sending& queue = sending_[node_peer];
        SentRecord* record = chunk(self_, queue.chunk) + 1 + queue.used++;
        queue.number = (queue.number + 1) & record_number;
        record->number.store(queue.number, std::memory_order_release);
        if (queue.used < records_per_chunk) __builtin_prefetch(record + 1, 1);
        return queue.number;
    }
    /// Marks the record. If the node peer has read it already, and must know, it has to be told in another way. To be called from the same
    /// thread as next().
    void withdraw(unsigned node_peer, SentRecord& record, std::uint32_t number);
    static bool withdrawn(const SentRecord& record) {
        return record.number.load(std::memory_order_acquire) & withdrawn_record;
    }
    /// The first unread record from `node_peer`, or null.
    const SentRecord* first(unsigned node_peer) {
        Receiving& queue = receiving_[node_peer];
        if (queue.read == records_per_chunk && !go_on(queue, node_peer)) [[unlikely]]
            return nullptr;
        const SentRecord* record = chunk(node_peer, queue.chunk) + 1 + queue.read;
        const std::uint32_t number = record->number.load(std::memory_order_acquire);
        return ((number ^ (queue.number + 1)) & record_number) == 0 ? record : nullptr;
    }
    /// Whether more records were announced than pop() has taken.
    bool more_announced(unsigned node_peer) const {
        const std::uint32_t count = announced(node_peer, self_).load(std::memory_order_acquire);
        return ((count ^ receiving_[node_peer].number) & record_number) != 0;
    }
    /// Waits until there is one, but looks at most `looks` times.
    void expect(unsigned node_peer, unsigned looks) {
        while (!first(node_peer) && --looks > 0) relax();
    }
    /// Asks for the cache line of the next record, which its sender has.
    void fetch(unsigned node_peer) const {
        const Receiving& queue = receiving_[node_peer];
        if (queue.read < records_per_chunk)
            __builtin_prefetch(chunk(node_peer, queue.chunk) + 1 + queue.read);
    }
    void pop(unsigned node_peer) {
        ++receiving_[node_peer].read;
        ++receiving_[node_peer].number;
    }

  private:
    friend struct SentRecordsTest;
    static constexpr std::uint32_t records_per_chunk = 63;
    /// In place of a chunk's first record.
    struct Link {
        std::atomic<std::uint32_t> next;  ///< number of the following chunk, from 1
        std::atomic<std::uint32_t> read;  ///< 1: read to its end
    };
    struct Sending {
        std::uint32_t chunk = 0;  ///< from 1; 0: none yet
        std::uint32_t used = records_per_chunk;
        std::uint32_t number = 0;
        std::uint32_t announced = 0;
        std::deque<std::uint32_t> full;  ///< chunks, oldest first
    };
    struct Receiving {
        std::uint32_t chunk = 0;
        std::uint32_t read = records_per_chunk;
        std::uint32_t number = 0;
    };

    SentRecords(SharedSegment memory, unsigned node_peers, unsigned self, std::size_t region);
    SentRecord* chunk(unsigned owner, std::uint32_t number) const {
        return reinterpret_cast<SentRecord*>(regions_ + owner * region_) +
               std::size_t{number - 1} * (records_per_chunk + 1);
    }
    Link& link(unsigned owner, std::uint32_t number) const {
        return *reinterpret_cast<Link*>(chunk(owner, number));
    }
    std::atomic<std::uint32_t>& first_chunk(unsigned from, unsigned to) const {
        return first_chunks_[from * sending_.size() + to];
    }
    /// Counts of messages, wrapping around; a sender's counts have cache lines of their own.
    std::atomic<std::uint32_t>& announced(unsigned from, unsigned to) const {
        return announced_[from * counts_per_sender(static_cast<unsigned>(sending_.size())) + to];
    }
    static std::size_t counts_per_sender(unsigned node_peers) { return (node_peers + 15) / 16 * 16; }
    static std::size_t front_bytes(unsigned node_peers);
    bool extend(Sending& queue, unsigned node_peer);
    std::uint32_t oldest_read_chunk(Sending& queue);  ///< taken out of the queue; 0: there is none
    std::uint32_t chunk_of_another_queue();           ///< the same of any queue
    std::uint32_t new_chunk();
    bool go_on(Receiving& queue, unsigned node_peer);

    SharedSegment memory_;
    std::uint8_t* begin_;
    std::atomic<std::uint32_t>* announced_;
    std::atomic<std::uint32_t>* first_chunks_;  ///< of each queue; 0: nothing was sent yet
    std::uint8_t* regions_;
    std::size_t region_;
    unsigned self_;
    std::uint32_t chunks_ = 0;     ///< chunks of this process's region that were ever taken
    std::uint32_t populated_ = 0;  ///< chunks that have pages
    std::vector<Sending> sending_;
    std::vector<Receiving> receiving_;
};

}  // namespace mpisec::fabric
