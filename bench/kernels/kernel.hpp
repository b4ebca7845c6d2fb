/* What the kernels share: their classes, the clock, the line of JSON, numbers that every rank can make.
 *
 * The kernels have the communication patterns of the NAS Parallel Benchmarks (Bailey et al., "The NAS
 * Parallel Benchmarks", RNR-94-007; the MPI versions: NAS-95-020) and solve problems of their own whose
 * answers are known. All are used alike: `cg CLASS`. Rank 0 prints
 *   {"kernel": "cg", "class": "S", "ranks": 4, "seconds": T, "iterations": N, "verified": true,
 *    "megabytes_sent": M}
 * where T is the slowest rank's time for N iterations, after one that does not count,
 * and M what all ranks handed to sends and all-to-alls for others in that time (reductions are not counted).
 * A wrong answer is status 1, wrong usage 2. */
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace kernel {

/* The class that the command line asks for; ends the program when there is none such. */
template <class Size, std::size_t N>
const Size& choose(int argc, char** argv, const char* name, const std::array<Size, N>& sizes) {
    for (const Size& size : sizes)
        if (argc == 2 && argv[1][0] == size.letter && argv[1][1] == '\0') return size;
    std::fprintf(stderr,
                 "%s: the one argument is the class: S, W, A or B, for work of about 1, 2, 8 or 30 seconds "
                 "on 2 cores\n",
                 name);
    std::exit(2);
}

/* Indices first … first + count - 1 of n that are dealt out to `parts` in blocks, in order. */
struct Block {
    int first, count;
};

inline Block block(int n, int parts, int which) {
    auto edge = [&](int i) { return static_cast<int>(static_cast<std::int64_t>(n) * i / parts); };
    return {edge(which), edge(which + 1) - edge(which)};
}

/* splitmix64's finalizer: any rank makes the number of any index, so that data do not depend on who makes
 * them. */
inline std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

inline double uniform(std::uint64_t x) {
    return static_cast<double>(mix(x) >> 11) * 0x1p-53;
}

/* One program run: MPI, the clock, what was sent, the report. */
class Job {
  public:
    int rank = 0, ranks = 0;

    Job(int argc, char** argv, const char* name, char letter) : name_(name), letter_(letter) {
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    }

    void start() {
        MPI_Barrier(MPI_COMM_WORLD);
        sent_ = 0;
        started_ = MPI_Wtime();
    }

    void stop() { seconds_ = MPI_Wtime() - started_; }

    void sent(std::size_t bytes) { sent_ += static_cast<double>(bytes); }

    double sum(double mine) const {
        double all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return all;
    }

    double largest(double mine) const {
        double all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return all;
    }

    /* The problem cannot be dealt out to so many ranks: returns main's status. */
    int refuse(const std::string& why) {
        if (rank == 0) std::fprintf(stderr, "%s: %s\n", name_, why.c_str());
        return end(2);
    }

    /* Reports; `wrong` is empty when this rank holds the result right. Returns main's status. */
    int finish(int iterations, const std::string& wrong) {
        double seconds = largest(seconds_), megabytes = sum(sent_) / 1e6;
        int mine = wrong.empty() ? ranks : rank, complainant = 0;
        MPI_Allreduce(&mine, &complainant, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        bool verified = complainant == ranks;
        if (complainant == rank)
            std::fprintf(stderr, "%s: verification failed on rank %d: %s\n", name_, rank, wrong.c_str());
        if (rank == 0)
            std::printf(
                "{\"kernel\": \"%s\", \"class\": \"%c\", \"ranks\": %d, \"seconds\": %.6f, \"iterations\": "
                "%d, "
                "\"verified\": %s, \"megabytes_sent\": %.3f}\n",
                name_, letter_, ranks, seconds, iterations, verified ? "true" : "false", megabytes);
        std::fflush(stdout);
        return end(verified ? 0 : 1);
    }

  private:
    const char* name_;
    char letter_;
    double started_ = 0, seconds_ = 0, sent_ = 0;

    /* MPICH 4.0 over UCX may hang in MPI_Finalize across nodes unless all are quiet before (docs/lab.md). */
    static int end(int status) {
        MPI_Barrier(MPI_COMM_WORLD);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        MPI_Finalize();
        return status;
    }
};

/* A sentence when `found` is not below `limit` (nor a number), else nothing. */
inline std::string check_below(const char* what, double found, double limit) {
    if (found < limit) return {};
    char text[200];
    std::snprintf(text, sizeof text, "%s is %.9e, not below %.1e", what, found, limit);
    return text;
}

/* A sentence when `found` is off `expected` by more than the relative `tolerance`, else nothing. */
inline std::string check_equal(const char* what, double found, double expected, double tolerance) {
    double off = found - expected, most = tolerance * (expected < 0 ? -expected : expected);
    if (off <= most && -off <= most) return {};
    char text[200];
    std::snprintf(text, sizeof text, "%s is %.13e instead of %.13e", what, found, expected);
    return text;
}

}  // namespace kernel
