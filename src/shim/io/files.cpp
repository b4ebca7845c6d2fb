// Files that cross nodes, as a whole: opening, what all ranks do together, and closing.
#include "shim/io/file.hpp"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "shim/collective/collectives.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/io/entry.hpp"
#include "shim/io/hints.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/family.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {

/// Under the Guard.
struct IoFiles {
    std::unordered_map<MPI_File, std::shared_ptr<io::File>> all;
};

}  // namespace mpisec::shim

namespace mpisec::shim::io {
namespace {

void remember(std::shared_ptr<File> file) {
    Guard guard;
    MPI_File handle = file->handle;
    process.io_files->all[handle] = std::move(file);
    process.io_file_count.fetch_add(1, std::memory_order_relaxed);
}

void forget(MPI_File file) {
    Guard guard;
    if (process.io_files->all.erase(file) != 0) process.io_file_count.fetch_sub(1, std::memory_order_relaxed);
}

/// An error class means the same on every rank, a code does not.
std::int32_t error_class_of(int code) {
    int error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) real.Error_class(code, &error_class);
    return error_class;
}

/// What ranks tell each other before or after something that all of them do.
struct Saying {
    std::int32_t error_class = MPI_SUCCESS;
    std::int32_t unused = 0;
    std::int64_t value = 0, other_value = 0;
};

int judge(const std::vector<Saying>& all) {
    for (const Saying& each : all)
        if (each.error_class != MPI_SUCCESS) return each.error_class;
    for (const Saying& each : all)
        if (each.value != all[0].value || each.other_value != all[0].other_value) return MPI_ERR_NOT_SAME;
    return MPI_SUCCESS;
}

/// Names may begin with a file system's, as in "ufs:": these are left as they are.
std::string absolute(const std::string& name) {
    const std::size_t colon = name.find(':');
    if (name.empty() || name[0] == '/' || colon < name.find('/')) return name;
    std::error_code error;
    const auto here = std::filesystem::current_path(error);
    return error ? name : (here / name).string();
}

/// While it lives, the library returns the errors of opening and deleting files.
class FileErrorsReturned {
  public:
    FileErrorsReturned() : known_(real.File_get_errhandler(constants.file_null, &before_) == MPI_SUCCESS) {
        if (known_) real.File_set_errhandler(constants.file_null, constants.errors_return);
    }
    ~FileErrorsReturned() {
        if (!known_) return;
        real.File_set_errhandler(constants.file_null, before_);
        give_back_handler(before_);
    }
    FileErrorsReturned(const FileErrorsReturned&) = delete;
    FileErrorsReturned& operator=(const FileErrorsReturned&) = delete;

    /// To a file that was opened meanwhile, which would return errors otherwise.
    void give_back_to(MPI_File file) const {
        if (known_) real.File_set_errhandler(file, before_);
    }

  private:
    Guard guard_;  // the handler is the process's
    MPI_Errhandler before_;
    bool known_;
};

#if defined(OPEN_MPI)

/// Raises the errors of opening a file itself: it calls a handler of MPI_FILE_NULL for no other call.
struct OpenErrorsReturned {
    OpenErrorsReturned() {}
    void give_back_to(MPI_File) const {}
};

#else

using OpenErrorsReturned = FileErrorsReturned;

#endif

/// Opens the file now, not when there is aggregated data for the first time: by then another file may have the name, or none.
int open_bytes(File& file, int amode) {
    amode &= MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR;
    const int code = real.File_open(self_comm(), file.name.c_str(), amode, constants.info_null, &file.bytes);
    if (code != MPI_SUCCESS)
        file.bytes = constants.file_null;
    else
        real.File_set_errhandler(file.bytes, constants.errors_return);
    return code;
}

/// Opens the library's file of this process. The parts of the mode that concern all ranks' opens together are left out.
int open_here(File& file, MPI_Info info) {
    int amode = file.amode & ~(MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL);
    if (!file.keeps()) amode &= ~(MPI_MODE_CREATE | MPI_MODE_EXCL);
    const Hints hints(info, true);
    const OpenErrorsReturned to_here;
    int code = real.File_open(self_comm(), file.name.c_str(), amode, hints.get(), &file.handle);
    if (code == MPI_SUCCESS) {
        to_here.give_back_to(file.handle);
        code = open_bytes(file, amode);
    } else {
        file.handle = constants.file_null;
    }
    hints.note_in(file);
    return code;
}

/// Says so when the keeper found a file where this rank finds none.
void explain(const File& file, int code, bool keeper_has_it) {
    if (!keeper_has_it || error_class_of(code) != MPI_ERR_NO_SUCH_FILE) return;
    say("MPI_File_open: this node has no file \"" + file.name + "\", which rank " + std::to_string(keeper) +
        " of the communicator has opened. Files that ranks of several nodes open must be on a file system "
        "that all of these nodes see.");
}

/// Returns an error that MPIsec has not raised yet: all ranks are to hear of it first.
int open_everywhere(const char* call, File& file, MPI_Info info) {
    const bool creates = (file.amode & MPI_MODE_CREATE) != 0;
    int code = MPI_SUCCESS;
    if (creates) {  // once, and before the other ranks look for it
        if (file.keeps()) code = open_here(file, info);
        if (code = hear_of_keeper_unraised(call, file, code); code != MPI_SUCCESS) return code;
    }
    if (!creates || !file.keeps()) code = open_here(file, info);
    explain(file, code, creates);
    // The shared pointer begins at the end of the file: nobody writes before all have opened it.
    MPI_Offset end = 0;
    if (code == MPI_SUCCESS && file.keeps() && (file.amode & MPI_MODE_APPEND)) {
        code = real.File_get_size(file.bytes, &end);
        file.pointer = end;
    }
    return agree_unraised(call, file, code);
}

/// After a failure, of which all ranks have heard.
int give_up_opening(const char* call, File& file, int code) {
    if (file.bytes != constants.file_null) real.File_close(&file.bytes);
    rma::free_hidden(*file.window, !file.broken);
    const bool opened = file.handle != constants.file_null;
    if (is_open_mpi && opened) raise_on_file(file.handle, code, call);
    if (opened) real.File_close(&file.handle);
    // Open MPI has raised the errors of opening this rank's file; for others it can only be asked whether they are fatal.
    return is_open_mpi && opened ? code : raise_on_file(constants.file_null, code, call);
}

/// The file may be gone already: another handle of it was closed before, or the program has deleted it.
int delete_if_there(const File& file) {
    const FileErrorsReturned to_here;
    const int code = real.File_delete(file.place.c_str(), constants.info_null);
    return error_class_of(code) == MPI_ERR_NO_SUCH_FILE ? MPI_SUCCESS : code;
}

/// Lets the keeper alone do something; all ranks are in the call.
template <class Call>
int once(const char* call, MPI_File fh, std::int64_t value, Call by_keeper) {
    const auto file = find(fh);
    if (int code = agree(call, *file, MPI_SUCCESS, value); code != MPI_SUCCESS) return code;
    return hear_of_keeper(call, *file, file->keeps() ? by_keeper() : MPI_SUCCESS);
}

}  // namespace

std::shared_ptr<File> find(MPI_File file) {
    Guard guard;
    const auto& all = process.io_files->all;
    const auto found = all.find(file);
    return found == all.end() ? nullptr : found->second;
}

bool is_known(MPI_File file) {
    return find(file) != nullptr;
}

void forget_files() {
    auto& all = process.io_files->all;
    for (auto& [handle, file] : all)
        rma::free_hidden(*file->window, !file->broken && file->window->failure() == MPI_SUCCESS);
    all.clear();
    process.io_file_count = 0;
}

int run_or_give_up(File& file, std::unique_ptr<CollectivePlan> plan) {
    const int code = file.window->run_together(std::move(plan));
    file.broken |= code != MPI_SUCCESS;
    return code;
}

int agree_unraised(const char* call, File& file, int code, std::int64_t value, std::int64_t other_value) {
    struct Exchange {
        Saying mine;
        std::vector<Saying> all;
    };
    auto exchange = std::make_unique<Exchange>(
        Exchange{{error_class_of(code), 0, value, other_value}, std::vector<Saying>(file.ranks())});
    const int exchanged =
        collect(file, exchange,
                plan::Allgather(call, &exchange->mine, sizeof(Saying), constants.byte, exchange->all.data(),
                                sizeof(Saying), constants.byte, file.comm()));
    if (code != MPI_SUCCESS) return code;
    return exchanged != MPI_SUCCESS ? exchanged : judge(exchange->all);
}

int agree(const char* call, File& file, int code, std::int64_t value, std::int64_t other_value) {
    const int agreed = agree_unraised(call, file, code, value, other_value);
    return code != MPI_SUCCESS ? code : raise_on_file(file.handle, agreed, call);
}

int hear_of_keeper_unraised(const char* call, File& file, int code) {
    auto said = std::make_unique<std::int32_t>(error_class_of(code));
    const int exchanged =
        collect(file, said, plan::Bcast(call, said.get(), sizeof *said, constants.byte, keeper, file.comm()));
    if (code != MPI_SUCCESS) return code;
    return exchanged != MPI_SUCCESS ? exchanged : *said;
}

int hear_of_keeper(const char* call, File& file, int code) {
    const int heard = hear_of_keeper_unraised(call, file, code);
    return code != MPI_SUCCESS ? code : raise_on_file(file.handle, heard, call);
}

int end_split(const char* call, MPI_File fh, MPI_Status* status) {
    const auto file = find(fh);
    if (!file->split.begun) return raise_on_file(fh, MPI_ERR_OTHER, call);
    file->split.begun = false;
    if (status != MPI_STATUS_IGNORE) *status = file->split.status;
    return MPI_SUCCESS;
}

int File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
    constexpr const char* call = "MPI_File_open";
    Communicator* parent = find_communicator(comm);
    if (auto error = bad_arguments(call, parent, fh)) return *error;
    if (parent->inter) return raise_on_file(constants.file_null, MPI_ERR_COMM, call);
    *fh = constants.file_null;
    const auto file = std::make_shared<File>();
    file->handle = file->bytes = constants.file_null;
    file->name = filename ? filename : "";
    file->place = absolute(file->name);
    file->amode = amode;
    int code = rma::make_hidden(call, *parent, &file->pointer,
                                parent->rank == keeper ? MPI_Aint{sizeof file->pointer} : 0, file->window);
    if (code != MPI_SUCCESS) return raise_on_file(constants.file_null, code, call);
    code = agree_unraised(call, *file, MPI_SUCCESS, amode);
    if (code == MPI_SUCCESS && file->sequential() && (amode & MPI_MODE_RDWR)) code = MPI_ERR_AMODE;
    if (code == MPI_SUCCESS) code = open_everywhere(call, *file, info);
    if (code != MPI_SUCCESS) return give_up_opening(call, *file, code);
    learn_hints(*file);
    *fh = file->handle;
    remember(file);
    return MPI_SUCCESS;
}

int File_close(MPI_File* fh) {
    constexpr const char* call = "MPI_File_close";
    const auto file = find(*fh);
    forget(*fh);  // before the library gives the handle to another thread's new file
    const int closed = real.File_close(&file->bytes);
    int code = real.File_close(fh);
    file->handle = constants.file_null;  // errors are raised there now
    if (code == MPI_SUCCESS) code = raise_on_file(file->handle, closed, call);
    const int met = rma::leave_hidden(call, *file->window);
    file->broken |= met != MPI_SUCCESS;
    if (code == MPI_SUCCESS) code = raise_on_file(file->handle, met, call);
    if ((file->amode & MPI_MODE_DELETE_ON_CLOSE) && !file->broken) {
        const int deleted = file->keeps() ? delete_if_there(*file) : MPI_SUCCESS;
        const int heard = hear_of_keeper(call, *file, deleted);
        if (code == MPI_SUCCESS) code = heard;
    }
    rma::free_hidden(*file->window, !file->broken);
    return code;
}

int File_set_size(MPI_File fh, MPI_Offset size) {
    return once("MPI_File_set_size", fh, size, [&] { return real.File_set_size(fh, size); });
}

int File_preallocate(MPI_File fh, MPI_Offset size) {
    return once("MPI_File_preallocate", fh, size, [&] { return real.File_preallocate(fh, size); });
}

int File_set_info(MPI_File fh, MPI_Info info) {
    const auto file = find(fh);
    const Hints hints(info, false);
    const int code = real.File_set_info(fh, hints.get());
    if (code == MPI_SUCCESS) {
        hints.note_in(*file);
        learn_hints(*file);
    }
    return agree("MPI_File_set_info", *file, code);
}

int File_get_info(MPI_File fh, MPI_Info* info) {
    const int code = real.File_get_info(fh, info);
    if (code == MPI_SUCCESS) show_hints(*find(fh), *info);
    return code;
}

int File_get_group(MPI_File fh, MPI_Group* group) {
    return real.Comm_group(find(fh)->comm(), group);
}

int File_get_amode(MPI_File fh, int* amode) {
    *amode = find(fh)->amode;
    return MPI_SUCCESS;
}

int File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                  const char* datarep, MPI_Info info) {
    constexpr const char* call = "MPI_File_set_view";
    const auto file = find(fh);
    if (int code = agree(call, *file, MPI_SUCCESS); code != MPI_SUCCESS) return code;
    // All ranks are here, so nobody uses the shared pointer.
    int code = MPI_SUCCESS;
    if (file->sequential()) {
        auto pointer = std::make_unique<std::int64_t>(file->pointer);
        code = collect(*file, pointer,
                       plan::Bcast(call, pointer.get(), 1, constants.int64, keeper, file->comm()));
        if (code != MPI_SUCCESS) return raise_on_file(fh, code, call);
        code = disp == MPI_DISPLACEMENT_CURRENT ? real.File_get_byte_offset(fh, *pointer, &disp)
                                                : raise_on_file(fh, MPI_ERR_ARG, call);
    }
    {
        Guard guard;
        file->pointer = 0;
    }
    const Hints hints(info, false);
    if (code == MPI_SUCCESS) code = real.File_set_view(fh, disp, etype, filetype, datarep, hints.get());
    MPI_Aint lower = 0, extent = 0;
    if (code == MPI_SUCCESS) {
        real.Type_size_x(etype, &file->etype_size);
        real.Type_get_extent(etype, &lower, &extent);
        file->view = std::strcmp(datarep, "native") == 0 ? View::of(disp, filetype) : nullptr;
        hints.note_in(*file);
        learn_hints(*file);
    }
    return agree(call, *file, code, extent);
}

int File_set_atomicity(MPI_File fh, int flag) {
    const auto file = find(fh);
    if (int code = agree("MPI_File_set_atomicity", *file, MPI_SUCCESS, flag != 0); code != MPI_SUCCESS)
        return code;
    const int code = real.File_set_atomicity(fh, flag);
    if (code == MPI_SUCCESS) file->atomic = flag != 0;
    return code;
}

int File_sync(MPI_File fh) {
    constexpr const char* call = "MPI_File_sync";
    const auto file = find(fh);
    int code = real.File_sync(fh);
    // ROMIO syncs nothing for a handle through which nothing was written.
    if (code == MPI_SUCCESS) code = raise_on_file(fh, real.File_sync(file->bytes), call);
    return agree(call, *file, code);
}

}  // namespace mpisec::shim::io
