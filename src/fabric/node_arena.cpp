#include "fabric/node_arena.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "fabric/pages.hpp"

namespace mpisec::fabric {
namespace {

constexpr std::size_t most_entries = 16 * 1024;  ///< parts that some peers have not attached yet
/// Programs close low descriptors, and hand them on, by number.
constexpr int lowest_descriptor = 100;

/// A copy of the descriptor with a high number, as far as the process may have such.
int copied_high(int descriptor) {
    const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, lowest_descriptor);
    return high >= 0 || errno != EINVAL ? high : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

std::mutex& open_mutex = *new std::mutex;
NodeArena* arena = nullptr;  // not destroyed at exit, which may come at any time

}  // namespace

/// A part that some peers have not attached yet, or, without a name, the place of a part that all have left.
struct NodeArena::Entry {
    char name[96];
    std::uint64_t offset;
    std::uint64_t bytes;
    char padding[16];
};

struct NodeArena::Table {
    static constexpr std::size_t header = page;
    static constexpr std::size_t bytes = header + most_entries * sizeof(Entry);
    static_assert(sizeof(Entry) == 128 && bytes % page == 0);

    pthread_mutex_t mutex;
    std::uint64_t count;  ///< entries; those after them are zero, and their pages may not exist
    std::uint64_t end;    ///< of the file

    Entry* entries() { return reinterpret_cast<Entry*>(reinterpret_cast<char*>(this) + header); }
};

/// All of it is used under the lock.
struct NodeArena::Front {
    std::uint64_t offset;
    std::uint32_t mapped, left;
    bool complete;  ///< no other process will attach it
};

/// Robust: a rank may be killed while it holds the lock.
class NodeArena::Lock {
  public:
    explicit Lock(Table& table) : table_(table) {
        if (pthread_mutex_lock(&table_.mutex) == EOWNERDEAD) pthread_mutex_consistent(&table_.mutex);
    }
    ~Lock() { pthread_mutex_unlock(&table_.mutex); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

  private:
    Table& table_;
};

off_t NodeArena::begin_after(std::size_t used) {
    return static_cast<off_t>(pages(used));
}

int NodeArena::format(int descriptor, off_t begin) {
    // A full /dev/shm is an error here, not a bus error later. Entries get their pages when they are needed.
    if (const int error = allocate_in_file(descriptor, begin, Table::header)) return error;
    const off_t end = begin + static_cast<off_t>(Table::bytes);
    if (ftruncate(descriptor, end) != 0) return errno;
    void* memory = mmap(nullptr, Table::header, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, begin);
    if (memory == MAP_FAILED) return errno;
    auto* table = static_cast<Table*>(memory);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    const int error = pthread_mutex_init(&table->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    table->end = static_cast<std::uint64_t>(end);
    munmap(memory, Table::header);
    return error;
}

int NodeArena::open(int descriptor, off_t begin) {
    std::lock_guard lock(open_mutex);
    struct stat status;
    const int own = copied_high(descriptor);
    if (own < 0 || fstat(own, &status) != 0) return errno;
    void* memory = mmap(nullptr, Table::bytes, PROT_READ | PROT_WRITE, MAP_SHARED, own, begin);
    if (memory == MAP_FAILED) {
        const int error = errno;
        ::close(own);
        return error;
    }
    madvise(memory, Table::bytes, MADV_DONTDUMP);
    arena = new NodeArena(static_cast<Table*>(memory), own, status.st_dev, status.st_ino);
    return 0;
}

void NodeArena::expect() {
    const int any = ::open("/", O_PATH | O_CLOEXEC);
    if (any < 0) return;
    const int high = copied_high(any);
    if (high >= 0) ::close(high);
    ::close(any);
}

void NodeArena::close() {
    std::lock_guard lock(open_mutex);
    if (!arena) return;
    munmap(arena->table_, Table::bytes);
    if (arena->descriptor_is_ours()) ::close(arena->descriptor_);
    delete arena;
    arena = nullptr;
}

NodeArena* NodeArena::get() {
    {
        std::lock_guard lock(open_mutex);
        if (arena) return arena;
    }
    // Not memfd_create(), so that a wrong size runs into the limit of /dev/shm.
    const int descriptor = ::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0) return nullptr;
    int error = format(descriptor, 0);
    if (error == 0) error = open(descriptor, 0);
    ::close(descriptor);
    errno = error;
    return error == 0 ? arena : nullptr;
}

/// A program may have closed it, and its number may belong to another file by now.
bool NodeArena::descriptor_is_ours() const {
    struct stat status;
    if (fstat(descriptor_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) return true;
    errno = EBADF;
    return false;
}

NodeArena::Entry* NodeArena::find(const std::string& name, std::size_t bytes) {
    for (std::uint64_t i = table_->count; i-- > 0;) {
        Entry& entry = table_->entries()[i];
        if (entry.bytes == bytes && name == entry.name) return &entry;
    }
    return nullptr;
}

NodeArena::Entry* NodeArena::add() {
    if (table_->count == most_entries) {
        errno = ENOSPC;
        return nullptr;
    }
    Entry* entry = &table_->entries()[table_->count];
    const auto at =
        static_cast<std::size_t>(reinterpret_cast<char*>(entry) - reinterpret_cast<char*>(table_));
    if (at % page == 0 && !populate_pages(entry, page)) return nullptr;
    ++table_->count;
    return entry;
}

void NodeArena::remove(Entry& entry) {
    Entry& last = table_->entries()[table_->count - 1];
    if (&entry != &last) entry = last;
    --table_->count;
}

/// Takes the place of a part of this size that all have left, else one at the end of the file.
NodeArena::Entry* NodeArena::make(const std::string& name, std::size_t bytes, bool sparse) {
    Entry* entry = find("", bytes);
    const std::uint64_t offset = entry ? entry->offset : table_->end;
    const auto begin = static_cast<off_t>(offset);
    // A full /dev/shm is an error here, not a bus error later.
    const int error = allocate_in_file(descriptor_, begin, sparse ? page : bytes);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    if (!entry) {
        if (ftruncate(descriptor_, begin + static_cast<off_t>(bytes)) != 0 || !(entry = add()))
            return nullptr;
        table_->end = offset + bytes;
    }
    entry->offset = offset;
    entry->bytes = bytes;
    std::memset(entry->name, 0, sizeof entry->name);
    name.copy(entry->name, sizeof entry->name - 1);
    return entry;
}

void* NodeArena::attach(const std::string& name, std::size_t bytes, unsigned peers, bool sparse) {
    const std::size_t whole = pages(bytes);
    if (name.empty() || name.size() >= sizeof Entry::name) {
        errno = ENAMETOOLONG;
        return nullptr;
    }
    Lock lock(*table_);
    if (!descriptor_is_ours()) return nullptr;
    Entry* entry = find(name, whole);
    const bool made = !entry;
    if (made) entry = make(name, whole, sparse);
    if (!entry) return nullptr;
    void* memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                        static_cast<off_t>(entry->offset));
    if (memory == MAP_FAILED) {
        const int error = errno;
        if (made) std::memset(entry->name, 0, sizeof entry->name);
        errno = error;
        return nullptr;
    }
    auto* front = static_cast<Front*>(memory);
    front->offset = entry->offset;
    if (++front->mapped >= peers) {
        front->complete = true;
        remove(*entry);
    }
    return memory;
}

void NodeArena::leave(void* memory, std::size_t whole) {
    Lock lock(*table_);
    auto* front = static_cast<Front*>(memory);
    const std::uint64_t offset = front->offset;
    if (++front->left != front->mapped || !front->complete) return;
    // The memory is given back through the mapping: the descriptor may no longer be there.
    if (madvise(memory, whole, MADV_REMOVE) != 0) return;
    if (Entry* entry = add()) {
        std::memset(entry->name, 0, sizeof entry->name);
        entry->offset = offset;
        entry->bytes = whole;
    }
}

void NodeArena::detach(void* memory, std::size_t bytes) {
    const std::size_t whole = pages(bytes);
    {
        std::lock_guard lock(open_mutex);
        if (arena) arena->leave(memory, whole);
    }
    munmap(memory, whole);
}

void NodeArena::forget(void* memory, const std::string& name) {
    Lock lock(*table_);
    auto* front = static_cast<Front*>(memory);
    if (front->complete) return;
    front->complete = true;
    for (std::uint64_t i = table_->count; i-- > 0;) {
        Entry& entry = table_->entries()[i];
        if (entry.offset == front->offset && name == entry.name) return remove(entry);
    }
}

}  // namespace mpisec::fabric
