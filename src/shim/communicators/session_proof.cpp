#include "shim/communicators/session_proof.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/hex.hpp"
#include "fabric/pages.hpp"
#include "keys/hkdf.hpp"
#include "keys/secret.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/runtime/state.hpp"
#include "shim/startup/node_id.hpp"

namespace mpisec::shim {

namespace {

/// What each process of the group says of itself.
struct Entry {
    std::atomic<std::uint32_t> taken;  ///< 1: a process writes here
    std::atomic<std::uint32_t> stage;  ///< 1: entered; 2: the digest too
    std::int32_t job_rank;
    std::int32_t process;
    std::array<std::uint8_t, 16> nonce;
    keys::Digest seen;  ///< digest of all entries
};

enum Verdict : std::uint32_t { open, proven, failed };

struct Shared {
    std::atomic<std::uint32_t> verdict;
    Entry* entries() { return reinterpret_cast<Entry*>(this + 1); }
};
static_assert(sizeof(Shared) % alignof(Entry) == 0);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

std::string object_name(const std::string& tag, Ranks ranks, const std::vector<Hello>& hellos) {
    keys::Sha256 hash;
    hash.update(keys::as_bytes("mpisec session")).update(node_id());
    hash.update(keys::as_bytes(std::to_string(tag.size()) + ":" + tag));
    for (std::int32_t rank : ranks) hash.update(keys::as_bytes(std::to_string(rank) + ","));
    for (const Hello& hello : hellos) hash.update(hello.nonce);
    keys::Digest digest;
    hash.finish(digest.data());
    return "/mpisec-session-" + hex(std::span(digest).first(16));
}

/// A request that never completes by itself: testing it lets the MPI library make progress, for which a process
/// that has yet to arrive may wait.
class Progress {
  public:
    Progress() { started_ = real.Grequest_start(query, free, cancel, nullptr, &request_) == MPI_SUCCESS; }
    ~Progress() {
        if (!started_) return;
        real.Grequest_complete(request_);
        real.Wait(&request_, MPI_STATUS_IGNORE);
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void make() {
        int flag = 0;
        if (started_) real.Test(&request_, &flag, MPI_STATUS_IGNORE);
    }

  private:
    static int query(void*, MPI_Status* status) {
        real.Status_set_elements(status, constants.byte, 0);
        real.Status_set_cancelled(status, 0);
        return MPI_SUCCESS;
    }
    static int free(void*) { return MPI_SUCCESS; }
    static int cancel(void*, int) { return MPI_SUCCESS; }
    MPI_Request request_{};
    bool started_ = false;
};

class SharedList {
  public:
    SharedList(std::string name, std::size_t size) : name_(std::move(name)), size_(size) {}
    ~SharedList() {
        if (shared_) munmap(shared_, bytes());
        if (descriptor_ >= 0) close(descriptor_);
    }
    SharedList(const SharedList&) = delete;
    SharedList& operator=(const SharedList&) = delete;

    std::string attach();
    /// Enters the process with this rank in the group and waits for the verdict.
    std::string prove(std::size_t rank, std::int32_t job_rank);

  private:
    std::size_t bytes() const { return sizeof(Shared) + size_ * sizeof(Entry); }
    std::size_t count(std::uint32_t stage);
    keys::Digest digest();
    bool all_have_seen(const keys::Digest& all);
    void decide(Verdict verdict);

    std::string name_;
    std::size_t size_;
    Shared* shared_ = nullptr;
    int descriptor_ = -1;  ///< locked, so that no other job takes the name for abandoned
};

std::string SharedList::attach() {
    // The first process makes the object; all set its size, which fills new memory with zeros and changes nothing else.
    descriptor_ = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor_ < 0) return std::string("no memory could be shared in /dev/shm: ") + std::strerror(errno);
    flock(descriptor_, LOCK_SH);
    struct stat status;
    std::string wrong;
    if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        (status.st_mode & 077) != 0)
        wrong = "the memory in /dev/shm is not this user's alone";
    else if (const int error = fabric::allocate_in_file(descriptor_, 0, bytes()); error != 0)
        wrong = std::string("no memory could be shared in /dev/shm: ") + std::strerror(error);
    else if (void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
             memory == MAP_FAILED)
        wrong = std::string("no memory could be shared in /dev/shm: ") + std::strerror(errno);
    else
        shared_ = static_cast<Shared*>(memory);
    return wrong;
}

std::size_t SharedList::count(std::uint32_t stage) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < size_; ++i)
        n += shared_->entries()[i].stage.load(std::memory_order_acquire) >= stage;
    return n;
}

keys::Digest SharedList::digest() {
    keys::Sha256 hash;
    for (std::size_t i = 0; i < size_; ++i) {
        const Entry& entry = shared_->entries()[i];
        hash.update(
            keys::as_bytes(std::to_string(entry.job_rank) + " " + std::to_string(entry.process) + " "));
        hash.update(entry.nonce);
    }
    keys::Digest all;
    hash.finish(all.data());
    return all;
}

bool SharedList::all_have_seen(const keys::Digest& all) {
    if (count(2) != size_) return false;
    for (std::size_t i = 0; i < size_; ++i)
        if (shared_->entries()[i].seen != all) return false;
    return true;
}

/// After this nobody needs the name any more: all processes are in, or no later one could get in.
void SharedList::decide(Verdict verdict) {
    std::uint32_t expected = open;
    if (shared_->verdict.compare_exchange_strong(expected, verdict, std::memory_order_acq_rel))
        shm_unlink(name_.c_str());
}

std::string SharedList::prove(std::size_t rank, std::int32_t job_rank) {
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): attach() has mapped it, or prove() is not called
    Entry& own = shared_->entries()[rank];
    if (own.taken.exchange(1) != 0) {
        decide(failed);
        return "another process is there in this one's place";
    }
    own.job_rank = job_rank;
    own.process = getpid();
    keys::random_bytes(own.nonce.data(), own.nonce.size());
    own.stage.store(1, std::memory_order_release);
    const std::chrono::duration<double> time_limit(settings().node_seconds);
    const auto limit = std::chrono::steady_clock::now() + time_limit;
    Progress progress;
    bool complete = false;
    keys::Digest all{};
    while (shared_->verdict.load(std::memory_order_acquire) == open) {
        if (!complete && count(1) == size_) {
            all = own.seen = digest();
            own.stage.store(2, std::memory_order_release);
            complete = true;
        }
        if (complete && all_have_seen(all)) decide(proven);
        if (std::chrono::steady_clock::now() > limit) decide(failed);
        progress.make();
        usleep(100);
    }
    const bool good =
        shared_->verdict.load(std::memory_order_acquire) == proven && complete && all_have_seen(all);
    if (good) return "";
    return "only " + std::to_string(count(1)) + " of the group's " + std::to_string(size_) +
           " processes were found in this node's memory within MPISEC_NODE_TIME";
}

}  // namespace

std::vector<std::int32_t> job_ranks(MPI_Group group) {
    MPI_Session session;
    if (real.Session_init(constants.info_null, constants.errors_return, &session) != MPI_SUCCESS) return {};
    int size = 0;
    real.Group_size(group, &size);
    std::vector<int> own(static_cast<std::size_t>(size)), ranks(own.size(), MPI_UNDEFINED);
    std::iota(own.begin(), own.end(), 0);
    MPI_Group job;
    if (real.Group_from_session_pset(session, "mpi://WORLD", &job) == MPI_SUCCESS) {
        real.Group_translate_ranks(group, size, own.data(), job, ranks.data());
        real.Group_free(&job);
    }
    real.Session_finalize(&session);
    if (std::ranges::find(ranks, MPI_UNDEFINED) != ranks.end()) return {};
    return {ranks.begin(), ranks.end()};
}

std::string why_not_on_one_node(MPI_Group group, const std::string& tag, const std::vector<Hello>& hellos) {
    int size = 0, rank = MPI_UNDEFINED;
    real.Group_size(group, &size);
    real.Group_rank(group, &rank);
    if (rank == MPI_UNDEFINED) return "this process is not in the group";
    if (size == 1) return "";
    if (!launcher_is_known())
        return "the launcher does not say to which job this process belongs, so its processes cannot be told "
               "from those of another job";
    const std::vector<std::int32_t> ranks = job_ranks(group);
    if (ranks.empty()) return "the processes' ranks in the job are not known";
    const std::int32_t job_rank = ranks[static_cast<std::size_t>(rank)];
    name_process(job_rank);
    SharedList list(object_name(tag, ranks, hellos), static_cast<std::size_t>(size));
    std::string wrong = list.attach();
    return wrong.empty() ? list.prove(static_cast<std::size_t>(rank), job_rank) : wrong;
}

}  // namespace mpisec::shim
