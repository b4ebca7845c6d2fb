// Independent pieces of work on all cores that this process may use.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace mpisec::cli {

inline std::size_t usable_cores() {
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? static_cast<std::size_t>(CPU_COUNT(&cores)) : 1;
}

/// Runs work(0) … work(count - 1), begun in this order, up to `most` at a time. An exception in one of them is thrown
/// on when all that were begun have ended.
template <class Work>
void side_by_side(std::size_t count, std::size_t most, Work work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex mutex;
    auto run = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            try {
                work(i);
            } catch (...) {
                const std::lock_guard lock(mutex);
                failure = std::current_exception();
                next = count;
            }
        }
    };
    {
        std::vector<std::jthread> others;
        try {
            for (std::size_t i = 1; i < std::min(count, most); ++i) others.emplace_back(run);
        } catch (const std::system_error&) {
            // No more threads can be started: those that exist do the work.
        }
        run();
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace mpisec::cli
