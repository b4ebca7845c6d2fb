#include "shim/startup/node_proof.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "base/hex.hpp"
#include "config/calibration_file.hpp"
#include "fabric/node_arena.hpp"
#include "fabric/node_memory.hpp"
#include "fabric/pages.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/startup/waiting.hpp"

namespace mpisec::shim {
namespace {

/// Another rank may still need a message of ours that MPI holds back until we call it.
void keep_moving() {
    int flag = 0;
    real.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, constants.comm_world, &flag, MPI_STATUS_IGNORE);
}

/// Sleeps between looks at a word that another process of the node will change. Ranks sleep so that others have
/// the core where there are more ranks than cores; not for long at first, because the MPI library may be
/// connecting this rank, or making the channel, and does so only while it is called.
class Nap {
  public:
    /// Sleeps until `word` is no longer `seen`, or for a moment. (std::atomic::wait is for the threads of one process.)
    void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
        const timespec limit{0, nanoseconds_};
        syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
        nanoseconds_ = std::min(2 * nanoseconds_, longest);
        keep_moving();
    }

  private:
    static constexpr long shortest = 100'000, longest = 5'000'000;
    long nanoseconds_ = shortest;
};

void wake_all(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

keys::Digest aead_wish(const config::Settings& settings) {
    return keys::sha256(keys::as_bytes(settings.aead + "\n" + settings.plugin_dir));
}

aead::Selection select_or_abort(const config::Settings& settings) {
    auto selection = aead::select(settings.aead, config::calibration_path(settings));
    if (!selection) abort_job(selection.error().message);
    return *selection;
}

const NodeCard& card_with(const NodeCards& cards, std::int32_t rank) {
    return *std::ranges::find_if(
        cards, [&](const NodeCard& card) { return std::ranges::binary_search(card.ranks, rank); });
}

}  // namespace

/// One process that found the memory, at the place of its rank among the members.
struct NodeProof::Entry {
    std::atomic<std::uint32_t> taken;    ///< 1: by a process
    std::atomic<std::uint32_t> written;  ///< 1: complete
    Hello hello;
    NodePeer process;
};

/// Entries follow it, one for each member.
struct alignas(std::max_align_t) NodeProof::Shared {
    std::atomic<std::uint32_t> stage;
    std::atomic<std::uint32_t> entered;
    std::atomic<std::uint32_t> copied;  ///< members that have the job secret
    keys::Digest cards;                 ///< as the leader received them
    keys::Digest aead_wish;
    std::uint32_t cipher;
    std::array<std::array<char, 32>, aead::size_classes> libraries;
    std::array<std::uint8_t, keys::secret_bytes> job_secret;
    aead::Speed cipher_speed;

    Entry* entries() {
        static_assert(alignof(Entry) <= alignof(Shared));
        return reinterpret_cast<Entry*>(this + 1);
    }
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

NodeProof::NodeProof(const NodeCards& cards, const Hello& own, const config::Settings& settings)
    : cards_(cards),
      card_(card_with(cards, own.rank)),
      own_(own),
      settings_(settings),
      members_(card_.ranks) {
    const bool crosses_nodes = cards.size() > 1;
    if (members_.size() == 1) {
        require_card();
        if (crosses_nodes) selection_ = select_or_abort(settings_);
        return;
    }
    bytes_ = sizeof(Shared) + members_.size() * sizeof(Entry);
    name_ = "/mpisec-" + hex(card_.hello.nonce);
    leads() ? create() : open();
    enter();
    if (leads() && crosses_nodes) choose_aead();  // while the other ranks arrive
    leads() ? close_list() : require_listed();
}

NodeProof::~NodeProof() {
    if (shared_) munmap(shared_, bytes_);
    if (descriptor_ >= 0) close(descriptor_);
}

void NodeProof::keep() {
    if (members_.size() == 1) return;
    if (const int error = fabric::NodeArena::open(descriptor_, arena_begin()))
        abort_job(std::string("The memory that the ranks of this node share could not be mapped: ") +
                  std::strerror(error) + ".");
}

off_t NodeProof::arena_begin() const {
    return fabric::NodeArena::begin_after(bytes_);
}

bool NodeProof::map(int descriptor) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) return false;
    // It will hold the job secret for a moment (S5); a limit on locked memory is tolerated.
    mlock(memory, bytes_);
    madvise(memory, bytes_, MADV_DONTDUMP);
    shared_ = static_cast<Shared*>(memory);
    return true;
}

void NodeProof::abort_without(int error) const {
    abort_job(
        "The " + std::to_string(bytes_) +
        " bytes of shared memory that the ranks of this node need at start-up could not be allocated in " +
        "/dev/shm: " + std::strerror(error) + ".");
}

void NodeProof::create() {
    fabric::remove_abandoned_names();
    int descriptor = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (descriptor >= 0) flock(descriptor, LOCK_SH);  // says that its name has not been abandoned
    // allocate_in_file: a full /dev/shm is an error here, not a bus error later. The memory is all zero.
    int error = descriptor < 0 ? errno : fabric::allocate_in_file(descriptor, 0, bytes_);
    if (error == 0 && !map(descriptor)) error = errno;
    if (error == 0) {
        descriptor_ = descriptor;
        return;
    }
    if (descriptor >= 0) {
        shm_unlink(name_.c_str());
        close(descriptor);
    }
    abort_without(error);
}

/// Waits until the leader has made the memory.
void NodeProof::open() {
    const std::string leader = name_of(cards_, members_.front());
    StallClock stall(settings_, "shared memory with " + leader);
    while (!shared_) {
        int descriptor = shm_open(name_.c_str(), O_RDWR, 0);
        if (descriptor >= 0) {
            struct stat status;
            bool ours = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                        status.st_uid == geteuid() && (status.st_mode & 077) == 0 &&
                        status.st_size == static_cast<off_t>(bytes_);
            if (ours && map(descriptor))
                descriptor_ = descriptor;
            else
                close(descriptor);
        }
        if (stall.seconds() > settings_.node_seconds) {
            abort_job(leader + " says that it is on this node, but no memory could be shared with it" +
                      too_late());
        }
        if (!shared_) {
            usleep(200);
            keep_moving();
        }
        stall.look();
    }
}

void NodeProof::enter() {
    auto place = std::lower_bound(members_.begin(), members_.end(), own_.rank) - members_.begin();
    Entry& entry = shared_->entries()[place];
    // An attacker who leads connections of one job to another may send a process of the other job here, too: only one of the
    // two processes may have this rank's keys (S4).
    if (entry.taken.exchange(1) != 0)
        abort_job(
            "Another process has taken the place of this rank among those of its node: something between the "
            "nodes redirects one job's connections to another.");
    entry.hello = own_;
    entry.process = this_process(own_.rank);
    entry.written.store(1, std::memory_order_release);
    shared_->entered.fetch_add(1, std::memory_order_release);
    wake_all(shared_->entered);
}

/// The end of a sentence: how long this rank has waited.
std::string NodeProof::too_late() const {
    return " within " + std::to_string(static_cast<long>(settings_.node_seconds)) +
           " s. Where ranks start more slowly, set MPISEC_NODE_TIME to more.";
}

/// Ranks of a node arrive here within moments of each other; a rank that does not arrive within MPISEC_NODE_TIME was
/// never on this node, or its hello was changed.
void NodeProof::close_list() {
    StallClock stall(settings_, "the other ranks of this node to share memory");
    Nap nap;
    for (;;) {
        std::uint32_t entered = shared_->entered.load(std::memory_order_acquire);
        if (entered >= members_.size() || stall.seconds() > settings_.node_seconds) break;
        nap.sleep_while(shared_->entered, entered);
        stall.look();
    }
    shm_unlink(name_.c_str());
    if (const int error = fabric::NodeArena::format(descriptor_, arena_begin())) abort_without(error);
    for (std::size_t i = 0; i < members_.size(); ++i) {
        Entry& entry = shared_->entries()[i];
        const bool came = entry.written.load(std::memory_order_acquire);
        if (!came || entry.hello.rank != members_[i]) {
            abort_job(name_of(cards_, members_[i]) +
                      " says that it is on this node, but does not share its memory" +
                      (came ? "." : too_late()));
        }
    }
    require_agreement(hellos(), own_);
    require_card();
    shared_->cards = digest(cards_);
    publish(formed);
}

/// Called by the leader: checks that the card that the network brought is what these ranks sent.
void NodeProof::require_card() const {
    if (wire::encode(wire::cards_of(hellos(), Nodes::by_id)) == wire::encode({card_})) return;
    abort_job(
        "What this node's ranks said of themselves came back changed; something between the nodes changes "
        "messages.");
}

std::vector<Hello> NodeProof::hellos() const {
    if (!shared_) return {own_};
    std::vector<Hello> all;
    for (std::size_t i = 0; i < members_.size(); ++i) all.push_back(shared_->entries()[i].hello);
    return all;
}

void NodeProof::require_listed() {
    await(formed, "the list of this node's ranks");
    require_agreement(hellos(), own_);
    if (shared_->cards == digest(cards_)) return;
    abort_job("The settings and node map that this rank received are not those that " +
              name_of(cards_, members_.front()) + " received: something between the nodes changes messages.");
}

std::vector<NodePeer> NodeProof::processes() const {
    std::vector<NodePeer> all;
    for (std::size_t i = 0; shared_ && i < members_.size(); ++i) all.push_back(shared_->entries()[i].process);
    return all;
}

void NodeProof::publish(Stage stage) {
    shared_->stage.store(stage, std::memory_order_release);
    wake_all(shared_->stage);
}

void NodeProof::await(Stage stage, const char* what) {
    StallClock stall(settings_, std::string(what) + " from " + name_of(cards_, members_.front()));
    Nap nap;
    for (;;) {
        std::uint32_t seen = shared_->stage.load(std::memory_order_acquire);
        if (seen >= stage) return;
        nap.sleep_while(shared_->stage, seen);
        stall.look();
    }
}

void NodeProof::choose_aead() {
    selection_ = select_or_abort(settings_);
    shared_->aead_wish = aead_wish(settings_);
    shared_->cipher = static_cast<std::uint32_t>(selection_.cipher);
    for (std::size_t i = 0; i < selection_.library.size(); ++i) {
        std::string_view name = selection_.library[i]->name();
        std::memcpy(shared_->libraries[i].data(), name.data(),
                    std::min(name.size(), shared_->libraries[i].size() - 1));
    }
}

aead::Selection NodeProof::select_aead() {
    if (leads()) return selection_;
    aead::Selection selection;
    selection.cipher = static_cast<aead::Cipher>(shared_->cipher);
    if (shared_->aead_wish != aead_wish(settings_)) {
        aead::Selection own = select_or_abort(settings_);
        if (own.cipher == selection.cipher) return own;
        abort_job("This rank uses the cipher " + std::string(aead::info(own.cipher).name) + ", " +
                  name_of(cards_, members_.front()) + " uses " +
                  std::string(aead::info(selection.cipher).name) + ": set MPISEC_AEAD alike on all ranks.");
    }
    for (std::size_t i = 0; i < selection.library.size(); ++i) {
        auto library = aead::load(shared_->libraries[i].data());
        if (!library) abort_job(library.error().message);
        selection.library[i] = *library;
    }
    return selection;
}

JobAgreement NodeProof::share_agreement(std::optional<JobAgreement> from_leader) {
    if (members_.size() == 1) return std::move(*from_leader);
    if (leads()) {
        std::memcpy(shared_->job_secret.data(), from_leader->secret.data(), keys::secret_bytes);
        shared_->cipher_speed = from_leader->cipher_speed;
        publish(has_job_secret);
        // The leader sleeps until all have copied it: if it left MPI_Init first, it might poll for the other ranks and so keep
        // the core that they need.
        StallClock stall(settings_, "the other ranks of this node to take the job secret");
        Nap nap;
        for (;;) {
            std::uint32_t copied = shared_->copied.load(std::memory_order_acquire);
            if (copied + 1 == members_.size()) break;
            nap.sleep_while(shared_->copied, copied);
            stall.look();
        }
        keys::wipe(shared_->job_secret.data(), shared_->job_secret.size());
        return std::move(*from_leader);
    }
    await(has_job_secret, "the job secret");
    JobAgreement agreement{keys::Secret(shared_->job_secret), shared_->cipher_speed};
    shared_->copied.fetch_add(1, std::memory_order_release);
    wake_all(shared_->copied);
    return agreement;
}

}  // namespace mpisec::shim
