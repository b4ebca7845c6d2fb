// mpisec bench: crypto libraries in this process, everything that needs a cluster in bench/'s Python.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/bench_crypto.hpp"
#include "cli/commands.hpp"
#include "cli/python_command.hpp"

namespace mpisec::cli {
namespace {

void add_bench_crypto(CLI::App& bench, Status& status) {
    auto options = std::make_shared<BenchCryptoOptions>();
    CLI::App* crypto =
        bench.add_subcommand("crypto", "Sealing and opening, per library and cipher, beside memcpy");
    crypto->footer(
        "  mpisec bench crypto\n"
        "  mpisec bench crypto --libraries openssl,boringssl --ciphers aes-256-gcm --sizes 16,64K,1M\n"
        "  mpisec bench crypto --threads 1,2,4 --json > crypto.json");
    crypto->add_option("--libraries", options->libraries, "these only; default: all that are there")
        ->delimiter(',');
    crypto->add_option("--ciphers", options->ciphers, "these only; default: all that a library offers")
        ->delimiter(',');
    crypto
        ->add_option("--sizes", options->sizes,
                     "plaintext bytes; K and M are powers of two; default: 16 to 4M")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false));
    crypto->add_option("--threads", options->threads, "numbers of threads at once; default: 1")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    crypto
        ->add_option("--repetitions", options->repetitions,
                     "rounds, of which the median is taken; default: 7")
        ->check(CLI::Range(1, 10000));
    crypto->add_flag("--json", options->json, "one JSON document instead of tables");
    crypto->callback([options, &status] { status = bench_crypto(*options); });
}

}  // namespace

void add_bench(CLI::App& app, Status& status) {
    CLI::App* bench =
        app.add_subcommand("bench", "Measure the crypto libraries, or sealed against plain MPI");
    bench->footer(
        "  mpisec bench crypto --sizes 16,1M         what the crypto libraries do on this machine\n"
        "  mpisec bench pingpong --rate 10gbit       one-way times, plain and sealed, in one run on two lab "
        "nodes\n"
        "  mpisec bench startup                      what MPI_Init costs on four lab nodes\n"
        "  mpisec bench allgather --algorithms auto,naive,hsc --ranks 8\n\n"
        "Each has its own --help.");
    bench->require_subcommand(1);
    add_bench_crypto(*bench, status);
    CLI::App* pingpong =
        bench->add_subcommand("pingpong", "One-way times, plain and sealed interleaved, on two lab nodes");
    run_in_python(*pingpong, status, "mpisec_bench", {"pingpong"});
    CLI::App* startup =
        bench->add_subcommand("startup", "What MPI_Init costs, plain and sealed by turns, on lab nodes");
    run_in_python(*startup, status, "mpisec_bench", {"startup"});
    for (const char* name :
         {"barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce",
          "reduce_scatter", "scan", "exscan", "neighbor_allgather", "neighbor_alltoall"}) {
        CLI::App* collective = bench->add_subcommand(
            name, "Latency per size and algorithm, plain and sealed interleaved, on lab nodes");
        run_in_python(*collective, status, "mpisec_bench", {name});
    }
}

}  // namespace mpisec::cli
