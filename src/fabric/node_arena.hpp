// Memory that the ranks of a node share, as parts of one file without a name.
//
// The ranks of a node open the file together in MPI_Init (node_proof.hpp) and then remove its name. What they share afterwards is found in
// the file, by names in a table at its front, rather than in /dev/shm under names of its own: a rank that is killed before its peers have
// attached a part leaves nothing behind, because the kernel frees the file with the last process that has it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace mpisec::fabric {

class NodeArena {
  public:
    /// Where the table and the parts begin in a file whose first `used` bytes are taken.
    static off_t begin_after(std::size_t used);
    /// Lays out an empty arena in `descriptor`; called by one process, before any process opens it. 0 or an errno.
    static int format(int descriptor, off_t begin);
    /// Makes it this process's arena, which keeps a descriptor of its own until close(). 0 or an errno.
    static int open(int descriptor, off_t begin);
    /// Makes room for the number of that descriptor, before anything starts a thread: when there are several threads, the kernel first
    /// waits until every processor has let go of the smaller table of descriptors (milliseconds).
    static void expect();
    /// Nothing can be attached any more; parts that are attached may stay until they are detached.
    static void close();
    /// This process's arena; when none has been opened, one without a name and without peers. Null and errno when there is no memory for
    /// that.
    static NodeArena* get();

    NodeArena(const NodeArena&) = delete;
    NodeArena& operator=(const NodeArena&) = delete;

    /// Maps `bytes` under `name`. At the front of the part is a count of the processes that have it; a new part is zeroed. Null and errno
    /// when it cannot be mapped. The `peers`-th process that asks for it takes the name out of the table.
    void* attach(const std::string& name, std::size_t bytes, unsigned peers, bool sparse);
    /// Unmaps it. The last process that does gives its memory back.
    static void detach(void* memory, std::size_t bytes);
    /// Takes the name of a part out of the table although not all peers have attached it.
    void forget(void* memory, const std::string& name);

    /// Bytes at the front of each part that belong to the arena.
    static constexpr std::size_t front_bytes = 64;

  private:
    struct Table;
    struct Entry;
    struct Front;
    class Lock;
    NodeArena(Table* table, int descriptor, dev_t device, ino_t inode)
        : table_(table), descriptor_(descriptor), device_(device), inode_(inode) {}

    void leave(void* memory, std::size_t whole);
    bool descriptor_is_ours() const;
    Entry* find(const std::string& name, std::size_t bytes);
    /// A new entry at the end of the table, or null and errno.
    Entry* add();
    void remove(Entry& entry);
    Entry* make(const std::string& name, std::size_t bytes, bool sparse);

    Table* table_;
    int descriptor_;
    dev_t device_;
    ino_t inode_;
};

}  // namespace mpisec::fabric
