// mpisec bench: crypto libraries in this process, everything that needs a cluster in bench/'s Python.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/bench_crypto.hpp"
#include "cli/commands.hpp"
#include "cli/python_command.hpp"
#include "coll/collective.hpp"

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
    CLI::App* bench = app.add_subcommand(
        "bench", "Measure the crypto libraries, and MPIsec and encrypted networks against plain MPI");
    bench->footer(
        "  mpisec bench all --quick -o results       everything below in under ten minutes, with a report\n"
        "  mpisec bench crypto --sizes 16,1M         what the crypto libraries do on this machine\n"
        "  mpisec bench pingpong --rate 10gbit       one-way times, plain and sealed by turns, on two lab "
        "nodes\n"
        "  mpisec bench pingpong --schemes mpisec,wireguard,ipsec\n"
        "  mpisec bench allgather --algorithms auto,naive,hsc --ranks 8\n"
        "  mpisec bench kernels --class A --rate 10gbit --nodes 4 --ranks 4\n"
        "  mpisec bench external --suite osu --dir ~/osu-micro-benchmarks\n"
        "  mpisec bench pingpong --launch 'mpiexec -n {ranks} -ppn {each}'    on your own cluster\n\n"
        "Each has its own --help.");
    bench->require_subcommand(1);
    add_bench_crypto(*bench, status);
    auto in_python = [&](const std::string& name, const char* description) {
        run_in_python(*bench->add_subcommand(name, description), status, "mpisec_bench", {name});
    };
    in_python("all", "Everything, into one directory, with a report");
    in_python("pingpong", "One-way times of messages between two nodes");
    in_python("mbw", "Bandwidth and message rate of several pairs");
    in_python("partitioned", "Partitioned messages beside the library's own and beside MPI_Isend");
    in_python("rma", "One-sided operations on the memory of another rank");
    in_python("io", "Collective access to a file");
    in_python("kernels", "Application kernels with the patterns of the NAS benchmarks");
    in_python("external", "OSU, IMB and NAS programs as they are");
    in_python("startup", "What MPI_Init costs");
    in_python("provider", "The OpenSSL provider beside OpenSSL, in cycles per byte");
    in_python("timeline", "Where the time went, from what MPISEC_TRACE wrote");
    in_python("owncost", "Nanoseconds in MPIsec itself per small message, network excluded");
    for (int i = 0; i < coll::collectives; ++i)
        in_python(std::string(name(static_cast<coll::Collective>(i))),
                  "Latency of the collective per size and algorithm");
}

void add_report(CLI::App& app, Status& status) {
    run_in_python(*app.add_subcommand("report", "A page with plots from the results of mpisec bench"), status,
                  "mpisec_bench.report", {});
}

}  // namespace mpisec::cli
