#include "fabric/node_memory.hpp"

#include <dirent.h>
#include <fcntl.h>
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
#include <utility>

#include "fabric/node_arena.hpp"
#include "fabric/pages.hpp"

namespace mpisec::fabric {
namespace {

constexpr std::size_t line = 64;  ///< bytes of a cache line
constexpr std::size_t front = NodeArena::front_bytes;
constexpr std::size_t first_growth = 256 * 1024;

std::size_t rounded(std::size_t bytes) {
    return (bytes + line - 1) / line * line;
}

auto no_memory(std::size_t bytes, int error) {
    if (error == EBADF)
        return fail(std::string("the descriptor of the memory that the ranks of this node share was not ") +
                    "there: the program must not close descriptors that it did not open");
    const char* remedy = error == ENOMEM ? "; the process may not have so much (ulimit -v)"
                         : error == EMFILE
                             ? "; let the process have more open files (ulimit -n)"
                             : "; make it larger, or choose algorithms that use less (docs/collectives.md)";
    return fail(std::to_string(bytes) +
                " bytes of memory that the ranks of this node share could not be allocated " +
                "in /dev/shm: " + std::strerror(error) + remedy);
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

Result<SharedSegment> SharedSegment::attach(const std::string& name, std::size_t bytes, unsigned node_peers,
                                            bool sparse) {
    const std::size_t whole = front + rounded(bytes);
    NodeArena* arena = NodeArena::get();
    void* memory = arena ? arena->attach(name, whole, node_peers, sparse) : nullptr;
    if (!memory) return no_memory(whole, errno);
    madvise(memory, whole, MADV_DONTDUMP);
    return SharedSegment({static_cast<std::uint8_t*>(memory) + front, whole - front});
}

void SharedSegment::forget(const std::string& name) {
    NodeArena::get()->forget(bytes_.data() - front, name);
}

bool SharedSegment::populate(std::span<std::uint8_t> part) {
    return populate_pages(part.data(), part.size());
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
}

SharedSegment::~SharedSegment() {
    if (bytes_.data()) NodeArena::detach(bytes_.data() - front, bytes_.size() + front);
}

/// Counters only grow, so that nobody has to reset them.
struct NodeMemory::Slot::Control {
    alignas(line) std::atomic<std::uint64_t> left;     ///< times that a rank has left a collective here
    alignas(line) std::atomic<std::uint64_t> arrived;  ///< times that a rank has arrived at a barrier here
    /// Number of the last collective in which a rank failed, one for even and one for odd numbers: a node peer may already be in the next
    /// collective.
    alignas(line) std::atomic<std::uint64_t> failed[2];
};

Result<NodeMemory> NodeMemory::attach(const std::string& name, unsigned node_peers, unsigned slots) {
    auto base = SharedSegment::attach(name, slots * (sizeof(Slot::Control) + small_room), node_peers);
    if (!base) return tl::unexpected(base.error());
    return NodeMemory(name, node_peers, slots, std::move(*base));
}

NodeMemory::NodeMemory(const std::string& name, unsigned node_peers, unsigned slots, SharedSegment base)
    : base_(std::move(base)) {
    std::uint8_t* memory = base_.bytes().data();
    for (unsigned i = 0; i < slots; ++i) {
        auto* control = reinterpret_cast<Slot::Control*>(memory);
        memory += sizeof(Slot::Control);
        slots_.push_back(Slot(name + "-" + std::to_string(i), node_peers, control, {memory, small_room}));
        memory += small_room;
    }
}

bool NodeMemory::Slot::free(std::uint64_t turn) const {
    return uses_ == turn && control_->left.load(std::memory_order_acquire) >= turn * node_peers_;
}

void NodeMemory::Slot::enter() {
    if (uses_ > 0 && failed()) {
        // Some node peer may never have attached it.
        for (Grown& grown : grown_) grown.memory.forget(grown.name);
        grown_.clear();
        rooms_.resize(1);
    }
    ++uses_;
    // Of the rooms that were added, the largest is kept: the next collective probably needs as much.
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
        auto more = SharedSegment::attach(name, size, node_peers_);
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
    return ++barriers_ * node_peers_;
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
