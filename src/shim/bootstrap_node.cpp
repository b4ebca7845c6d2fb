#include "shim/bootstrap_node.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sched.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "shim/constants.hpp"
#include "shim/errors.hpp"
#include "shim/real.hpp"

namespace mpisec::shim {
namespace {

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Sleeps until another process of the node changes `word` from `seen`, a few milliseconds at most. Members
/// sleep so that their leader has the core when there are more ranks than cores. (std::atomic::wait is for
/// the threads of one process.)
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
    timespec limit{0, 5'000'000};
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// What this process knows of its launcher without asking the network: alike for the ranks of one job on one
/// node, and different for those of another job. Launchers that say nothing leave it empty.
keys::Digest launcher_mark() {
    keys::Sha256 hash;
    for (const char* name :
         {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID", "FLUX_JOB_ID", "PBS_JOBID"}) {
        const char* value = std::getenv(name);
        hash.update(keys::as_bytes(value ? value : "-")).update(keys::as_bytes("\n"));
    }
    // Hydra: the process at the other end of the PMI socket, which is the node's proxy of this job.
    if (const char* descriptor = std::getenv("PMI_FD")) {
        ucred peer{};
        socklen_t n = sizeof peer;
        if (getsockopt(std::atoi(descriptor), SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0) {
            hash.update({reinterpret_cast<const std::uint8_t*>(&peer.pid), sizeof peer.pid});
        }
    }
    keys::Digest mark;
    hash.finish(mark.data());
    return mark;
}

keys::Digest aead_wish(const config::Settings& settings) {
    return keys::sha256(keys::as_bytes(settings.aead + "\n" + settings.plugin_dir));
}

std::string calibration_file(const config::Settings& settings) {
    return settings.cache_dir.empty() ? "" : settings.cache_dir + "/calibration.json";
}

aead::Selection select_or_abort(const config::Settings& settings) {
    auto selection = aead::select(settings.aead, calibration_file(settings));
    if (!selection) abort_job(selection.error().message);
    return *selection;
}

}  // namespace

void check_mpi(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    real.Error_string(code, text, &length);
    abort_job(std::string("The key exchange at start-up stopped in ") + call + ": " +
              std::string(text, length) + ".");
}

StallClock::StallClock(const config::Settings& settings, std::string waiting_for)
    : settings_(settings), waiting_for_(std::move(waiting_for)), begun_(seconds_now()) {}

void StallClock::look() {
    sched_yield();
    if (reported_ || settings_.stall_seconds <= 0) return;
    const double waited = seconds_now() - begun_;
    if (waited < settings_.stall_seconds) return;
    reported_ = true;
    std::string sentence =
        "MPI_Init has waited " + std::to_string(static_cast<int>(waited)) + " s for " + waiting_for_;
    if (settings_.stall_abort) abort_job(sentence + "; aborting the job, as MPISEC_STALL_ACTION=abort asks.");
    say(sentence + " (MPISEC_STALL_ACTION=abort ends the job then).");
}

/// One process that found the memory.
struct NodeMemory::Entry {
    std::atomic<std::uint32_t> written;   ///< 1: the rest of the entry is complete
    std::atomic<std::uint32_t> accepted;  ///< 1: on the list that the maker closed
    std::int32_t rank;
    std::int32_t size;
    keys::Digest launcher;
};

struct NodeMemory::Shared {
    std::atomic<std::uint32_t> stage;
    std::atomic<std::uint32_t> entered;  ///< entries taken
    std::atomic<std::uint32_t> copied;   ///< members that have the master
    std::int32_t maker;
    keys::Digest aead_wish;
    std::uint32_t cipher;
    std::array<std::array<char, 32>, aead::size_classes> libraries;
    keys::Digest agreement;
    std::array<std::uint8_t, keys::secret_bytes> master;

    Entry* entries() { return reinterpret_cast<Entry*>(this + 1); }
    static std::size_t bytes(std::size_t candidates) { return sizeof(Shared) + candidates * sizeof(Entry); }
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

NodeMemory::NodeMemory(int rank, int size, const config::Settings& settings)
    : rank_(rank), size_(size), settings_(settings) {
    check_mpi(real.Comm_split_type(constants.comm_world, MPI_COMM_TYPE_SHARED, rank, constants.info_null,
                                   &candidates_),
              "MPI_Comm_split_type");
    int place = 0, candidates = 1;
    check_mpi(real.Comm_rank(candidates_, &place), "MPI_Comm_rank");
    check_mpi(real.Comm_size(candidates_, &candidates), "MPI_Comm_size");
    if (candidates > 1) {
        if (place == 0) create(candidates);
        check_mpi(real.Bcast(name_, sizeof name_, constants.byte, 0, candidates_), "MPI_Bcast");
        if (place != 0) open(candidates);
        if (shared_) enter();
        check_mpi(real.Barrier(candidates_), "MPI_Barrier");
        if (shared_ && place == 0) close_list();
        if (shared_) learn_members();
    }
    if (members_.empty()) members_ = {rank};
}

NodeMemory::~NodeMemory() {
    if (shared_) munmap(shared_, bytes_);
    real.Comm_free(&candidates_);
}

bool NodeMemory::map(int descriptor, std::size_t candidates) {
    bytes_ = Shared::bytes(candidates);
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) return false;
    mlock(memory,
          bytes_);  // it will hold the master for a moment (S5); a limit on locked memory is tolerated
    madvise(memory, bytes_, MADV_DONTDUMP);
    shared_ = static_cast<Shared*>(memory);
    return true;
}

void NodeMemory::create(std::size_t candidates) {
    std::uint8_t random[16];
    keys::random_bytes(random, sizeof random);
    int at = std::snprintf(name_, sizeof name_, "/mpisec-");
    for (std::uint8_t byte : random) at += std::snprintf(name_ + at, sizeof name_ - at, "%02x", byte);

    int descriptor = shm_open(name_, O_RDWR | O_CREAT | O_EXCL, 0600);
    // posix_fallocate: a full /dev/shm is an error here, not a bus error later. The memory is all zero.
    bool made = descriptor >= 0 &&
                posix_fallocate(descriptor, 0, static_cast<off_t>(Shared::bytes(candidates))) == 0 &&
                map(descriptor, candidates);
    if (descriptor >= 0) close(descriptor);
    if (made) {
        shared_->maker = rank_;
        return;
    }
    if (descriptor >= 0) shm_unlink(name_);
    name_[0] = '\0';
    say("Shared memory could not be made in /dev/shm, so that the ranks of this node count as being on "
        "different nodes: "
        "their messages are sealed too, which costs time.");
}

/// Leaves shared_ null when the name leads to nothing, or to nothing of ours.
void NodeMemory::open(std::size_t candidates) {
    name_[sizeof name_ - 1] = '\0';
    if (std::strncmp(name_, "/mpisec-", 8) != 0) return;
    int descriptor = shm_open(name_, O_RDWR, 0);
    if (descriptor < 0) return;
    struct stat status;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        (status.st_mode & 077) == 0 && status.st_size == static_cast<off_t>(Shared::bytes(candidates))) {
        map(descriptor, candidates);
    }
    close(descriptor);
}

void NodeMemory::enter() {
    const std::size_t room = (bytes_ - sizeof(Shared)) / sizeof(Entry);
    const std::uint32_t place = shared_->entered.fetch_add(1);
    if (place >= room) return;
    own_ = shared_->entries() + place;
    own_->rank = rank_;
    own_->size = size_;
    own_->launcher = launcher_mark();
    own_->written.store(1, std::memory_order_release);
}

/// The maker decides, once, who is on the node; everybody reads the same answer.
void NodeMemory::close_list() {
    shm_unlink(name_);
    const std::size_t room = (bytes_ - sizeof(Shared)) / sizeof(Entry);
    std::vector<bool> taken(size_);
    for (Entry* entry = shared_->entries(); entry < shared_->entries() + room; ++entry) {
        if (!entry->written.load(std::memory_order_acquire)) continue;
        if (entry->size != size_ || entry->launcher != own_->launcher || entry->rank < rank_ ||
            entry->rank >= size_)
            continue;
        if (taken[entry->rank]) {
            abort_job("Two processes of this node say that they are rank " + std::to_string(entry->rank) +
                      ": something between the nodes changes messages.");
        }
        taken[entry->rank] = true;
        entry->accepted.store(1, std::memory_order_relaxed);
    }
    publish(formed);
}

void NodeMemory::learn_members() {
    await(formed, "the list of this node's ranks");
    if (!own_ || !own_->accepted.load(std::memory_order_relaxed)) {
        munmap(shared_, bytes_);
        shared_ = nullptr;
        return;
    }
    const std::size_t room = (bytes_ - sizeof(Shared)) / sizeof(Entry);
    for (Entry* entry = shared_->entries(); entry < shared_->entries() + room; ++entry) {
        if (entry->accepted.load(std::memory_order_relaxed)) members_.push_back(entry->rank);
    }
    std::sort(members_.begin(), members_.end());
}

void NodeMemory::publish(Stage stage) {
    shared_->stage.store(stage, std::memory_order_release);
    wake_all(shared_->stage);
}

void NodeMemory::await(Stage stage, const char* what) {
    StallClock stall(settings_,
                     std::string(what) + " from rank " + std::to_string(shared_->maker) + " of this node");
    for (;;) {
        std::uint32_t seen = shared_->stage.load(std::memory_order_acquire);
        if (seen >= stage) return;
        // The leader may still need a message of ours that MPI holds back until we call it.
        int flag = 0;
        real.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, candidates_, &flag, MPI_STATUS_IGNORE);
        sleep_while(shared_->stage, seen);
        stall.look();
    }
}

aead::Selection NodeMemory::select_aead() {
    if (members_.size() == 1) return select_or_abort(settings_);
    if (leads()) {
        aead::Selection selection = select_or_abort(settings_);
        shared_->aead_wish = aead_wish(settings_);
        shared_->cipher = static_cast<std::uint32_t>(selection.cipher);
        for (std::size_t i = 0; i < selection.library.size(); ++i) {
            std::string_view name = selection.library[i]->name();
            std::memcpy(shared_->libraries[i].data(), name.data(),
                        std::min(name.size(), shared_->libraries[i].size() - 1));
        }
        publish(selected);
        return selection;
    }
    await(selected, "the choice of crypto libraries");
    if (shared_->aead_wish != aead_wish(settings_)) return select_or_abort(settings_);
    aead::Selection selection;
    selection.cipher = static_cast<aead::Cipher>(shared_->cipher);
    for (std::size_t i = 0; i < selection.library.size(); ++i) {
        auto library = aead::load(shared_->libraries[i].data());
        if (!library) abort_job(library.error().message);
        selection.library[i] = *library;
    }
    return selection;
}

keys::Secret NodeMemory::share_master(std::optional<keys::Secret> from_leader,
                                      const keys::Digest& agreement) {
    if (members_.size() == 1) return std::move(*from_leader);
    if (leads()) {
        shared_->agreement = agreement;
        std::memcpy(shared_->master.data(), from_leader->data(), keys::secret_bytes);
        publish(mastered);
        StallClock stall(settings_, "the other ranks of this node to take the master secret");
        for (;;) {
            std::uint32_t copied = shared_->copied.load(std::memory_order_acquire);
            if (copied + 1 == members_.size()) break;
            sleep_while(shared_->copied, copied);
            stall.look();
        }
        keys::wipe(shared_->master.data(), shared_->master.size());
        return std::move(*from_leader);
    }
    await(mastered, "the job's master secret");
    if (shared_->agreement != agreement) {
        abort_job("The settings and node map that this rank received are not those that rank " +
                  std::to_string(shared_->maker) +
                  " of its node received: something between the nodes changes messages.");
    }
    keys::Secret master(shared_->master);
    shared_->copied.fetch_add(1, std::memory_order_release);
    wake_all(shared_->copied);
    return master;
}

}  // namespace mpisec::shim
