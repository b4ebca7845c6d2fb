// Memory and barriers that the ranks of one node share for the collectives of one communicator.
//
// A collective runs in a slot: rooms of shared memory, a barrier, and room to say that a rank has failed. All
// node peers use the slots in the same order and ask for the same rooms, so each of them keeps the books for
// itself; only counters and data are shared. A slot is free again when all node peers have left it. When one
// has failed, perhaps because it could not have some room, all of them forget the rooms that they had asked
// for: their books agree again.
//
// The memory is parts of the node's arena (node_arena.hpp), under names in its table. Whoever comes first
// makes a part, whoever comes last takes its name away.
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

/// While the ranks of a node find each other at start-up, their memory has a name in /dev/shm. A job that is
/// killed in these milliseconds leaves it. So who starts a job removes what earlier jobs of its user left:
/// names of MPIsec's form whose maker lives no more, as the lock on the file shows. Younger names than
/// `youngest` are left alone: their maker may not have locked them yet.
void remove_abandoned_names(std::chrono::seconds youngest = std::chrono::seconds(60));

/// Shared memory that `node_peers` processes map under one name.
class SharedSegment {
  public:
    /// Zeroed when made. The error says what could not be allocated. A sparse one has no memory
    /// yet: populate() what is used.
    static Result<SharedSegment> attach(const std::string& name, std::size_t bytes, unsigned node_peers,
                                        bool sparse = false);
    /// Gives pages to part of a sparse segment; false when there is no memory left for them.
    static bool populate(std::span<std::uint8_t> part);
    SharedSegment(SharedSegment&& other) noexcept;
    SharedSegment& operator=(SharedSegment&& other) noexcept;
    ~SharedSegment();

    std::span<std::uint8_t> bytes() const { return bytes_; }
    /// Nobody else is to come to it: its memory is freed with those that have.
    void forget(const std::string& name);

  private:
    explicit SharedSegment(std::span<std::uint8_t> bytes) : bytes_(bytes) {}
    std::span<std::uint8_t> bytes_;
};

class NodeMemory {
  public:
    static constexpr unsigned slots = 6;
    static constexpr std::size_t small_room = 16 * 1024;  ///< bytes of a slot that are there from the start

    /// `name`: begins with a slash, alike for the node peers of this node and for nobody else.
    static Result<NodeMemory> attach(const std::string& name, unsigned node_peers);
    NodeMemory(NodeMemory&&) noexcept = default;

    class Slot;
    Slot& slot(unsigned number);

  private:
    NodeMemory(const std::string& name, unsigned node_peers, SharedSegment base);

    SharedSegment base_;
    std::vector<Slot> slots_;
};

class NodeMemory::Slot {
  public:
    /// Whether all node peers have left the collective that was here before.
    bool free() const;
    void enter();
    /// The same memory for all node peers, aligned to 64 bytes, not zeroed; until they leave.
    Result<std::span<std::uint8_t>> room(std::size_t bytes);
    /// This rank has come to the next barrier; returns what met() wants to know.
    std::uint64_t come();
    bool met(std::uint64_t barrier) const;
    /// Some rank of the node has failed in the collective that is here.
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
    std::uint64_t uses_ = 0;      ///< collectives that this rank has entered here
    std::uint64_t barriers_ = 0;  ///< that this rank has come to here
};

inline NodeMemory::Slot& NodeMemory::slot(unsigned number) {
    return slots_[number];
}

}  // namespace mpisec::fabric
