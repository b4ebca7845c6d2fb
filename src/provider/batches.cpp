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
struct Waiting {
    Keyring* keys;
    mpisec_cipher_buffer buffer;
    bool done = false, good = false;
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

void one_by_one(const std::vector<Waiting*>& all) {
    for (Waiting* one : all) {
        const mpisec_cipher_buffer& buffer = one->buffer;
        one->good = one->keys->crypt(true, buffer.to, buffer.from, buffer.n, buffer.iv);
        one->done = true;
    }
}

void together(const std::vector<Waiting*>& all) {
    std::vector<mpisec_cipher_buffer> buffers;
    for (Waiting* one : all) {
        std::size_t library = lane_library();
        one->buffer.key = one->keys->get(library, true);
        if (!one->buffer.key || library != lane_library()) return one_by_one(all);
        buffers.push_back(one->buffer);
    }
    const bool good = libraries()[lane_library()]->encrypt_many(buffers.data(), buffers.size()) == 0;
    for (Waiting* one : all) one->good = good, one->done = true;
}

void encrypt_all() {
    std::vector<Waiting*> all;
    all.swap(queue());
    for (const std::size_t key_n : std::initializer_list<std::size_t>{16, 24, 32}) {
        std::vector<Waiting*> group;
        for (Waiting* one : all)
            if (one->keys->key_n() == key_n) group.push_back(one);
        if (group.size() < worth_it)
            one_by_one(group);
        else
            together(group);
    }
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

bool in_async_job() {
    return ASYNC_get_current_job() && lane_library() < libraries().size();
}

bool encrypt_in_batch(Keyring& keys, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                      std::uint8_t* iv) {
    Waiting mine{&keys, {nullptr, to, from, n, iv}};
    queue().push_back(&mine);
    if (queue().size() == lanes) encrypt_all();
    while (!mine.done) {
        pause();
        if (!mine.done) encrypt_all();
    }
    return mine.good;
}

}  // namespace mpisec::provider
