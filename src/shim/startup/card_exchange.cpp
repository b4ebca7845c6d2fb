#include "shim/startup/card_exchange.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/startup/waiting.hpp"

namespace mpisec::shim {
namespace {

constexpr const char* the_cards = "the other ranks' settings";
// The program's messages follow all of these, and MPI keeps messages in order.
constexpr int cards_tag = 32767;

/// Cards to receive. There is room for as many as there may be, but only what arrives takes memory.
struct Arriving {
    int from;
    std::size_t room;
    std::unique_ptr<std::uint8_t[]> bytes;
    MPI_Request request;
};

/// Cards being sent.
struct Leaving {
    std::vector<std::uint8_t> bytes;
    MPI_Request request;
};

class CardMessages {
  public:
    CardMessages(const Hello& own, int size, MPI_Comm comm, Nodes nodes, const config::Settings& settings)
        : own_(own), size_(size), comm_(comm), nodes_(nodes), settings_(settings) {}

    /// Begins to receive cards of at most `ranks` ranks from rank `from`.
    Arriving expect(int from, int ranks) const {
        Arriving arriving{from, std::min<std::size_t>(wire::longest_encoding(ranks), INT_MAX), nullptr, {}};
        arriving.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(arriving.room);
        check_mpi(real.Irecv(arriving.bytes.get(), static_cast<int>(arriving.room), constants.byte, from,
                             cards_tag, comm_, &arriving.request),
                  "MPI_Irecv");
        return arriving;
    }

    NodeCards wait(Arriving& arriving) const {
        MPI_Status status;
        int count = 0;
        check_mpi(complete(&arriving.request, the_cards, settings_, &status), "MPI_Irecv");
        check_mpi(real.Get_count(&status, constants.byte, &count), "MPI_Get_count");
        const auto bytes = static_cast<std::size_t>(std::clamp(count, 0, static_cast<int>(arriving.room)));
        std::optional<NodeCards> cards = wire::decode({arriving.bytes.get(), bytes}, size_, nodes_);
        if (!cards) {
            require_same_protocol({arriving.bytes.get(), bytes});
            abort_job(
                "The settings that rank " + std::to_string(arriving.from) +
                " sent did not arrive as it sent them; something between the nodes changes messages, or "
                "MPIsec is not loaded on every rank.");
        }
        return std::move(*cards);
    }

    std::unique_ptr<Leaving> send(const NodeCards& cards, int to) const {
        auto leaving = std::make_unique<Leaving>(Leaving{wire::encode(cards), {}});
        check_mpi(real.Isend(leaving->bytes.data(), static_cast<int>(leaving->bytes.size()), constants.byte,
                             to, cards_tag, comm_, &leaving->request),
                  "MPI_Isend");
        return leaving;
    }

    void wait(Leaving& leaving) const { complete_or_abort(&leaving.request, the_cards, settings_); }

  private:
    /// Another version of MPIsec says in the first bytes which one it is, whatever follows.
    void require_same_protocol(std::span<const std::uint8_t> bytes) const {
        Hello hello;
        if (bytes.size() < sizeof hello) return;
        std::memcpy(&hello, bytes.data(), sizeof hello);
        if (hello.protocol != protocol_version) require_agreement({own_, hello}, own_);
    }

    const Hello& own_;
    const int size_;
    const MPI_Comm comm_;
    const Nodes nodes_;
    const config::Settings& settings_;
};

void add(NodeCards& cards, const NodeCards& others, Nodes nodes) {
    auto both = merge(cards, others, nodes);
    if (!both)
        abort_job(
            "The settings of a rank arrived in two versions; something between the nodes changes messages.");
    cards = std::move(*both);
}

#ifdef OPEN_MPI

/// In each round a rank sends another rank all that it has found so far; after each round it knows of twice as many ranks. With a
/// power of two of ranks the rounds pair the ranks (recursive doubling); otherwise a rank sends to the rank `distance` below it
/// (dissemination: Hensgen, Finkel, Manber, International Journal of Parallel Programming 17(1), 1988). The first message between two
/// ranks makes Open MPI connect them, so it matters that there are few pairs: recursive doubling has half as many.
NodeCards gather(const Hello& own, int size, Nodes nodes, const CardMessages& messages) {
    const bool pairs = std::has_single_bit(static_cast<unsigned>(size));
    std::vector<int> to;
    std::vector<Arriving> arriving;
    // All receives at once: Open MPI looks at connections only every 10 ms while it knows of no peer on another node.
    for (int distance = 1; distance < size; distance *= 2) {
        to.push_back(pairs ? own.rank ^ distance : (own.rank - distance + size) % size);
        arriving.push_back(messages.expect(pairs ? to.back() : (own.rank + distance) % size, distance));
    }
    NodeCards cards = cards_of({own}, nodes);
    for (std::size_t round = 0; round < to.size(); ++round) {
        const auto leaving = messages.send(cards, to[round]);
        add(cards, messages.wait(arriving[round]), nodes);
        messages.wait(*leaving);
    }
    return cards;
}

#else

/// By a binomial tree: a rank collects the cards of the ranks below it, which are the next higher ranks, and the
/// root sends all cards down. MPI libraries connect two ranks at their first message, so it matters that there are few pairs (n - 1
/// here, n/2 log2(n) and more in exchanges among all ranks), and that one rank of a pair sends first: when two ranks of MPICH 5 over
/// libfabric's TCP connect to each other at the same moment, now and then both wait for ever.
NodeCards gather(const Hello& own, int size, Nodes nodes, const CardMessages& messages) {
    const int rank = own.rank;
    std::vector<int> children;
    std::vector<Arriving> arriving;
    for (int bit = 1; rank + bit < size && (rank & bit) == 0; bit *= 2) {
        children.push_back(rank + bit);
        arriving.push_back(messages.expect(rank + bit, std::min(bit, size - rank - bit)));
    }
    NodeCards cards = cards_of({own}, nodes);
    for (Arriving& each : arriving) add(cards, messages.wait(each), nodes);
    if (rank != 0) {
        const int parent = rank & (rank - 1);
        const auto leaving = messages.send(cards, parent);
        messages.wait(*leaving);
        Arriving all = messages.expect(parent, size);
        cards = messages.wait(all);
    }
    std::vector<std::unique_ptr<Leaving> > leaving;
    for (auto child = children.rbegin(); child != children.rend(); ++child)
        leaving.push_back(messages.send(cards, *child));
    for (const auto& each : leaving) messages.wait(*each);
    return cards;
}

#endif

}  // namespace

NodeCards gather_cards(const Hello& own, int size, MPI_Comm comm, Nodes nodes,
                       const config::Settings& settings) {
    return gather(own, size, nodes, CardMessages(own, size, comm, nodes, settings));
}

}  // namespace mpisec::shim
