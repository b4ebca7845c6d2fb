#include "provider/workers.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/relax.hpp"
#include "base/signals_blocked.hpp"

namespace mpisec::provider {
namespace {

constexpr std::size_t max_threads = 64;
constexpr int spins = 2000;  // some microseconds: the next buffer of a stream comes at once

std::size_t wanted_threads() {
    const char* text = secure_getenv("MPISEC_PROVIDER_THREADS");
    if (!text || !*text) return 1;
    const auto wanted = static_cast<std::size_t>(std::max(1L, std::strtol(text, nullptr, 10)));
    cpu_set_t usable;
    const int cores = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
    return std::min({wanted, static_cast<std::size_t>(cores), max_threads});
}

std::size_t threads() {
    static const std::size_t count = wanted_threads();
    return count;
}

/// Parts of one buffer. A thread that comes too late finds none left, and nobody waits for it.
struct Shared {
    std::size_t parts;
    const std::function<void(std::size_t)>& work;  ///< of the caller, who waits until all parts are done
    std::atomic<std::size_t> next{0}, done{0};

    Shared(std::size_t count, const std::function<void(std::size_t)>& what) : parts(count), work(what) {}
    void take_parts() {
        for (std::size_t part; (part = next.fetch_add(1)) < parts;) {
            work(part);
            done.fetch_add(1, std::memory_order_release);
        }
    }
};

/// One buffer at a time. Threads start with the first buffer, and never end: after exit() began nobody waits for
/// them.
class Pool {
  public:
    /// work(part) for all parts. False, and nothing done, while another thread's buffer is under way.
    bool run(std::size_t parts, const std::function<void(std::size_t)>& work) {
        std::unique_lock turn(turn_, std::try_to_lock);
        if (!turn) return false;
        start();
        const auto shared = std::make_shared<Shared>(parts, work);
        {
            std::lock_guard lock(mutex_);
            shared_ = shared;
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        shared->take_parts();
        while (shared->done.load(std::memory_order_acquire) < parts) relax();
        return true;
    }

    pid_t process() const { return process_; }

  private:
    void start() {
        if (started_) return;
        started_ = true;
        const SignalsBlocked signals;
        try {
            for (std::size_t i = 1; i < threads(); ++i)
                std::thread([this, seen = generation_.load()] { serve(seen); }).detach();
        } catch (const std::system_error&) {  // a limit on threads: those that there are do the work
        }
    }

    void serve(unsigned seen) {
        for (;;) {
            for (int i = 0; i < spins && generation_.load(std::memory_order_acquire) == seen; ++i) relax();
            std::shared_ptr<Shared> shared;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return generation_.load() != seen; });
                seen = generation_.load();
                shared = shared_;
            }
            shared->take_parts();
        }
    }

    std::mutex turn_, mutex_;
    std::condition_variable wake_;
    std::atomic<unsigned> generation_{0};
    std::shared_ptr<Shared> shared_;
    bool started_ = false;
    const pid_t process_ = getpid();
};

/// A child of fork() has its parent's pool, but not its threads, and maybe a lock that one of them held: it gets
/// another.
Pool& pool() {
    static std::atomic<Pool*> current{nullptr};
    Pool* found = current.load();
    while (!found || found->process() != getpid()) {
        Pool* made = new Pool;
        if (current.compare_exchange_strong(found, made)) return *made;
        delete made;
    }
    return *found;
}

using PartVector = std::array<std::uint8_t, 16>;

/// The vector of each part, and after the last the one that follows. Taken before any part is written: it may be
/// ciphertext that the plaintext replaces.
std::vector<PartVector> vectors(int mode, const std::uint8_t* from, std::size_t n, const std::uint8_t* iv) {
    const std::size_t parts = (n + part_bytes - 1) / part_bytes;
    std::vector<PartVector> all(parts + 1);
    for (std::size_t i = 0; i <= parts; ++i) {
        const std::size_t before = std::min(i * part_bytes, n);
        std::memcpy(all[i].data(), iv, 16);
        if (mode == mpisec_ctr)
            add_blocks(all[i].data(), before / 16);
        else if (mode != mpisec_ecb && before > 0)
            std::memcpy(all[i].data(), from + before - 16, 16);
    }
    return all;
}

}  // namespace

void add_blocks(std::uint8_t* counter, std::uint64_t blocks) {
    for (int i = 15; i >= 0 && blocks > 0; --i) {
        blocks += counter[i];
        counter[i] = static_cast<std::uint8_t>(blocks);
        blocks >>= 8;
    }
}

bool has_threads() {
    return threads() > 1;
}

bool on_threads(std::size_t parts, const std::function<void(std::size_t)>& work) {
    return has_threads() && pool().run(parts, work);
}

bool can_share(int mode, bool encrypt) {
    if (!has_threads()) return false;
    return mode == mpisec_ecb || mode == mpisec_ctr ||
           (!encrypt && (mode == mpisec_cbc || mode == mpisec_cfb));
}

bool crypt_on_threads(Keyring& keys, bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                      std::uint8_t* iv) {
    std::size_t library = keys.library_for(encrypt, part_bytes);
    void* key = keys.get(library, encrypt);
    if (!key || library == openssl_index()) return keys.crypt(encrypt, to, from, n, iv);
    std::vector<PartVector> all = vectors(keys.mode(), from, n, iv);
    const PartVector next = all.back();
    std::atomic<bool> good{true};
    const auto part = [&](std::size_t i) {
        const std::size_t begin = i * part_bytes;
        if (libraries()[library]->crypt(key, encrypt, to + begin, from + begin,
                                        std::min(part_bytes, n - begin), all[i].data()) != 0)
            good = false;
    };
    if (!pool().run(all.size() - 1, part)) return keys.crypt(encrypt, to, from, n, iv);
    std::memcpy(iv, next.data(), next.size());
    return good;
}

}  // namespace mpisec::provider
