// `mpisec bench gpu`: AES on a GPU (docs/gpu.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mpisec::cli {

struct BenchGpuOptions {
    int device = 0;
    std::vector<std::string> ciphers = {"aes-128-ctr", "aes-256-ctr", "aes-128-gcm", "aes-256-gcm"};
    std::vector<std::size_t> sizes = {4096, 16384, 65536, 131072, 1048576, 67108864};  ///< bytes of a packet
    std::size_t batch = std::size_t{256} << 20;  ///< bytes of the packets that are sealed at once
    int checks = 300;                            ///< messages compared with OpenSSL before anything is timed
    int repetitions = 7;
    bool json = false;
};

/// Measures and prints to standard output; returns the exit status: 0, 2 when there is no GPU or an option names
/// something that is not there, 1 when the GPU fails or computes something wrong.
int bench_gpu(const BenchGpuOptions& options);

}  // namespace mpisec::cli
