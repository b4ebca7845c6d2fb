// Collectives that move data and do not compute with it (and the barrier), on random clusters in the
// simulation: calls of them with data that says where it came from, and whether each rank ends with the right
// bytes.
#pragma once

#include <algorithm>
#include <optional>

#include "support.hpp"

namespace mpisec::test {

using coll::Collective;

/// Of a block that holds `value`. Segments of large ones differ from each other.
inline std::uint8_t content(std::uint64_t value, std::size_t i) {
    return byte_of(value + i / 251, i);
}

/// A block before and after: what value_of() it holds, if any.
struct Piece {
    std::size_t bytes;
    std::optional<std::uint64_t> before, after;
};

/// One rank of a job. All that it gives to the call lies in one buffer, with gaps.
struct Member {
    coll::Call call;
    std::vector<std::uint8_t> buffer, wanted;
    std::size_t data_at = 0, data_bytes = 0;
    int late = 0;  ///< steps until it comes

    std::size_t place(const Piece& piece, Random& random) {
        const std::size_t at = buffer.size() + static_cast<std::size_t>(std::max(0, pick(random, -4, 3)));
        buffer.resize(at + piece.bytes, untouched);
        wanted.resize(at + piece.bytes, untouched);
        for (std::size_t i = 0; i < piece.bytes; ++i) {
            if (piece.before) buffer[at + i] = content(*piece.before, i);
            if (piece.after) wanted[at + i] = content(*piece.after, i);
        }
        return at;
    }
    void place_data(const Piece& piece, Random& random) {
        data_at = place(piece, random);
        data_bytes = piece.bytes;
    }
    /// In any order.
    coll::Blocks place_blocks(const std::vector<Piece>& pieces, Random& random) {
        coll::Blocks blocks{nullptr, std::vector<std::size_t>(pieces.size()), {}};
        std::vector<std::size_t> order;
        for (const Piece& piece : pieces) {
            order.push_back(order.size());
            blocks.size.push_back(piece.bytes);
        }
        if (pick(random, 0, 1)) std::shuffle(order.begin(), order.end(), random);
        for (std::size_t i : order) blocks.offset[i] = place(pieces[i], random);
        return blocks;
    }
    /// When all is in its place: says where the buffer lies.
    void settle(std::uint8_t* base) {
        call.to.base = call.from.base = base;
        call.data = {base + data_at, data_bytes};
    }
};

using Job = std::vector<Member>;

/// How much each block has.
struct Sizes {
    bool equal;
    std::size_t bytes;

    std::size_t draw(Random& random) const {
        return equal ? bytes : static_cast<std::size_t>(std::max(0, pick(random, -8, 90)));
    }
    std::string text() const { return equal ? std::to_string(bytes) + " bytes each" : "unequal blocks"; }
};

inline Sizes random_sizes(Random& random) {
    constexpr std::size_t equal[] = {0, 1, 33, 95, 300};
    const int kind = pick(random, 0, 9);
    return kind < 5 ? Sizes{true, equal[kind]} : Sizes{false, 0};
}

/// Says which block it is: from whom, to whom, and which of those between the two.
inline std::uint64_t value_of(std::size_t from, std::size_t to, std::size_t turn = 0) {
    return from * 37 + to * 101 + turn * 11 + 5;
}

// ---- the ranks' calls of each collective

inline void prepare_bcast(Job& job, std::size_t root, const Sizes& sizes, Random& random) {
    const std::size_t bytes = sizes.draw(random);
    const std::uint64_t value = value_of(root, 0);
    for (std::size_t rank = 0; rank < job.size(); ++rank)
        job[rank].place_data({bytes, rank == root ? std::optional(value) : std::nullopt, value}, random);
}

inline void prepare_gather(Job& job, std::size_t root, const Sizes& sizes, Random& random) {
    std::vector<Piece> pieces;
    for (std::size_t rank = 0; rank < job.size(); ++rank) {
        const std::uint64_t value = value_of(rank, root);
        pieces.push_back({sizes.draw(random), std::nullopt, value});
        if (rank == root)
            pieces.back().before = value;
        else
            job[rank].place_data({pieces.back().bytes, value, value}, random);
    }
    job[root].call.from = job[root].place_blocks(pieces, random);
}

inline void prepare_scatter(Job& job, std::size_t root, const Sizes& sizes, Random& random) {
    std::vector<Piece> pieces;
    for (std::size_t rank = 0; rank < job.size(); ++rank) {
        const std::uint64_t value = value_of(root, rank);
        pieces.push_back({sizes.draw(random), value, value});
        if (rank != root) job[rank].place_data({pieces.back().bytes, std::nullopt, value}, random);
    }
    job[root].call.to = job[root].place_blocks(pieces, random);
}

inline void prepare_alltoall(Job& job, const Sizes& sizes, Random& random) {
    const std::size_t p = job.size();
    std::vector<std::vector<Piece>> in(p);
    for (std::size_t from = 0; from < p; ++from) {
        std::vector<Piece> out;
        for (std::size_t to = 0; to < p; ++to) {
            const std::uint64_t value = value_of(from, to);
            out.push_back({sizes.draw(random), value, value});
            in[to].push_back({out.back().bytes, std::nullopt, value});
            if (from == to) in[to].back().after.reset();
        }
        job[from].call.to = job[from].place_blocks(out, random);
    }
    for (std::size_t to = 0; to < p; ++to) job[to].call.from = job[to].place_blocks(in[to], random);
}

/// A graph in which some ranks lead to each other, more than once too, and to themselves.
struct Graph {
    std::vector<std::vector<int>> destinations, sources;
};

inline Graph random_graph(int ranks, Random& random) {
    Graph graph;
    graph.destinations.resize(static_cast<std::size_t>(ranks));
    graph.sources.resize(static_cast<std::size_t>(ranks));
    const int degree = pick(random, 0, 5);
    for (int from = 0; from < ranks; ++from)
        for (int i = pick(random, 0, degree); i > 0; --i) {
            const int to = pick(random, 0, 3) ? pick(random, 0, ranks - 1) : from / 2;
            graph.destinations[static_cast<std::size_t>(from)].push_back(to);
            graph.sources[static_cast<std::size_t>(to)].push_back(from);
        }
    for (auto& sources : graph.sources) std::shuffle(sources.begin(), sources.end(), random);
    return graph;
}

/// `one_block`: a rank has the same for all that it leads to.
inline void prepare_neighbors(Job& job, bool one_block, const Sizes& sizes, Random& random) {
    const std::size_t p = job.size();
    const Graph graph = random_graph(static_cast<int>(p), random);
    std::vector<std::vector<Piece>> in(p);  // by receiver, in the order of its sources
    for (std::size_t to = 0; to < p; ++to) in[to].resize(graph.sources[to].size());
    for (std::size_t from = 0; from < p; ++from) {
        std::vector<Piece> out;
        std::vector<std::size_t> turns(p), next(p);
        const std::size_t bytes = sizes.draw(random);  // if one block
        for (int destination : graph.destinations[from]) {
            const auto to = static_cast<std::size_t>(destination);
            const std::uint64_t value = one_block ? value_of(from, 0) : value_of(from, to, turns[to]++);
            out.push_back({one_block ? bytes : sizes.draw(random), value, value});
            while (graph.sources[to][next[to]] != static_cast<int>(from)) ++next[to];
            in[to][next[to]++] = {out.back().bytes, std::nullopt, value};
        }
        job[from].call.destinations = graph.destinations[from];
        job[from].call.sources = graph.sources[from];
        if (one_block)
            job[from].place_data({bytes, value_of(from, 0), value_of(from, 0)}, random);
        else
            job[from].call.to = job[from].place_blocks(out, random);
    }
    for (std::size_t to = 0; to < p; ++to) job[to].call.from = job[to].place_blocks(in[to], random);
}

inline Job prepare(Collective collective, int ranks, int root, const Sizes& sizes, Random& random) {
    Job job(static_cast<std::size_t>(ranks));
    const auto at_root = static_cast<std::size_t>(root);
    switch (collective) {
        case Collective::bcast:
            prepare_bcast(job, at_root, sizes, random);
            break;
        case Collective::gather:
            prepare_gather(job, at_root, sizes, random);
            break;
        case Collective::scatter:
            prepare_scatter(job, at_root, sizes, random);
            break;
        case Collective::alltoall:
            prepare_alltoall(job, sizes, random);
            break;
        case Collective::neighbor_allgather:
        case Collective::neighbor_alltoall:
            prepare_neighbors(job, collective == Collective::neighbor_allgather, sizes, random);
            break;
        default:
            break;
    }
    const bool punctual = pick(random, 0, 1);
    for (Member& member : job) {
        member.settle(member.buffer.data());
        member.call.root = root;
        member.call.equal_blocks = sizes.equal;
        if (!punctual) member.late = std::max(0, pick(random, -20, 20));
    }
    return job;
}

// ---- running them

/// What the ranks of a run tell the test.
struct Meeting {
    std::size_t came = 0;
    std::vector<char> left_early;
};

inline fabric::Task take_part(fabric::Fabric& fabric, const Entry& algorithm, const Member& member,
                              Meeting& meeting) {
    for (int i = 0; i < member.late; ++i) {
        auto receiving = fabric.receive_here(fabric.rank(), {});
        auto sending = fabric.send_here(fabric.rank(), {});
        co_await receiving;
        co_await sending;
    }
    ++meeting.came;
    co_await algorithm.run(fabric, member.call);
    const std::size_t all = meeting.left_early.size();
    meeting.left_early[static_cast<std::size_t>(fabric.rank())] = meeting.came < all;
}

/// `job` is a copy: every run begins anew.
inline Outcome run(Collective collective, const Entry& algorithm, const Topology& topology, Job job,
                   const ClusterModel& model, const Options& options) {
    for (Member& member : job)
        member.settle(options.data ? member.buffer.data() : fabric::sim::untouchable());
    Meeting meeting{0, std::vector<char>(job.size())};
    Outcome outcome;
    outcome.report = fabric::sim::run(
        topology, model,
        [&](fabric::Fabric& fabric) {
            return take_part(fabric, algorithm, job[static_cast<std::size_t>(fabric.rank())], meeting);
        },
        options);
    for (std::size_t rank = 0; rank < job.size(); ++rank) {
        const bool waited = collective != Collective::barrier || !meeting.left_early[rank];
        outcome.right.push_back(waited && job[rank].buffer == job[rank].wanted);
    }
    return outcome;
}

/// A cluster with a call on it.
struct Scene {
    Topology topology;
    Job job;
    ClusterModel model;
    std::string text;
};

inline Scene random_scene(Collective collective, const std::vector<int>& node_sizes, const Sizes& sizes,
                          Random& random) {
    const Placement placement = place(node_sizes, pick(random, 0, 2), random);
    const int ranks = static_cast<int>(placement.node.size()), root = pick(random, 0, ranks - 1);
    return {
        Topology(placement.node), prepare(collective, ranks, root, sizes, random), random_model(random),
        describe(node_sizes, placement, {sizes.text(), {}, {}, 0}, {}) + ", root " + std::to_string(root)};
}

// ---- one test per algorithm

struct Movement {
    Collective collective;
    Entry algorithm;
};

inline std::vector<Movement> movements(const std::vector<Collective>& of) {
    std::vector<Movement> all;
    for (Collective collective : of)
        for (const Entry& algorithm : coll::algorithms(collective)) all.push_back({collective, algorithm});
    return all;
}
inline std::vector<Movement> all_movements() {
    return movements({Collective::barrier, Collective::bcast, Collective::gather, Collective::scatter,
                      Collective::alltoall, Collective::neighbor_allgather, Collective::neighbor_alltoall});
}

class EveryMovement : public testing::TestWithParam<Movement> {
  protected:
    bool serves(const Scene& scene) const {
        const Entry& algorithm = GetParam().algorithm;
        return !algorithm.suits || algorithm.suits(scene.topology, scene.job.front().call);
    }
    Outcome run(const Scene& scene, const Options& options) const {
        return test::run(GetParam().collective, GetParam().algorithm, scene.topology, scene.job, scene.model,
                         options);
    }
};

inline std::string movement_name(const testing::TestParamInfo<Movement>& movement) {
    std::string text =
        std::string(coll::name(movement.param.collective)) + "_" + std::string(movement.param.algorithm.name);
    std::replace(text.begin(), text.end(), '-', '_');
    return text;
}
inline void PrintTo(const Movement& movement, std::ostream* to) {
    *to << coll::name(movement.collective) << ' ' << movement.algorithm.name;
}

}  // namespace mpisec::test
