// mpisec bench: crypto libraries are measured in this process, everything that needs a cluster by the Python in bench/.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <tuple>

#include "cli/bench_crypto.hpp"
#include "cli/bench_engine.hpp"
#include "cli/bench_gpu.hpp"
#include "cli/commands.hpp"
#include "cli/python_command.hpp"
#include "coll/collective.hpp"

namespace mpisec::cli {
namespace {

CLI::Range bytes_of_memory() {
    return {std::uint64_t{1}, std::uint64_t{1} << 40, "bytes"};
}

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
        ->transform(CLI::AsSizeValue(false))
        ->check(bytes_of_memory());
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

void add_bench_engine(CLI::App& bench, Status& status) {
    auto options = std::make_shared<BenchEngineOptions>();
    CLI::App* engine = bench.add_subcommand(
        "engine", "Sealing and opening on several cores for one thread that sends or receives");
    engine->footer(
        "  mpisec bench engine\n"
        "  mpisec bench engine --packets 64K --messages 16M --threads 1,2,4,8,15 -o engine.json\n"
        "  mpisec bench engine --link tcp --dedicated");
    engine->add_option("--aead", options->aead, "cipher and library, as MPISEC_AEAD; default: auto");
    for (auto [name, sizes, text] :
         {std::tuple("--packets", &options->packets, "bytes of packets under one key; default: 1K to 128K"),
          std::tuple("--messages", &options->messages,
                     "bytes of large messages, sealed in segments; default: 1M,16M")})
        engine->add_option(name, *sizes, text)
            ->delimiter(',')
            ->transform(CLI::AsSizeValue(false))
            ->check(bytes_of_memory());
    engine
        ->add_option("--threads", options->threads,
                     "beside one, to which efficiency is relative; default: 1 to all hardware threads")
        ->delimiter(',')
        ->check(CLI::Range(1, 256));
    engine->add_flag("--dedicated", options->dedicated,
                     "one thread more, which only communicates; else it seals and opens while it waits");
    engine->add_option("--link", "memory: hands over in order; tcp: through a connection to this machine")
        ->check(CLI::IsMember({"memory", "tcp"}))
        ->each([options](const std::string& link) { options->tcp = link == "tcp"; });
    engine->add_option("--rounds", options->rounds, "turns per case; default: 7")->check(CLI::Range(1, 1000));
    engine->add_option("--milliseconds", options->milliseconds, "of a turn; default: 40")
        ->check(CLI::Range(0.1, 60000.0));
    engine->add_option("-o,--output", options->output, "the result, for mpisec report");
    engine->add_flag("--json", options->json, "print the result as JSON instead of a table");
    engine->callback([options, engine, &status] {
        options->words = "mpisec bench engine";
        for (const CLI::Option* given : engine->get_options())
            for (std::size_t i = 0; given->count() && given->get_name() != "--output" && i < 1; ++i)
                options->words +=
                    " " + given->get_name() +
                    (given->get_expected_max() ? " " + CLI::detail::join(given->results()) : "");
        status = bench_engine(*options);
    });
}

void add_bench_gpu(CLI::App& bench, Status& status) {
    auto options = std::make_shared<BenchGpuOptions>();
    CLI::App* gpu = bench.add_subcommand("gpu", "AES on a GPU, in its memory and from the host's");
    gpu->footer(
        "  mpisec bench gpu\n"
        "  mpisec bench gpu --ciphers aes-128-gcm --sizes 4K,64M --batch 1G\n\n"
        "Exit status: 0, 1 when the GPU fails or computes something wrong, 2 when there is none.");
    gpu->add_option("--device", options->device, "number of the GPU; default: 0");
    gpu->add_option("--ciphers", options->ciphers,
                    "aes-128-ctr, aes-256-ctr, aes-128-gcm, aes-256-gcm; default: all")
        ->delimiter(',');
    gpu->add_option("--sizes", options->sizes,
                    "bytes of a packet; K and M are powers of two; default: 4K to 64M")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false))
        ->check(bytes_of_memory());
    gpu->add_option("--batch", options->batch, "bytes of all packets of one start; default: 256M")
        ->transform(CLI::AsSizeValue(false))
        ->check(bytes_of_memory());
    gpu->add_option("--checks", options->checks,
                    "messages that are compared with OpenSSL first; default: 300")
        ->check(CLI::Range(1, 100000));
    gpu->add_option("--repetitions", options->repetitions, "rounds, of which the median is taken; default: 7")
        ->check(CLI::Range(1, 10000));
    gpu->add_flag("--json", options->json, "one JSON document instead of a table");
    gpu->callback([options, &status] { status = bench_gpu(*options); });
}

}  // namespace

void add_bench(CLI::App& app, Status& status) {
    CLI::App* bench = app.add_subcommand(
        "bench", "Measure the crypto libraries, and MPIsec and encrypted networks against plain MPI");
    bench->footer(
        "  mpisec bench all --quick -o results       everything below in under ten minutes, with a report\n"
        "  mpisec bench crypto --sizes 16,1M         what the crypto libraries do on this machine\n"
        "  mpisec bench engine                       and several cores together\n"
        "  mpisec bench gpu                          AES on a GPU\n"
        "  mpisec bench pingpong --rate 10gbit       one-way times, plain and sealed alternating, on two lab "
        "nodes\n"
        "  mpisec bench pingpong --schemes mpisec,wireguard,ipsec\n"
        "  mpisec bench allgather --algorithms auto,naive,hsc --ranks 8\n"
        "  mpisec bench kernels --class A --rate 10gbit --nodes 4 --ranks 4\n"
        "  mpisec bench external --suite osu --dir ~/osu-micro-benchmarks\n"
        "  mpisec bench pingpong --launch 'mpiexec -n {ranks} -ppn {each}'    on your own cluster\n\n"
        "Each has its own --help.");
    bench->require_subcommand(1);
    add_bench_crypto(*bench, status);
    add_bench_engine(*bench, status);
    add_bench_gpu(*bench, status);
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
