#include "provider/batches.hpp"

#include <openssl/async.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <vector>

namespace mpisec::provider {
namespace {

constexpr std::size_t lanes = 16;
// Empty lanes take as long as full ones: fewer buffers than this are faster one after the other.
constexpr std::size_t worth_it = 6;

/// Lies on the stack of its job.
struct Waiting : Batched {
    bool done = false;
};

// A job is resumed by the thread that started it.
__attribute__((noinline)) std::vector<Waiting*>& queue() {
    static thread_local std::vector<Waiting*> waiting;
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
    std::vector<mpisec_cipher_buffer> buffers;
    for (Batched* one : all) {
        std::size_t library = lane_library();
        one->buffer.key = one->keys->get(library, true);
        if (!one->buffer.key || library != lane_library()) return one_by_one(all);
        buffers.push_back(one->buffer);
    }
    const bool good = libraries()[lane_library()]->encrypt_many(buffers.data(), buffers.size()) == 0;
    for (Batched* one : all) one->good = good;
}

void encrypt_all() {
    std::vector<Waiting*> all;
    all.swap(queue());
    for (const std::size_t key_n : std::initializer_list<std::size_t>{16, 24, 32}) {
        std::vector<Batched*> group;
        for (Waiting* one : all)
            if (one->keys->key_n() == key_n) group.push_back(one);
        encrypt_together(group);
    }
    for (Waiting* one : all) one->done = true;
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

bool encrypt_in_batch(Keyring& keys, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                      std::uint8_t* iv) {
    Waiting mine{{&keys, {nullptr, to, from, n, iv}}};
    queue().push_back(&mine);
    if (queue().size() == lanes) encrypt_all();
    while (!mine.done) {
        pause();
        if (!mine.done) encrypt_all();
    }
    return mine.good;
}

}  // namespace mpisec::provider
