// Memory and barriers that the ranks of one node share for the collectives of one communicator.
//
// A collective runs in a slot: rooms of shared memory, a barrier, and a place to say that a rank has failed. All node peers use the slots
// in the same order and ask for the same rooms, so each of them keeps its own books; only counters and data are shared. A slot is free
// again when all node peers have left it. When one of them has failed, perhaps because it could not get some room, all of them forget the
// rooms that they had asked for: then their books agree again.
//
// The memory consists of parts of the node's arena (node_arena.hpp), under names in its table. The first process that comes for a part
// makes it, the last one removes its name.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace mpisec::fabric {

/// While the ranks of a node find each other at start-up, their memory has a name in /dev/shm. A job that is killed in these milliseconds
/// leaves it. So the start of a job removes what earlier jobs of its user left: names of MPIsec's form whose maker is no longer alive, as
/// the lock on the file shows. Names younger than `youngest` are left alone: their maker may not have locked them yet.
void remove_abandoned_names(std::chrono::seconds youngest = std::chrono::seconds(60));

/// Shared memory that `node_peers` processes map under one name.
class SharedSegment {
  public:
    /// Zeroed when made. The error says what could not be allocated. A sparse segment has no memory yet: populate() what is used.
    static Result<SharedSegment> attach(const std::string& name, std::size_t bytes, unsigned node_peers,
                                        bool sparse = false);
    /// Gives pages to part of a sparse segment; false when there is no memory left for them.
    static bool populate(std::span<std::uint8_t> part);
    SharedSegment(SharedSegment&& other) noexcept;
    SharedSegment& operator=(SharedSegment&& other) noexcept;
    ~SharedSegment();

    std::span<std::uint8_t> bytes() const { return bytes_; }
    /// No other process will attach it: its memory is freed with the processes that have.
    void forget(const std::string& name);

  private:
    explicit SharedSegment(std::span<std::uint8_t> bytes) : bytes_(bytes) {}
    std::span<std::uint8_t> bytes_;
};

class NodeMemory {
  public:
    static constexpr std::size_t small_room = 16 * 1024;  ///< bytes of a slot that are there from the start

    /// `name`: begins with a slash, and is the same for the node peers of this node and for nobody else.
    static Result<NodeMemory> attach(const std::string& name, unsigned node_peers, unsigned slots);
    NodeMemory(NodeMemory&&) noexcept = default;

    class Slot;
    Slot& slot(unsigned number);

  private:
    NodeMemory(const std::string& name, unsigned node_peers, unsigned slots, SharedSegment base);

    SharedSegment base_;
    std::vector<Slot> slots_;
};

class NodeMemory::Slot {
  public:
    /// The turn of a collective that will run here: to be taken in the order of the calls, which is the same on all node peers.
    std::uint64_t take_turn() { return turns_++; }
    /// Whether all node peers have left the collectives with earlier turns. Several can wait for one slot: whichever of them looked first would
    /// otherwise enter, and not the same one on all node peers.
    bool free(std::uint64_t turn) const;
    void enter();
    /// The same memory for all node peers, aligned to 64 bytes, not zeroed; valid until they leave.
    Result<std::span<std::uint8_t>> room(std::size_t bytes);
    /// This rank arrives at the next barrier; returns the value to pass to met().
    std::uint64_t come();
    bool met(std::uint64_t barrier) const;
    /// Says that a rank of the node has failed in the collective that runs here.
    void fail();
    bool failed() const;
    void leave();

  private:
    friend class NodeMemory;
    struct Control;
    Slot(std::string name, unsigned node_peers, Control* control, std::span<std::uint8_t> room)
        : name_(std::move(name)), node_peers_(node_peers), control_(control), rooms_{room} {}

    std::string name_;
    unsigned node_peers_;
    Control* control_;
    std::vector<std::span<std::uint8_t>> rooms_;  ///< the small one, then those of `grown_`
    struct Grown {
        std::string name;
        SharedSegment memory;
    };
    std::vector<Grown> grown_;
    std::size_t used_ = 0;        ///< bytes of rooms_.back()
    std::uint64_t turns_ = 0;     ///< taken so far
    std::uint64_t uses_ = 0;      ///< collectives that this rank has entered here
    std::uint64_t barriers_ = 0;  ///< barriers that this rank has arrived at here
};

inline NodeMemory::Slot& NodeMemory::slot(unsigned number) {
    return slots_[number];
}

}  // namespace mpisec::fabric
