// Files opened inside a node. Whatever the MPI library does for all ranks of a file at once waits for these ranks, and some of them may
// wait for this rank to move its large messages: so they meet first (M5). Calls on a file by one rank alone wait only for the file system,
// and go straight to the library.
#include <unordered_map>

#include "shim/p2p/communicator.hpp"
#include "shim/p2p/progress_barrier.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/waits.hpp"

namespace mpisec::shim {

/// Under the Guard.
struct OpenFiles {
    std::unordered_map<MPI_File, Participants> all;
};

namespace {

/// For a file that was opened before MPIsec was there (in a session before MPI_Init): its group, which costs a look-up in the library each
/// time.
Participants find_participants(MPI_File file) {
    {
        Guard guard;
        const auto& files = process.files->all;
        if (auto found = files.find(file); found != files.end()) return found->second;
    }
    MPI_Group group;
    if (real.File_get_group(file, &group) != MPI_SUCCESS) return {};
    Participants found{numbers_of(group, state.world)};
    real.Group_free(&group);
    return found;
}

}  // namespace

int learn_file(int made, MPI_Comm comm, MPI_File* file) {
    if (made != MPI_SUCCESS) return made;
    Guard guard;
    process.files->all[*file] = participants_of(comm, "MPI_File_open");
    return made;
}

int progress_barrier_of_file(const char* call, MPI_File file) {
    const Participants all = find_participants(file);
    return raise_on_file(file, progress_barrier(all.members, all.context), call);
}

int File_close(MPI_File* file) {
    if (int code = progress_barrier_of_file("MPI_File_close", *file); code != MPI_SUCCESS) return code;
    {
        Guard guard;  // before the library gives the handle to another thread's new file
        process.files->all.erase(*file);
    }
    return real.File_close(file);
}

}  // namespace mpisec::shim
