// Collectives that reduce, on random clusters in the simulation, and whether each rank has the right result.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "support.hpp"

namespace mpisec::test {

using coll::Collective;
using fabric::Plaintext;
using fabric::PlaintextBuffer;

class Operation : public fabric::Reduction {
  public:
    Operation(std::string the_name, std::size_t bytes, bool commutative) : name(std::move(the_name)) {
        element = bytes;
        commutes = commutative;
    }
    std::string name;
    mutable std::uint64_t combined = 0;  ///< calls so far
    mutable std::uint64_t fails_at = 0;  ///< n > 0: the n-th call reports an error

    bool combine(PlaintextBuffer inout, Plaintext in) const override {
        for (std::size_t at = 0; at < in.size(); at += element) one(inout.data() + at, in.data() + at);
        return ++combined != fails_at;
    }

  protected:
    /// inout = in op inout
    virtual void one(std::uint8_t* inout, const std::uint8_t* in) const = 0;
};

/// Elements of N numbers, which Apply(inout, in) combines.
template <class Number, std::size_t N, auto apply>
class Numbers final : public Operation {
  public:
    Numbers(std::string the_name, bool commutative)
        : Operation(std::move(the_name), sizeof(std::array<Number, N>), commutative) {}

  protected:
    void one(std::uint8_t* inout, const std::uint8_t* in) const override {
        std::array<Number, N> a, b;
        std::memcpy(a.data(), in, element);
        std::memcpy(b.data(), inout, element);
        b = apply(a, b);
        std::memcpy(inout, b.data(), element);
    }
};

template <class Number, std::size_t N>
using Values = std::array<Number, N>;

template <class Number, std::size_t N>
constexpr auto sum = [](Values<Number, N> a, const Values<Number, N>& b) {
    for (std::size_t i = 0; i < N; ++i) a[i] = static_cast<Number>(a[i] + b[i]);
    return a;
};
constexpr auto greater = [](Values<std::uint64_t, 1> a, Values<std::uint64_t, 1> b) {
    return std::max(a, b);
};
/// x -> a x + b mod 16, in a byte, one after the other.
constexpr auto compose_in_byte = [](Values<std::uint8_t, 1> f, Values<std::uint8_t, 1> g) {
    const unsigned a = f[0] & 15u, b = f[0] >> 4, c = g[0] & 15u, d = g[0] >> 4;
    return Values<std::uint8_t, 1>{
        static_cast<std::uint8_t>((a * c & 15u) | ((c * b + d) & 15u) << 4)};  // first f, then g
};
/// The same modulo 2^32.
constexpr auto compose = [](Values<std::uint32_t, 2> f, Values<std::uint32_t, 2> g) {
    return Values<std::uint32_t, 2>{f[0] * g[0], g[0] * f[1] + g[1]};
};
/// Products of the matrices (a b; 0 c) modulo 2^32.
constexpr auto multiply = [](Values<std::uint32_t, 3> m, Values<std::uint32_t, 3> n) {
    return Values<std::uint32_t, 3>{m[0] * n[0], m[0] * n[1] + m[1] * n[2], m[2] * n[2]};
};

constexpr int exact_operations = 7;
/// Associative to the last bit.
inline std::unique_ptr<Operation> exact_operation(int which) {
    switch (which) {
        case 0:
            return std::make_unique<Numbers<std::uint64_t, 1, sum<std::uint64_t, 1>>>("sum", true);
        case 1:
            return std::make_unique<Numbers<std::uint64_t, 1, greater>>("max", true);
        case 2:
            return std::make_unique<Numbers<std::uint8_t, 1, sum<std::uint8_t, 1>>>("sum of bytes", true);
        case 3:
            return std::make_unique<Numbers<std::uint32_t, 3, sum<std::uint32_t, 3>>>("sum of triples", true);
        case 4:
            return std::make_unique<Numbers<std::uint8_t, 1, compose_in_byte>>("small affine maps", false);
        case 5:
            return std::make_unique<Numbers<std::uint32_t, 2, compose>>("affine maps", false);
        default:
            return std::make_unique<Numbers<std::uint32_t, 3, multiply>>("matrices", false);
    }
}
/// Its result depends on which operands are combined first.
inline std::unique_ptr<Operation> float_sum() {
    return std::make_unique<Numbers<float, 1, sum<float, 1>>>("sum of floats", true);
}

struct Reducer {
    Collective collective;
    Entry entry;
};
inline std::string name_of(const Reducer& reducer) {
    return std::string(coll::name(reducer.collective)) + ' ' + std::string(reducer.entry.name);
}

/// One call by all ranks.
struct Problem {
    std::vector<int> node_sizes;
    Placement placement;
    std::unique_ptr<Operation> operation;
    std::size_t elements = 0;
    int root = 0;
    std::vector<std::size_t> parts;  ///< bytes, of each rank: reduce_scatter's
    ClusterModel model;

    std::size_t bytes() const { return elements * operation->element; }
};

inline std::string describe(const Problem& problem, const Options& options) {
    std::ostringstream text;
    text << "nodes of";
    for (int size : problem.node_sizes) text << ' ' << size;
    text << " ranks, " << problem.placement.name << ", " << problem.operation->name << " of "
         << problem.elements << " elements, root " << problem.root << ", seed " << options.seed
         << ", tampered message " << options.tamper << ", failing combination "
         << problem.operation->fails_at;
    return text.str();
}

/// The elements dealt to the ranks as their parts: evenly, which may leave some out, or at random with some
/// ranks left out.
inline void deal(Problem& problem, Random& random) {
    const std::size_t element = problem.operation->element;
    std::vector<int> order(problem.placement.node.size());
    problem.parts.assign(order.size(), 0);
    if (pick(random, 0, 1) == 0) {
        const std::size_t each = (problem.elements + order.size() - 1) / order.size();
        problem.elements = each * order.size();
        for (std::size_t& part : problem.parts) part = each * element;
    } else {
        const int ranks = static_cast<int>(order.size()), takers = pick(random, 1, ranks);
        for (int i = 0; i < ranks; ++i) order[static_cast<std::size_t>(i)] = i;
        std::shuffle(order.begin(), order.end(), random);
        for (std::size_t i = 0; i < problem.elements; ++i) {
            const int taker = order[static_cast<std::size_t>(pick(random, 0, takers - 1))];
            problem.parts[static_cast<std::size_t>(taker)] += element;
        }
    }
}

inline Problem random_problem(Collective collective, const std::vector<int>& node_sizes, int placement,
                              Random& random) {
    constexpr std::size_t sizes[] = {0, 1, 2, 3, 7, 16, 33, 100};
    Problem problem;
    problem.node_sizes = node_sizes;
    problem.placement = place(node_sizes, placement, random);
    problem.operation = exact_operation(pick(random, 0, exact_operations - 1));
    problem.elements = sizes[pick(random, 0, 7)];
    const int ranks = static_cast<int>(problem.placement.node.size());
    problem.root = pick(random, 0, ranks - 1);
    if (collective == Collective::reduce_scatter) deal(problem, random);
    problem.model = random_model(random);
    return problem;
}

inline coll::Call call_of(const Problem& problem, Collective collective, PlaintextBuffer data) {
    coll::Call call;
    call.root = problem.root;
    call.data = data;
    call.reduction = problem.operation.get();
    if (collective == Collective::reduce_scatter) call.from.size = problem.parts;
    return call;
}

inline bool suits(const Reducer& reducer, const Problem& problem) {
    return !reducer.entry.suits ||
           reducer.entry.suits(Topology(problem.placement.node), call_of(problem, reducer.collective, {}));
}

/// A rank's vector, and around it what nobody may write to.
class Vector {
  public:
    static constexpr std::size_t margin = 5;
    explicit Vector(std::size_t size) : bytes_(size + 2 * margin, untouched) {}
    PlaintextBuffer data() { return PlaintextBuffer(bytes_).subspan(margin, bytes_.size() - 2 * margin); }
    bool intact() const {
        auto is_untouched = [](std::uint8_t byte) { return byte == untouched; };
        return std::all_of(bytes_.begin(), bytes_.begin() + margin, is_untouched) &&
               std::all_of(bytes_.end() - margin, bytes_.end(), is_untouched);
    }

  private:
    std::vector<std::uint8_t> bytes_;
};

using Bytes = std::vector<std::uint8_t>;

/// The part of a rank's vector that is promised to it.
struct Promise {
    std::size_t offset = 0, size = 0;
};
inline Promise promised(const Problem& problem, Collective collective, std::size_t rank) {
    if (collective == Collective::reduce && rank != static_cast<std::size_t>(problem.root)) return {};
    if (collective == Collective::exscan && rank == 0) return {};
    if (collective != Collective::reduce_scatter) return {0, problem.bytes()};
    Promise part{0, problem.parts[rank]};
    for (std::size_t before = 0; before < rank; ++before) part.offset += problem.parts[before];
    return part;
}

/// By rank: the operands of all ranks up to this one, reduced one after the other.
inline std::vector<Bytes> prefixes(const Problem& problem, const std::vector<Bytes>& given) {
    std::vector<Bytes> all = given;
    for (std::size_t rank = 1; rank < all.size(); ++rank)
        (void)problem.operation->combine(all[rank], all[rank - 1]);
    return all;
}

struct Reduced {
    Report report;
    std::vector<Bytes> results;  ///< by rank: its whole vector
    std::vector<char> intact;    ///< by rank: nothing beside the vector was written
};

inline std::vector<Bytes> random_operands(const Problem& problem) {
    std::vector<Bytes> given(problem.placement.node.size(), Bytes(problem.bytes()));
    Random random(problem.bytes());
    for (Bytes& operand : given)
        for (std::size_t at = 0; at < operand.size(); at += sizeof(std::uint64_t)) {
            const std::uint64_t number = random();
            std::memcpy(operand.data() + at, &number, std::min(sizeof number, operand.size() - at));
        }
    return given;
}

inline Reduced run(const Reducer& reducer, const Problem& problem, const std::vector<Bytes>& given,
                   const Options& options) {
    std::vector<Vector> vectors;
    std::vector<coll::Call> calls;
    vectors.reserve(given.size());
    for (const Bytes& operand : given) {
        vectors.emplace_back(operand.size());
        std::copy(operand.begin(), operand.end(), vectors.back().data().begin());
        calls.push_back(call_of(problem, reducer.collective, vectors.back().data()));
    }
    Reduced reduced;
    problem.operation->combined = 0;
    reduced.report = fabric::sim::run(
        Topology(problem.placement.node), problem.model,
        [&](fabric::Fabric& fabric) {
            return reducer.entry.run(fabric, calls[static_cast<std::size_t>(fabric.rank())]);
        },
        options);
    for (Vector& vector : vectors) {
        reduced.results.emplace_back(vector.data().begin(), vector.data().end());
        reduced.intact.push_back(vector.intact());
    }
    return reduced;
}

/// By rank: it has what is promised to it, and nothing beside its vector was written.
inline std::vector<char> rights(const Problem& problem, Collective collective,
                                const std::vector<Bytes>& before, const Reduced& reduced) {
    std::vector<char> all;
    for (std::size_t rank = 0; rank < before.size(); ++rank) {
        std::size_t last = before.size() - 1;
        if (collective == Collective::scan) last = rank;
        if (collective == Collective::exscan) last = rank == 0 ? 0 : rank - 1;
        const Promise part = promised(problem, collective, rank);
        const auto from = static_cast<std::ptrdiff_t>(part.offset);
        all.push_back(reduced.intact[rank] &&
                      std::equal(before[last].begin() + from,
                                 before[last].begin() + from + static_cast<std::ptrdiff_t>(part.size),
                                 reduced.results[rank].begin() + from));
    }
    return all;
}

/// One test per collective and algorithm.
class EveryReduction : public testing::TestWithParam<Reducer> {};
class EveryAllreduce : public testing::TestWithParam<Reducer> {};

inline std::vector<Reducer> every_reducer(const std::vector<Collective>& collectives) {
    std::vector<Reducer> all;
    for (Collective collective : collectives)
        for (const Entry& entry : coll::algorithms(collective)) all.push_back({collective, entry});
    return all;
}

inline std::vector<Reducer> every_reducer() {
    return every_reducer({Collective::reduce, Collective::allreduce, Collective::reduce_scatter,
                          Collective::scan, Collective::exscan});
}

inline std::string reducer_test_name(const testing::TestParamInfo<Reducer>& info) {
    std::string name = name_of(info.param);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '-' || c == ' '; }, '_');
    return name;
}

inline void PrintTo(const Reducer& reducer, std::ostream* to) {
    *to << name_of(reducer);
}

}  // namespace mpisec::test
