// The kernels by name, and how many threads of each a batch takes: for whoever launches them on a GPU, and to
// run them on the host, thread after thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "gpu/batch.hpp"

namespace mpisec::gpu {

struct Kernel {
    const char* name;  ///< in kernels.cu
    void (*thread)(const Batch& batch, std::uint32_t thread);
    std::uint32_t (*threads)(const Batch& batch);
};

namespace kernel {

inline constexpr Kernel crypt{"mpisec_crypt", [](const Batch& b, std::uint32_t t) { crypt_thread(b, t); },
                              [](const Batch& b) { return b.threads + mask_threads(b); }};
inline constexpr Kernel hash{"mpisec_hash", [](const Batch& b, std::uint32_t t) { hash_thread(b, t); },
                             [](const Batch& b) { return b.threads; }};
inline constexpr Kernel hash_windows{"mpisec_hash_windows",
                                     [](const Batch& b, std::uint32_t t) { hash_windows_thread(b, t); },
                                     [](const Batch& b) { return lanes * b.chunks; }};
inline constexpr Kernel fold{"mpisec_fold", [](const Batch& b, std::uint32_t t) { fold_thread(b, t); },
                             [](const Batch& b) { return b.chunks; }};
inline constexpr Kernel finish{"mpisec_finish", [](const Batch& b, std::uint32_t t) { finish_thread(b, t); },
                               [](const Batch& b) { return b.count; }};
inline constexpr Kernel wipe{"mpisec_wipe", [](const Batch& b, std::uint32_t t) { wipe_thread(b, t); },
                             [](const Batch& b) { return b.threads; }};

}  // namespace kernel

inline constexpr Kernel all_kernels[] = {kernel::crypt, kernel::hash,   kernel::hash_windows,
                                         kernel::fold,  kernel::finish, kernel::wipe};

/// Whether a warp for each chunk is faster than a thread for each strand: as measured, where packets have more than 8 KiB.
inline bool fills_warps(const Batch& batch) {
    return batch.threads > lanes / 2 * std::uint64_t{batch.chunks};
}

/// What a batch goes through, in order. `hash`: one of the two. Opening may be in place, so it hashes before it decrypts.
inline std::vector<Kernel> kernels_of(Task task, const Kernel& hash) {
    using namespace kernel;
    if (task == Task::counter_mode) return {crypt};
    if (task == Task::seal) return {crypt, hash, fold, finish};
    return {hash, fold, crypt, finish, wipe};
}

inline void run_on_host(std::span<const Kernel> kernels, const Batch& batch) {
    for (const Kernel& one : kernels) {
        const std::uint32_t threads = one.threads(batch);
        for (std::uint32_t thread = 0; thread < threads; ++thread) one.thread(batch, thread);
    }
}

}  // namespace mpisec::gpu
