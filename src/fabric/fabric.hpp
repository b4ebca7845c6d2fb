// What the algorithms of collectives run on: one rank's side of one collective call.
//
// Plaintext and ciphertext have different types, and only ciphertext can be handed to another node: the compiler checks that nothing leaves
// a node in clear (S1), and it is checked again when a plain message is started.
//
// Errors do not stop a rank (S8: no rank may wait for one that gave up). A rank that has failed goes on through all its steps; what it
// sends to other nodes no longer opens, and what it sends within the node says that it is bad, so that its receivers fail too.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "aead/aead.hpp"
#include "fabric/topology.hpp"
#include "wire/replay.hpp"

namespace mpisec::fabric {

using Plaintext = std::span<const std::uint8_t>;
using PlaintextBuffer = std::span<std::uint8_t>;

/// Room for sealed blocks. Only a Fabric makes it, and only seal() and receive() write to it.
class CiphertextBuffer {
  public:
    CiphertextBuffer() = default;
    std::size_t size() const { return bytes_.size(); }
    CiphertextBuffer part(std::size_t offset, std::size_t n) const {
        return CiphertextBuffer(bytes_.subspan(offset, n));
    }

  private:
    friend class Fabric;
    explicit CiphertextBuffer(std::span<std::uint8_t> bytes) : bytes_(bytes) {}
    std::span<std::uint8_t> bytes_;
};

constexpr std::size_t sealed_bytes(std::size_t plain) {
    return plain + aead::tag_bytes;
}

/// Names one sealed block within its collective. A rank seals each index at most once per collective (S4); the rank that opens the sealed
/// block knows both numbers from the algorithm, so neither travels.
struct SealedBlock {
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
    [[nodiscard]] virtual bool combine(PlaintextBuffer inout, Plaintext in) const = 0;
};

class Fabric;

/// An operation under way. It must be awaited, once.
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
    Ranks node_peers() const { return topology_.members(node()); }
    /// True when the cipher is not slow: then handing parts over costs more than they hide, so long data travels in few parts. The same on
    /// all ranks.
    bool few_parts() const { return few_parts_; }

    /// Messages of this collective, matched by sender and in the order of sending. The data that is sent and the room that is received into
    /// must stay until awaited. The sizes at both ends are equal.
    Pending send(int to, CiphertextBuffer sealed_blocks) {
        return begin(start_send(to, sealed_blocks.bytes_, true));
    }
    Pending receive(int from, CiphertextBuffer room) { return begin(start_receive(from, room.bytes_, true)); }
    Pending send_here(int to, Plaintext bytes) {
        return begin(start_send(to, {const_cast<std::uint8_t*>(bytes.data()), bytes.size()}, false));
    }
    Pending receive_here(int from, PlaintextBuffer room) { return begin(start_receive(from, room, false)); }

    /// `to`: sealed_bytes(from.size()). A sealed block that this rank has sealed before in this collective, or one of another rank's, is
    /// never sealed: its nonce would be used twice (S4).
    void seal(CiphertextBuffer to, Plaintext from, SealedBlock sealed_block) {
        if (sealed_block.sealer != rank_ || !sealed_.insert(sealed_block.index)) [[unlikely]]
            return misused(sealed_block);
        do_seal(to.bytes_, from, sealed_block);
    }
    /// Gives zeros, and a failure, when the sealed block does not open.
    void open(PlaintextBuffer to, CiphertextBuffer from, SealedBlock sealed_block) {
        if (!do_open(to, from.bytes_, sealed_block)) fail();
    }
    /// A memory copy within the rank or its node.
    virtual void copy(PlaintextBuffer to, Plaintext from) = 0;
    /// inout = in op inout; when the operation does not commute, `in` is what comes from lower ranks.
    virtual void combine(const Reduction& reduction, PlaintextBuffer inout, Plaintext in) = 0;

    /// Memory of this rank until it is given back, or else until the collective ends. What was given back is used again, while it is
    /// still in caches; plaintext rooms never hold ciphertext.
    CiphertextBuffer ciphertext(std::size_t bytes) {
        return CiphertextBuffer(take(unused_ciphertext_, bytes));
    }
    PlaintextBuffer plaintext(std::size_t bytes) { return take(unused_plaintext_, bytes); }
    /// A whole room that nothing uses any more.
    void give_back(CiphertextBuffer room) { keep(unused_ciphertext_, room.bytes_); }
    void give_back(PlaintextBuffer room) { keep(unused_plaintext_, room); }
    /// Memory that all ranks of the node share until the collective ends: the n-th call gives all of them the same memory; `bytes` must
    /// agree.
    CiphertextBuffer shared_ciphertext(std::size_t bytes) { return CiphertextBuffer(shared_room(bytes)); }
    PlaintextBuffer shared_plaintext(std::size_t bytes) { return shared_room(bytes); }
    /// As shared_plaintext(), for numbers that steer the algorithm itself (coll/patterns/numbers.hpp): it may look into this room, which
    /// exists in a simulation without data too.
    virtual PlaintextBuffer shared_numbers(std::size_t bytes) { return shared_room(bytes); }
    /// Done when all ranks of the node have arrived here; what they wrote to shared memory before is then there.
    Pending node_barrier() { return begin(start_barrier()); }

    bool failed() const { return failed_; }
    void fail() { failed_ = true; }

  protected:
    Fabric(int rank, const Topology& topology, bool few_parts)
        : topology_(topology), rank_(rank), few_parts_(few_parts) {}

    virtual unsigned start_send(int to, std::span<std::uint8_t> bytes, bool sealed) = 0;
    virtual unsigned start_receive(int from, std::span<std::uint8_t> room, bool sealed) = 0;
    virtual unsigned start_barrier() = 0;
    virtual bool finished(unsigned number) = 0;
    virtual void when_finished(unsigned number, std::coroutine_handle<> waiter) = 0;
    virtual void finish(unsigned number) = 0;
    virtual void do_seal(std::span<std::uint8_t> to, Plaintext from, SealedBlock sealed_block) = 0;
    /// A fault of the algorithm: it names the rank's own sealed block a second time, or a sealed block of
    /// another rank.
    virtual void misused(SealedBlock sealed_block) = 0;
    virtual bool do_open(PlaintextBuffer to, Plaintext from, SealedBlock sealed_block) = 0;
    virtual std::span<std::uint8_t> room(std::size_t bytes) = 0;
    virtual std::span<std::uint8_t> shared_room(std::size_t bytes) = 0;

    const Topology& topology_;
    const int rank_;
    const bool few_parts_;
    bool failed_ = false;

  private:
    friend class Pending;
    using Rooms = std::unordered_map<std::size_t, std::vector<std::span<std::uint8_t>>>;  // by size
    static constexpr std::size_t worth_keeping = 4096;
    std::span<std::uint8_t> take(Rooms& unused, std::size_t bytes) {
        const auto fit = bytes < worth_keeping ? unused.end() : unused.find(bytes);
        if (fit == unused.end() || fit->second.empty()) return room(bytes);
        const std::span<std::uint8_t> latest = fit->second.back();
        fit->second.pop_back();
        return latest;
    }
    static void keep(Rooms& unused, std::span<std::uint8_t> room) {
        if (room.size() >= worth_keeping) unused[room.size()].push_back(room);
    }
    Pending begin(unsigned number) { return Pending(this, number); }

    wire::ReplaySet sealed_;  ///< indices of the sealed blocks sealed so far
    Rooms unused_ciphertext_, unused_plaintext_;
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
