#include "keys/secret.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error_line.hpp"
#include "base/locked_slab.hpp"

namespace mpisec::keys {
namespace {

// Memory is carved into blocks whose first slot is not a secret but tells that the block is alive: in a child it is wiped with the rest.
constexpr std::size_t secret_block_bytes = 4096;
constexpr std::uint8_t alive_mark = 0xA5;

std::uint8_t& mark_of(const std::uint8_t* slot) {
    return *reinterpret_cast<std::uint8_t*>(reinterpret_cast<std::uintptr_t>(slot) &
                                            ~(secret_block_bytes - 1));
}

[[noreturn]] void die(const char* sentence) {
    write_error_line(std::string("mpisec: ") + sentence);
    std::abort();
}

/// Slots of secret_bytes each, carved from locked mappings. A slot on the free list is all zero.
class Slab {
  public:
    std::uint8_t* take() {
        std::lock_guard lock(mutex_);
        if (free_.empty()) grow();
        std::uint8_t* slot = free_.back();
        free_.pop_back();
        ++in_use_;
        return slot;
    }

    void give_back(std::uint8_t* slot) {
        wipe(slot, secret_bytes);
        std::lock_guard lock(mutex_);
        free_.push_back(slot);  // never allocates: grow() reserved room for every slot
        --in_use_;
    }

    SecretMemory state() {
        std::lock_guard lock(mutex_);
        return {in_use_, slabs_, locked_};
    }

  private:
    void grow() {
        const std::size_t bytes =
            std::max<std::size_t>(16384, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
        void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) die("There is no memory for keys (mmap failed).");
        if (!hide_from_children(pages, bytes))
            die("Keys cannot be kept from child processes (madvise failed).");
        // A limit on locked memory is no reason to stop a job: swap is local to a node, which the attacker
        // does not own.
        if (mlock(pages, bytes) != 0) locked_ = false;
        madvise(pages, bytes, MADV_DONTDUMP);
        ++slabs_;
        auto* first = static_cast<std::uint8_t*>(pages);
        free_.reserve(slabs_ * bytes / secret_bytes);
        for (std::size_t at = bytes; at > 0;) {
            at -= secret_bytes;
            if (at % secret_block_bytes == 0)
                first[at] = alive_mark;
            else
                free_.push_back(first + at);
        }
    }

    std::mutex mutex_;
    std::vector<std::uint8_t*> free_;
    std::size_t in_use_ = 0;
    std::size_t slabs_ = 0;
    bool locked_ = true;
};

/// Never destroyed: otherwise secrets in static variables might outlive it.
Slab& slab() {
    static Slab* const instance = new Slab;
    return *instance;
}

}  // namespace

Secret::Secret() : bytes_(slab().take()) {}

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
    return bytes_ && mark_of(bytes_) == alive_mark;
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

SecretMemory secret_memory() {
    return slab().state();
}

}  // namespace mpisec::keys
