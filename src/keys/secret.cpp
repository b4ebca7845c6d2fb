#include "keys/secret.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/error_line.hpp"
#include "base/locked_slab.hpp"

namespace mpisec::keys {
namespace {

struct Slot {
    std::uint8_t bytes[secret_bytes];
    bool alive;  ///< false in a child, where it is wiped with the rest
};

[[noreturn]] void die(const char* sentence) {
    write_error_line(std::string("mpisec: ") + sentence);
    std::abort();
}

/// Never destroyed: otherwise secrets in static variables might outlive it.
LockedSlab& slab() {
    static LockedSlab* const instance = new LockedSlab(sizeof(Slot));
    return *instance;
}

}  // namespace

Secret::Secret() {
    void* slot = slab().take();
    if (!slot) die("There is no memory for keys that child processes do not see.");
    bytes_ = (new (slot) Slot{{}, true})->bytes;
}

Secret::Secret(std::span<const std::uint8_t, secret_bytes> bytes) : Secret() {
    std::memcpy(bytes_, bytes.data(), secret_bytes);
}

Secret::Secret(Secret&& other) noexcept : bytes_(std::exchange(other.bytes_, nullptr)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
}

Secret::~Secret() {
    if (bytes_) slab().give_back(bytes_);
}

bool Secret::alive() const {
    return bytes_ && reinterpret_cast<const Slot*>(bytes_)->alive;
}

Secret Secret::random() {
    Secret secret;
    random_bytes(secret.data(), secret_bytes);
    return secret;
}

void wipe(void* bytes, std::size_t n) {
    explicit_bzero(bytes, n);
}

void random_bytes(void* bytes, std::size_t n) {
    auto* to = static_cast<std::uint8_t*>(bytes);
    while (n > 0) {
        ssize_t got = getrandom(to, n, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) die("The operating system gives no random bytes (getrandom failed).");
        to += got;
        n -= static_cast<std::size_t>(got);
    }
}

void die_of_wiped_secret() {
    write_error_line(
        "mpisec: A child process made by fork() asked for keys of its parent, which are wiped in children: "
        "it ends here. Only the parent may call MPI.");
    _exit(EXIT_FAILURE);  // neither exit handlers nor a core dump: both are the parent's business
}

}  // namespace mpisec::keys
