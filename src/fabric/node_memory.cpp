#include "fabric/node_memory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <mutex>
#include <utility>

namespace mpisec::fabric {
namespace {

constexpr std::size_t line = 64;  ///< bytes of a cache line
/// The front of a segment: how many processes have mapped it.
constexpr std::size_t front = line;
/// Making a segment takes milliseconds; a maker that takes longer has died.
constexpr std::chrono::seconds patience{5};
constexpr std::size_t first_growth = 256 * 1024;

std::size_t rounded(std::size_t bytes) {
    return (bytes + line - 1) / line * line;
}

auto no_memory(std::size_t bytes, int error) {
    return fail(std::to_string(bytes) +
                " bytes of memory that the ranks of this node share could not be had " +
                "in /dev/shm: " + std::strerror(error) +
                "; make it larger, or choose algorithms that use less (docs/collectives.md)");
}

/// Segments that this process made and not all mates have mapped. The lock on the descriptor tells others
/// that a living process will see to the name.
struct Unfinished {
    int descriptor;
    std::atomic<std::uint32_t>* mapped;
    unsigned mates;
};
std::mutex& unfinished_mutex = *new std::mutex;
auto& unfinished = *new std::vector<Unfinished>;  // never destroyed: exit() may come first

/// Unlocks those that all have mapped by now, and the one that `ends`.
void close_finished(const void* ends = nullptr) {
    std::lock_guard lock(unfinished_mutex);
    std::erase_if(unfinished, [&](const Unfinished& one) {
        if (one.mapped != ends && one.mapped->load(std::memory_order_relaxed) < one.mates) return false;
        close(one.descriptor);
        return true;
    });
}

/// A descriptor of the whole segment, or -1 and errno.
int make(const std::string& name, std::size_t bytes, bool sparse) {
    const int descriptor = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (descriptor < 0) return -1;
    flock(descriptor, LOCK_SH);
    // A full /dev/shm is an error here, not a bus error later.
    const auto size = static_cast<off_t>(bytes);
    const int error = !sparse                            ? posix_fallocate(descriptor, 0, size)
                      : ftruncate(descriptor, size) == 0 ? 0
                                                         : errno;
    if (error == 0) return descriptor;
    shm_unlink(name.c_str());
    close(descriptor);
    errno = error;
    return -1;
}

/// Waits until its maker has given it its size.
int open_made(const std::string& name, std::size_t bytes) {
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
        const int descriptor = shm_open(name.c_str(), O_RDWR, 0);
        if (descriptor < 0) return -1;
        struct stat status;
        const bool known = fstat(descriptor, &status) == 0, ours = known && status.st_uid == geteuid();
        if (ours && status.st_size == static_cast<off_t>(bytes)) return descriptor;
        close(descriptor);
        if (known && !ours) {
            errno = EACCES;
            return -1;
        }
        if (std::chrono::steady_clock::now() - start > patience) {
            errno = ETIMEDOUT;
            return -1;
        }
        sched_yield();
    }
}

}  // namespace

void remove_abandoned_names(std::chrono::seconds youngest) {
    DIR* directory = opendir("/dev/shm");
    if (!directory) return;
    while (const dirent* entry = readdir(directory)) {
        if (std::strncmp(entry->d_name, "mpisec-", 7) != 0) continue;
        const int descriptor =
            openat(dirfd(directory), entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (descriptor < 0) continue;
        struct stat status;
        if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
            std::time(nullptr) - status.st_ctime >= youngest.count() &&
            flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
        close(descriptor);
    }
    closedir(directory);
}

Result<SharedSegment> SharedSegment::attach(const std::string& name, std::size_t bytes, unsigned mates,
                                            bool sparse) {
    const std::size_t whole = front + rounded(bytes);
    int descriptor = make(name, whole, sparse);
    bool made = descriptor >= 0;
    if (descriptor < 0 && errno == EEXIST) descriptor = open_made(name, whole);
    if (descriptor < 0 && errno == ENOENT) {  // its maker found no memory
        descriptor = make(name, whole, sparse);
        made = descriptor >= 0;
    }
    if (descriptor < 0) return no_memory(whole, errno);
    void* memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    const int error = errno;
    if (!made || memory == MAP_FAILED) close(descriptor);
    if (memory == MAP_FAILED) return no_memory(whole, error);
    madvise(memory, whole, MADV_DONTDUMP);
    auto* mapped = static_cast<std::atomic<std::uint32_t>*>(memory);
    if (made) {
        std::lock_guard lock(unfinished_mutex);
        unfinished.push_back({descriptor, mapped, mates});
    }
    if (mapped->fetch_add(1) + 1 == mates) shm_unlink(name.c_str());
    close_finished();
    return SharedSegment({static_cast<std::uint8_t*>(memory) + front, whole - front});
}

bool SharedSegment::populate(std::span<std::uint8_t> part) {
#ifndef MADV_POPULATE_WRITE
    constexpr int MADV_POPULATE_WRITE = 23;  // linux/mman.h, since Linux 5.14
#endif
    // Not by touching it: where /dev/shm is full that would be a bus error. Older kernels do not know the
    // advice (EINVAL).
    return madvise(part.data(), part.size(), MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
}

SharedSegment::~SharedSegment() {
    if (bytes_.data()) close_finished(bytes_.data() - front);
    if (bytes_.data()) munmap(bytes_.data() - front, bytes_.size() + front);
}

/// Counters only grow, so that nobody has to reset them.
struct NodeMemory::Slot::Control {
    alignas(line) std::atomic<std::uint64_t> left;     ///< ranks that have left, of all collectives here
    alignas(line) std::atomic<std::uint64_t> arrived;  ///< ranks that have come to barriers, of all
    /// Number of the last collective in which one failed, of those with even and of those with odd numbers: a
    /// mate may be in the next one already.
    alignas(line) std::atomic<std::uint64_t> failed[2];
};

Result<NodeMemory> NodeMemory::attach(std::string name, unsigned mates) {
    auto base = SharedSegment::attach(name, slots * (sizeof(Slot::Control) + small_room), mates);
    if (!base) return tl::unexpected(base.error());
    return NodeMemory(std::move(name), mates, std::move(*base));
}

NodeMemory::NodeMemory(std::string name, unsigned mates, SharedSegment base) : base_(std::move(base)) {
    std::uint8_t* memory = base_.bytes().data();
    for (unsigned i = 0; i < slots; ++i) {
        auto* control = reinterpret_cast<Slot::Control*>(memory);
        memory += sizeof(Slot::Control);
        slots_.push_back(Slot(name + "-" + std::to_string(i), mates, control, {memory, small_room}));
        memory += small_room;
    }
}

bool NodeMemory::Slot::free() const {
    return control_->left.load(std::memory_order_acquire) >= uses_ * mates_;
}

void NodeMemory::Slot::enter() {
    if (uses_ > 0 && failed()) {
        for (const Grown& grown : grown_) shm_unlink(grown.name.c_str());  // some mate may never have come
        grown_.clear();
        rooms_.resize(1);
    }
    ++uses_;
    // Of what grew, the largest is kept: the next collective probably needs as much.
    if (grown_.size() > 1) {
        grown_.erase(grown_.begin(), grown_.end() - 1);
        rooms_.erase(rooms_.begin() + 1, rooms_.end() - 1);
    }
    used_ = 0;
}

Result<std::span<std::uint8_t>> NodeMemory::Slot::room(std::size_t bytes) {
    const std::size_t wanted = rounded(bytes);
    if (used_ + wanted > rooms_.back().size()) {
        const std::size_t size = std::max({first_growth, 2 * rooms_.back().size(), std::bit_ceil(wanted)});
        std::string name = name_ + "-" + std::to_string(uses_) + "-" + std::to_string(grown_.size());
        auto more = SharedSegment::attach(name, size, mates_);
        if (!more) return tl::unexpected(more.error());
        rooms_.push_back(more->bytes());
        grown_.push_back({std::move(name), std::move(*more)});
        used_ = 0;
    }
    const auto room = rooms_.back().subspan(used_, bytes);
    used_ += wanted;
    return room;
}

std::uint64_t NodeMemory::Slot::come() {
    control_->arrived.fetch_add(1, std::memory_order_acq_rel);
    return ++barriers_ * mates_;
}

bool NodeMemory::Slot::met(std::uint64_t barrier) const {
    return control_->arrived.load(std::memory_order_acquire) >= barrier;
}

void NodeMemory::Slot::fail() {
    control_->failed[uses_ % 2].store(uses_, std::memory_order_release);
}

bool NodeMemory::Slot::failed() const {
    return control_->failed[uses_ % 2].load(std::memory_order_acquire) == uses_;
}

void NodeMemory::Slot::leave() {
    control_->left.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace mpisec::fabric
