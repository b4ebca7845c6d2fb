// The hellos of start-up, as they arrive in clear: only those that agree in every setting pass, whatever a
// hello says of itself; the rest ends the job with a sentence that a terminal can show.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "check.hpp"
#include "fake_mpi.hpp"
#include "shim/runtime/state.hpp"
#include "shim/startup/cores.hpp"
#include "shim/startup/hello.hpp"
#include "wire/frame.hpp"

using namespace mpisec;
using namespace mpisec::shim;

namespace {

Hello genuine(int rank) {
    Hello hello;
    hello.protocol = protocol_version;
    hello.wire_version = wire::version;
    std::memcpy(hello.version.data(), "1", 1);
    std::memcpy(hello.host.data(), "node", 4);
    hello.nonce.fill(static_cast<std::uint8_t>(rank + 1));
    hello.place.fill(static_cast<std::uint8_t>(rank / 2));
    hello.rank = rank;
    hello.segment = 131072;
    hello.rekey_messages = 1u << 28;
    hello.rekey_bytes = 1ull << 38;
    hello.kernel = 7;
    hello.cpu_set = 9;
    hello.cpus = 2;
    hello.job.fill(5);
    return hello;
}

void check_sentences() {
    for (char c : fuzz::take_said()) FUZZ_CHECK(c == '\n' || (c >= ' ' && c <= '~'));
}

/// What must be alike on all ranks (docs/protocol.md).
bool agree(const Hello& one, const Hello& other) {
    return one.protocol == other.protocol && one.wire_version == other.wire_version &&
           std::strncmp(one.version.data(), other.version.data(), one.version.size()) == 0 &&
           one.policy == other.policy && one.threshold == other.threshold && one.segment == other.segment &&
           one.rekey_messages == other.rekey_messages && one.rekey_bytes == other.rekey_bytes &&
           one.selection == other.selection && one.purpose == other.purpose;
}

void check_nodes(const std::vector<Hello>& hellos) {
    const std::vector<std::int32_t> node = node_map(hellos);
    FUZZ_CHECK(node.size() == hellos.size());
    std::int32_t nodes = 0;
    for (std::size_t r = 0; r < hellos.size(); ++r) {
        FUZZ_CHECK(node[r] >= 0 && node[r] <= nodes);  // numbered by their lowest rank
        nodes = std::max(nodes, node[r] + 1);
        for (std::size_t other = 0; other < r; ++other)
            FUZZ_CHECK((node[r] == node[other]) == (hellos[r].place == hellos[other].place));
    }
    for (const Hello& hello : hellos) (void)oversubscribed(hellos, hello.rank);
    (void)cpus_of_job(hellos, node);
    const std::uint64_t threshold = pipeline_threshold(hellos);
    FUZZ_CHECK(threshold == hellos[0].threshold || threshold == 64 * 1024 || threshold == 512 * 1024);
}

/// Hellos of `ranks` with what the network makes of them.
std::vector<Hello> arriving(fuzz::Input& input, int ranks) {
    std::vector<Hello> hellos;
    for (int r = 0; r < ranks; ++r) hellos.push_back(genuine(r));
    auto* bytes = reinterpret_cast<std::uint8_t*>(hellos.data());
    while (!input.empty()) {
        const auto at = input.take<std::uint16_t>();
        bytes[at % (hellos.size() * sizeof(Hello))] = input.take<std::uint8_t>();
    }
    return hellos;
}

/// Along the tree (docs/protocol.md): the ranks below this one send theirs, the one above sends all.
void arrive_by_tree(const std::vector<Hello>& hellos, int rank) {
    constexpr int hellos_tag = 32767;
    const int ranks = static_cast<int>(hellos.size());
    const auto arrive_from = [&](int source, int begin, int end) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(hellos.data());
        fuzz::arrive({MPI_COMM_WORLD,
                      source,
                      hellos_tag,
                      {bytes + begin * sizeof(Hello), bytes + end * sizeof(Hello)}});
    };
    for (int bit = 1; (rank & bit) == 0 && rank + bit < ranks; bit *= 2)
        arrive_from(rank + bit, rank + bit, std::min(rank + 2 * bit, ranks));
    if (rank > 0) arrive_from(rank & (rank - 1), 0, ranks);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const int ranks = 1 + input.take<std::uint8_t>() % 6, rank = input.take<std::uint8_t>() % ranks;
    state.world.rank = rank;
    fuzz::install_fake_mpi(ranks);
    fuzz::reset_fake_mpi();
    std::vector<Hello> sent = arriving(input, ranks);
    const Hello own = genuine(rank);
    if (rank == 0) sent[0] = own;  // nobody sends it back
    arrive_by_tree(sent, rank);
    bool good = std::memcmp(&own, &sent[static_cast<std::size_t>(rank)], sizeof own) == 0;
    for (int r = 0; r < ranks; ++r) good = good && sent[static_cast<std::size_t>(r)].rank == r;
    for (const Hello& hello : sent)
        good = good && agree(hello, sent[0]) && (hello.job == own.job || hello.job == JobMark{});
    try {
        const std::vector<Hello> hellos = exchange_hellos(own, ranks, MPI_COMM_WORLD, {});
        for (const Hello& hello : hellos) FUZZ_CHECK(!name_of(hello).empty());
        require_agreement(hellos, rank);
        FUZZ_CHECK(good);
        check_nodes(hellos);
    } catch (const fuzz::Aborted&) {
        FUZZ_CHECK(!good);
    }
    check_sentences();
    return 0;
}
