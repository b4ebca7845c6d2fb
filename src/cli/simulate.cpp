#include "cli/simulate.hpp"

#include <fmt/format.h>

#include "aead/throughput.hpp"
#include "fabric/sim/model_file.hpp"

namespace mpisec::cli {
namespace {

using coll::Blocks;
using coll::Call;
using coll::Collective;
using fabric::Topology;

constexpr std::uint64_t element = 8;

/// A sum of numbers with 8 bytes; nothing is computed.
class Sum final : public fabric::Reduction {
  public:
    Sum() { Reduction::element = cli::element; }
    bool combine(fabric::PlaintextBuffer, fabric::Plaintext) const override { return true; }
};
const Sum any_sum;

fabric::PlaintextBuffer vector_of(std::uint64_t bytes) {
    return {fabric::sim::untouchable(), bytes};
}

/// `count` blocks side by side, behind `before` bytes.
Blocks blocks_of(std::size_t count, std::uint64_t bytes, std::uint64_t before = 0) {
    Blocks blocks{fabric::sim::untouchable() + before, {}, std::vector<std::size_t>(count, bytes)};
    for (std::size_t i = 0; i < count; ++i) blocks.offset.push_back(i * bytes);
    return blocks;
}

/// The four neighbours on a torus as square as the number of ranks allows.
std::vector<int> neighbours(int rank, int ranks) {
    int rows = 1;
    for (int n = 2; n * n <= ranks; ++n)
        if (ranks % n == 0) rows = n;
    const int columns = ranks / rows, row = rank / columns, column = rank % columns;
    return {(row + rows - 1) % rows * columns + column, (row + 1) % rows * columns + column,
            row * columns + (column + columns - 1) % columns, row * columns + (column + 1) % columns};
}

Call call_of(Collective collective, int rank, int ranks, std::uint64_t bytes) {
    const auto p = static_cast<std::size_t>(ranks);
    Call call;
    call.reduction = &any_sum;
    switch (collective) {
        case Collective::barrier:
            break;
        case Collective::bcast:
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::scan:
        case Collective::exscan:
            call.data = vector_of(bytes);
            break;
        case Collective::gather:
        case Collective::scatter:
            if (rank == call.root)
                (collective == Collective::gather ? call.from : call.to) = blocks_of(p, bytes);
            else
                call.data = vector_of(bytes);
            break;
        case Collective::allgather:
            call.from = blocks_of(p, bytes);
            break;
        case Collective::alltoall:
            call.to = blocks_of(p, bytes);
            call.from = blocks_of(p, bytes, p * bytes);
            break;
        case Collective::reduce_scatter:
            call.data = vector_of(p * bytes);
            call.from.size.assign(p, bytes);
            break;
        case Collective::neighbor_allgather:
        case Collective::neighbor_alltoall: {
            call.destinations = call.sources = neighbours(rank, ranks);
            const std::size_t count = call.sources.size();
            if (collective == Collective::neighbor_allgather)
                call.data = vector_of(bytes);
            else
                call.to = blocks_of(count, bytes);
            call.from = blocks_of(count, bytes, count * bytes);
        }
    }
    return call;
}

/// One call for the root and one for all other ranks; one for each rank where they differ in their neighbours.
class Calls {
  public:
    Calls(Collective collective, int ranks, std::uint64_t bytes) {
        const bool by_rank =
            collective == Collective::neighbor_allgather || collective == Collective::neighbor_alltoall;
        for (int rank = 0; rank < (by_rank ? ranks : std::min(ranks, 2)); ++rank)
            calls_.push_back(call_of(collective, rank, ranks, bytes));
    }
    const Call& of(int rank) const {
        return calls_[std::min(static_cast<std::size_t>(rank), calls_.size() - 1)];
    }

  private:
    std::vector<Call> calls_;
};

}  // namespace

Topology placed(int ranks, int nodes, const std::string& placement) {
    std::vector<int> node;
    for (int rank = 0; rank < ranks; ++rank)
        node.push_back(placement == "cyclic" ? rank % nodes
                                             : static_cast<int>(static_cast<long>(rank) * nodes / ranks));
    return Topology(node);
}

bool has_size(Collective collective) {
    return collective != Collective::barrier;
}

const char* meaning_of_size(Collective collective) {
    switch (collective) {
        case Collective::bcast:
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::scan:
        case Collective::exscan:
            return "bytes of the vector";
        case Collective::reduce_scatter:
            return "bytes of each rank's part of the result";
        case Collective::alltoall:
        case Collective::neighbor_alltoall:
            return "bytes from each rank to each other";
        default:
            return "bytes of each rank's block";
    }
}

std::uint64_t unit(Collective collective) {
    switch (collective) {
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::reduce_scatter:
        case Collective::scan:
        case Collective::exscan:
            return element;
        default:
            return 1;
    }
}

Result<std::optional<fabric::sim::Report>> simulate(Collective collective, const coll::Entry& algorithm,
                                                    const Topology& topology, std::uint64_t bytes,
                                                    const fabric::sim::ClusterModel& model,
                                                    std::uint64_t seed) {
    const Calls calls(collective, topology.ranks(), bytes);
    if (algorithm.suits && !algorithm.suits(topology, calls.of(0))) return std::nullopt;
    fabric::sim::Options options;
    options.seed = seed;
    // Jobs have few parts with a medium cipher, too; but rules that are made from its model serve slow ciphers as well.
    options.few_parts = aead::speed_of(1 / model.seal.beta) == aead::Speed::fast;
    options.data = false;
    fabric::sim::Report report = fabric::sim::run(
        topology, model,
        [&](fabric::Fabric& fabric) { return algorithm.run(fabric, calls.of(fabric.rank())); }, options);
    if (!report.error.empty())
        return fail(
            fmt::format("{} of {} does not work here: {}. This is a fault of MPIsec, please report it.",
                        algorithm.name, name(collective), report.error));
    return report;
}

Result<fabric::sim::Report> simulate(Collective collective, const coll::Selection& selection,
                                     const Topology& topology, std::uint64_t bytes) {
    const Calls calls(collective, topology.ranks(), bytes);
    const coll::Entry& algorithm = selection.choose(collective, topology, calls.of(0));
    auto report = simulate(collective, algorithm, topology, bytes, fabric::sim::default_model(), 1);
    if (!report) return tl::unexpected(report.error());
    if (!*report) return fail(fmt::format("no algorithm of {} suits", name(collective)));
    return std::move(**report);
}

}  // namespace mpisec::cli
