#include "shim/runtime/node_peers.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/small_file.hpp"

namespace mpisec::shim {
namespace {

#ifndef SYS_pidfd_open
constexpr long SYS_pidfd_open = 434;  // asm/unistd.h, since Linux 5.3
#endif

/// Field 22 of /proc/PID/stat (proc(5)), counted from behind the program's name, which may contain anything.
std::uint64_t start_of(pid_t process) {
    const std::string text = read_small_file(("/proc/" + std::to_string(process) + "/stat").c_str());
    std::size_t at = text.rfind(')');
    for (int number = 2; number < 22 && at != std::string::npos; ++number) at = text.find(' ', at + 1);
    return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at, nullptr, 10);
}

std::uint64_t inode(const char* path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

bool has_ended(const NodePeer& peer) {
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, peer.process, 0));
    if (descriptor < 0) return errno == ESRCH;  // kernels that do not know the call return another error
    // Readable when all threads have ended, also for a process that nobody has waited for yet.
    pollfd end{descriptor, POLLIN, 0};
    const bool ended = poll(&end, 1, 0) == 1 && (end.revents & POLLIN);
    close(descriptor);
    if (ended) return true;
    const std::uint64_t started = start_of(peer.process);
    return started != 0 && started != peer.started;  // another process has the number
}

}  // namespace

NodePeer this_process(std::int32_t rank) {
    return {rank, getpid(), start_of(getpid()), inode("/proc/self/ns/pid"), inode("/proc/self/ns/time")};
}

void NodePeers::know(std::vector<NodePeer> all, std::int32_t own_rank) {
    std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(all, own_rank, &NodePeer::rank);
    own_ = known != all.end() ? *known : this_process(own_rank);
    // Containers may have process numbers, and a clock, of their own.
    std::erase_if(all, [this](const NodePeer& peer) {
        return peer.rank == own_.rank || peer.numbering != own_.numbering || !peer.numbering ||
               peer.clock != own_.clock || !peer.started;
    });
    peers_ = std::move(all);
}

void NodePeers::forget() {
    std::lock_guard lock(mutex_);
    peers_.clear();
}

std::int32_t NodePeers::dead() {
    std::lock_guard lock(mutex_);
    // A process that was restored from a checkpoint has another start time than the one it knows, and so have its peers.
    if (peers_.empty() || this_process(own_.rank) != own_) return -1;
    for (const NodePeer& peer : peers_)
        if (has_ended(peer)) return peer.rank;
    return -1;
}

}  // namespace mpisec::shim
