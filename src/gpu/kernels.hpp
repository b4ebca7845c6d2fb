// The kernels by name, and how many threads of each a batch takes: for whoever launches them on a GPU, and to
// run them on the host, thread after thread.
#pragma once

#include <span>
#include <string_view>

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
inline constexpr Kernel fold{"mpisec_fold", [](const Batch& b, std::uint32_t t) { fold_thread(b, t); },
                             [](const Batch& b) { return b.chunks; }};
inline constexpr Kernel finish{"mpisec_finish", [](const Batch& b, std::uint32_t t) { finish_thread(b, t); },
                               [](const Batch& b) { return b.count; }};
inline constexpr Kernel wipe{"mpisec_wipe", [](const Batch& b, std::uint32_t t) { wipe_thread(b, t); },
                             [](const Batch& b) { return b.threads; }};

}  // namespace kernel

inline constexpr Kernel all_kernels[] = {kernel::crypt, kernel::hash, kernel::fold, kernel::finish,
                                         kernel::wipe};
// What a batch goes through, in order. Opening may be in place, so it hashes before it decrypts.
inline constexpr Kernel counter_mode[] = {kernel::crypt};
inline constexpr Kernel sealing[] = {kernel::crypt, kernel::hash, kernel::fold, kernel::finish};
inline constexpr Kernel opening[] = {kernel::hash, kernel::fold, kernel::crypt, kernel::finish, kernel::wipe};

inline std::span<const Kernel> kernels_of(Task task) {
    if (task == Task::counter_mode) return counter_mode;
    if (task == Task::seal) return sealing;
    return opening;
}

inline void run_on_host(std::span<const Kernel> kernels, const Batch& batch) {
    for (const Kernel& one : kernels) {
        const std::uint32_t threads = one.threads(batch);
        for (std::uint32_t thread = 0; thread < threads; ++thread) one.thread(batch, thread);
    }
}

}  // namespace mpisec::gpu
