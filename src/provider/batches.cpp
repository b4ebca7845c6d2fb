#include "provider/batches.hpp"

#include <openssl/async.h>
#include <sys/eventfd.h>

#include <array>

namespace mpisec::provider {
namespace {

constexpr std::size_t lanes = 16;
// Empty lanes take as long as full ones: fewer buffers than this are faster one after the other.
constexpr std::size_t worth_it = 6;

/// Lies on the stack of its job.
struct Waiting : Batched {
    bool done = false;
};

/// Of the jobs of a thread. No other one can resume them: OpenSSL ends a job where it began.
class Queue {
  public:
    /// Fewer than fill the lanes are left.
    void add(Waiting& one) {
        waiting_[count_++] = &one;
        if (count_ == lanes) encrypt_all();
    }
    void encrypt_all();
    /// Jobs with these keys are over: their program has dropped them, or uses the context again.
    void forget(const Keyring& keys);

  private:
    std::array<Waiting*, lanes> waiting_{};
    std::size_t count_ = 0;
};

__attribute__((noinline)) Queue& queue() {
    static thread_local Queue waiting;
    return waiting;
}

/// Index in libraries() of the library with lanes; their number when there is none.
std::size_t lane_library() {
    static const std::size_t index = [] {
        std::size_t i = 0;
        while (i < libraries().size() && !libraries()[i]->encrypt_many) ++i;
        return i;
    }();
    return index;
}

void one_by_one(std::span<Batched* const> all) {
    for (Batched* one : all) {
        const mpisec_cipher_buffer& buffer = one->buffer;
        one->good = one->keys->crypt(true, buffer.to, buffer.from, buffer.n, buffer.iv);
    }
}

void in_lanes(std::span<Batched* const> all) {
    std::array<mpisec_cipher_buffer, most_together> buffers;
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::size_t library = lane_library();
        all[i]->buffer.key = all[i]->keys->get(library, true);
        if (!all[i]->buffer.key || library != lane_library()) return one_by_one(all);
        buffers[i] = all[i]->buffer;
    }
    const bool good = libraries()[lane_library()]->encrypt_many(buffers.data(), all.size()) == 0;
    for (Batched* one : all) one->good = good;
}

void Queue::encrypt_all() {
    for (const std::size_t key_n : std::initializer_list<std::size_t>{16, 24, 32}) {
        std::array<Batched*, lanes> group;
        std::size_t members = 0;
        for (std::size_t i = 0; i < count_; ++i)
            if (waiting_[i]->keys->key_n() == key_n) group[members++] = waiting_[i];
        encrypt_together(std::span(group).first(members));
    }
    for (std::size_t i = 0; i < count_; ++i) waiting_[i]->done = true;
    count_ = 0;
}

void Queue::forget(const Keyring& keys) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
        waiting_[i]->done = waiting_[i]->keys == &keys;
        if (!waiting_[i]->done) waiting_[kept++] = waiting_[i];
    }
    count_ = kept;
}

/// A descriptor that can always be read: a job can be resumed at any time.
int readable() {
    static const int descriptor = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    return descriptor;
}

void pause() {
    static const char name = 0;  // its address is the name of our descriptor
    ASYNC_WAIT_CTX* wait = ASYNC_get_wait_ctx(ASYNC_get_current_job());
    const bool told =
        wait && readable() >= 0 && ASYNC_WAIT_CTX_set_wait_fd(wait, &name, readable(), nullptr, nullptr);
    ASYNC_pause_job();
    if (told) ASYNC_WAIT_CTX_clear_fd(wait, &name);
}

}  // namespace

bool has_lanes() {
    return lane_library() < libraries().size();
}

void encrypt_together(std::span<Batched* const> all) {
    if (all.size() < worth_it || !has_lanes())
        one_by_one(all);
    else
        in_lanes(all);
}

bool in_async_job() {
    return ASYNC_get_current_job() && has_lanes();
}

void forget_in_batches(const Keyring& keys) {
    queue().forget(keys);
}

bool encrypt_in_batch(Keyring& keys, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                      std::uint8_t* iv) {
    Waiting mine{{&keys, {nullptr, to, from, n, iv}}};
    queue().add(mine);
    while (!mine.done) {
        pause();
        if (!mine.done) queue().encrypt_all();
    }
    return mine.good;
}

}  // namespace mpisec::provider
