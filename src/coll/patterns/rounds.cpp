#include "coll/patterns/rounds.hpp"

#include <array>
#include <optional>
#include <utility>

namespace mpisec::coll {
namespace {

using fabric::CiphertextBuffer;
using fabric::Fabric;

/// A round under way, with its sealed blocks: those it receives, in order, then those it sends.
struct Started {
    Round round;
    std::vector<CiphertextBuffer> sealed_blocks;
    std::vector<fabric::Pending> receiving, sending;
};

/// Places for the sealed blocks of a round in `room`, which grows if need be; empty ones for messages inside
/// the node.
std::vector<CiphertextBuffer> sealed_blocks_in(CiphertextBuffer& room, Fabric& fabric, const Round& round) {
    std::vector<std::size_t> sizes;
    auto add = [&](int peer, std::size_t bytes) {
        sizes.push_back(fabric.topology().same_node(peer, fabric.rank()) ? 0 : fabric::sealed_bytes(bytes));
    };
    for (const auto& in : round.in) add(in.from, in.room.size());
    for (const auto& out : round.out) add(out.to, out.bytes.size());
    std::size_t total = 0;
    for (std::size_t size : sizes) total += size;
    if (room.size() < total) room = fabric.ciphertext(total);
    std::vector<CiphertextBuffer> sealed_blocks;
    std::size_t at = 0;
    for (std::size_t size : sizes) {
        sealed_blocks.push_back(room.part(at, size));
        at += size;
    }
    return sealed_blocks;
}

Started start(Fabric& fabric, Round round, CiphertextBuffer& room) {
    Started started{std::move(round), {}, {}, {}};
    started.sealed_blocks = sealed_blocks_in(room, fabric, started.round);
    auto sealed_block = started.sealed_blocks.begin();
    for (const auto& in : started.round.in) {
        started.receiving.push_back(sealed_block->size() > 0 ? fabric.receive(in.from, *sealed_block)
                                                             : fabric.receive_here(in.from, in.room));
        ++sealed_block;
    }
    for (const auto& out : started.round.out) {
        if (sealed_block->size() > 0) fabric.seal(*sealed_block, out.bytes, {fabric.rank(), out.index});
        started.sending.push_back(sealed_block->size() > 0 ? fabric.send(out.to, *sealed_block)
                                                           : fabric.send_here(out.to, out.bytes));
        ++sealed_block;
    }
    return started;
}

fabric::Task finish(Fabric& fabric, Started started) {
    for (std::size_t i = 0; i < started.receiving.size(); ++i) {
        const Round::In& in = started.round.in[i];
        co_await started.receiving[i];
        if (started.sealed_blocks[i].size() > 0)
            fabric.open(in.room, started.sealed_blocks[i], {in.from, in.index});
    }
    for (auto& one : started.sending) co_await one;
}

}  // namespace

fabric::Task in_rounds(Fabric& fabric, Rounds rounds) {
    std::array<CiphertextBuffer, 2> rooms;
    std::optional<Started> under_way;
    for (int i = 0; i <= rounds.count; ++i) {
        std::optional<Started> next;
        if (i < rounds.count) {
            if (rounds.before) co_await rounds.before(i);
            next = start(fabric, rounds.round(i), rooms[static_cast<std::size_t>(i % 2)]);
        }
        if (under_way) {
            co_await finish(fabric, std::move(*under_way));
            if (rounds.after) co_await rounds.after(i - 1);
        }
        under_way = std::move(next);
    }
}

fabric::Task in_rounds(Fabric& fabric, int count, std::function<Round(int)> round) {
    return in_rounds(fabric, Rounds{count, std::move(round)});
}

}  // namespace mpisec::coll
