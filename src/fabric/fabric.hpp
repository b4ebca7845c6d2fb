// What the algorithms of collectives run on: one rank's side of one collective call.
//
// Plaintext and ciphertext have different types, and only ciphertext can be handed to another node: that
// nothing leaves a node in clear (S1) is checked by the compiler, and again when a plain message is started.
//
// Errors do not stop a rank (S8: nobody may wait for one that gave up). A rank that has failed goes on
// through all its steps; what it sends to other nodes no longer opens, and what it sends within the node says
// that it is no good, so that its receivers fail too.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>

#include "aead/aead.hpp"
#include "fabric/topology.hpp"
#include "wire/replay.hpp"

namespace mpisec::fabric {

using Plain = std::span<const std::uint8_t>;
using PlainRoom = std::span<std::uint8_t>;

/// Room for sealed boxes. Only a Fabric makes it, and only seal() and receive() write to it.
class Cipher {
  public:
    Cipher() = default;
    std::size_t size() const { return bytes_.size(); }
    Cipher part(std::size_t offset, std::size_t n) const { return Cipher(bytes_.subspan(offset, n)); }

  private:
    friend class Fabric;
    explicit Cipher(std::span<std::uint8_t> bytes) : bytes_(bytes) {}
    std::span<std::uint8_t> bytes_;
};

constexpr std::size_t sealed_bytes(std::size_t plain) {
    return plain + aead::tag_bytes;
}

/// Names one sealed box within its collective. A rank seals each index at most once per collective (S4);
/// whoever opens the box knows both numbers from the algorithm, so neither travels.
struct Box {
    int sealer;  ///< rank
    std::uint64_t index;
};

/// A reduction operation on packed elements (MPI standard section 6.9).
class Reduction {
  public:
    virtual ~Reduction() = default;
    std::size_t element = 1;  ///< bytes; vectors are whole elements
    bool commutes = true;     ///< else operands must stay in rank order
    /// inout = in op inout, element by element; sizes are equal. False when the operation itself reports an
    /// error.
    [[nodiscard]] virtual bool combine(PlainRoom inout, Plain in) const = 0;
};

class Fabric;

/// Something under way. To be awaited, once.
class [[nodiscard]] Pending {
  public:
    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> waiter) const;
    void await_resume() const;

  private:
    friend class Fabric;
    Pending(Fabric* fabric, unsigned number) : fabric_(fabric), number_(number) {}
    Fabric* fabric_;
    unsigned number_;
};

class Fabric {
  public:
    virtual ~Fabric() = default;
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    int rank() const { return rank_; }
    const Topology& topology() const { return topology_; }
    int node() const { return topology_.node(rank_); }
    int local() const { return topology_.local(rank_); }
    const std::vector<int>& mates() const { return topology_.members(node()); }

    /// Messages of this collective, matched by sender and in the order of sending. What is sent and room that
    /// is received into must stay until awaited. Sizes of both ends are equal.
    Pending send(int to, Cipher boxes) { return begin(start_send(to, boxes.bytes_, true)); }
    Pending receive(int from, Cipher room) { return begin(start_receive(from, room.bytes_, true)); }
    Pending send_here(int to, Plain bytes) {
        return begin(start_send(to, {const_cast<std::uint8_t*>(bytes.data()), bytes.size()}, false));
    }
    Pending receive_here(int from, PlainRoom room) { return begin(start_receive(from, room, false)); }

    /// `to`: sealed_bytes(from.size()). A box that this rank has sealed before in this collective, or one of
    /// another rank's, is never sealed: its nonce would be used twice (S4).
    void seal(Cipher to, Plain from, Box box) {
        if (box.sealer != rank_ || !sealed_.insert(box.index)) [[unlikely]]
            return misused(box);
        do_seal(to.bytes_, from, box);
    }
    /// Zeros, and a failure, when the box does not open.
    void open(PlainRoom to, Cipher from, Box box) {
        if (!do_open(to, from.bytes_, box)) fail();
    }
    /// A memory copy within the rank or its node.
    virtual void copy(PlainRoom to, Plain from) = 0;
    /// inout = in op inout: `in` is what comes from lower ranks, when the operation does not commute.
    virtual void combine(const Reduction& reduction, PlainRoom inout, Plain in) = 0;

    /// Memory of this rank until the collective ends.
    Cipher cipher(std::size_t bytes) { return Cipher(room(bytes)); }
    PlainRoom plain(std::size_t bytes) { return room(bytes); }
    /// Memory that all ranks of the node share until the collective ends: the n-th call gives the same to all
    /// of them; `bytes` must agree.
    Cipher shared_cipher(std::size_t bytes) { return Cipher(shared_room(bytes)); }
    PlainRoom shared_plain(std::size_t bytes) { return shared_room(bytes); }
    /// As shared_plain(), for numbers that steer the algorithm itself (coll/patterns/numbers.hpp): it may
    /// look into this room, which is there in a simulation without data too.
    virtual PlainRoom shared_numbers(std::size_t bytes) { return shared_room(bytes); }
    /// All ranks of the node have come here; shared memory that they wrote before is there.
    Pending node_barrier() { return begin(start_barrier()); }

    bool failed() const { return failed_; }
    void fail() { failed_ = true; }

  protected:
    Fabric(int rank, const Topology& topology) : topology_(topology), rank_(rank) {}

    virtual unsigned start_send(int to, std::span<std::uint8_t> bytes, bool sealed) = 0;
    virtual unsigned start_receive(int from, std::span<std::uint8_t> room, bool sealed) = 0;
    virtual unsigned start_barrier() = 0;
    virtual bool finished(unsigned number) = 0;
    virtual void when_finished(unsigned number, std::coroutine_handle<> waiter) = 0;
    virtual void finish(unsigned number) = 0;
    virtual void do_seal(std::span<std::uint8_t> to, Plain from, Box box) = 0;
    /// A fault of the algorithm: it names the rank's own box a second time, or a box of another rank.
    virtual void misused(Box box) = 0;
    virtual bool do_open(PlainRoom to, Plain from, Box box) = 0;
    virtual std::span<std::uint8_t> room(std::size_t bytes) = 0;
    virtual std::span<std::uint8_t> shared_room(std::size_t bytes) = 0;

    const Topology& topology_;
    const int rank_;
    bool failed_ = false;

  private:
    friend class Pending;
    wire::ReplaySet sealed_;  ///< indices of the boxes sealed so far
    Pending begin(unsigned number) { return Pending(this, number); }
};

inline bool Pending::await_ready() const {
    return fabric_->finished(number_);
}
inline void Pending::await_suspend(std::coroutine_handle<> waiter) const {
    fabric_->when_finished(number_, waiter);
}
inline void Pending::await_resume() const {
    fabric_->finish(number_);
}

}  // namespace mpisec::fabric
