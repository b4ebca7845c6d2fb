// Access with the shared file pointer: one rank, the keeper, has it in a window that the program does not see.
// A rank that wants to access the file adds the length of its access to the pointer, and then accesses the file where
// the pointer was before; the ranks of an ordered access add once for all of them.
#include "shim/collective/collectives.hpp"
#include "shim/io/entry.hpp"
#include "shim/io/file.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim::io {
namespace {

/// A rank's addition to the shared pointer. It is on the heap because an answer that never came may still be received there.
struct Taking {
    std::int64_t etypes = 0, before = 0;
    std::shared_ptr<rma::Transfer> transfer{};

    bool done() const { return !transfer || transfer->advance(); }
    int error() const { return transfer ? transfer->error() : MPI_SUCCESS; }
    int start(File& file) {
        return rma::start_fetch_and_add(file.window, keeper, &etypes, &before, transfer);
    }
};

/// `before`: set to where the pointer was. Returns an error code without raising it.
int take(const char* call, File& file, std::int64_t etypes, std::int64_t& before) {
    auto taking = std::make_unique<Taking>();
    taking->etypes = etypes;
    int code = taking->start(file);
    if (code != MPI_SUCCESS) return code;
    code = file.window->wait(call, [&] { return file.window->settle(file.window->target(keeper)); });
    if (code == MPI_SUCCESS) code = file.window->failure();
    if (code == MPI_SUCCESS) code = taking->error();
    before = taking->before;
    if (code != MPI_SUCCESS) (void)taking.release();
    return code;
}

/// How far this access moves the pointer; 0 where the library is going to refuse it.
std::int64_t etypes_of(const File& file, MPI_Count count, MPI_Datatype type) {
    TypeFacts facts;
    if (count <= 0 || type == constants.datatype_null || !type_facts(type, facts)) return 0;
    return file.etypes_in(static_cast<std::int64_t>(facts.size) * count);
}

/// A request of the program's: the access starts as soon as the shared pointer is known.
template <class Start>
class SharedAccess final : public Operation {
  public:
    SharedAccess(std::shared_ptr<File> file, std::unique_ptr<Taking> taking, MPI_Datatype type,
                 Start start_access)
        : Operation(nullptr),
          file_(std::move(file)),
          taking_(std::move(taking)),
          type_(keep_type(type)),
          start_access_(std::move(start_access)) {}
    ~SharedAccess() override {
        leave_work_list(*this);
        release_type(type_);
        if (!complete()) (void)taking_.release();
    }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override {
        return {"an access with the shared file pointer", keeper, MPI_ANY_TAG};
    }

    ErrorOwner error_owner() const override { return {{}, {}, file_->handle}; }

  private:
    void step() override {
        if (!started_ && !start_library_access()) return;
        int done = 0;
        MPI_Status status{};
        const int code = real.Test(&request_, &done, &status);
        if (code != MPI_SUCCESS) return finish(code, true);
        if (!done) return;
        MPI_Count bytes = 0;
        real.Get_elements_x(&status, constants.byte, &bytes);
        outcome_.bytes = bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
        finish();
    }

    /// False when there is nothing to test: the pointer has not arrived, or something went wrong.
    bool start_library_access() {
        int code = file_->window->failure();
        if (code == MPI_SUCCESS && !taking_->done()) return false;
        if (code == MPI_SUCCESS) code = taking_->error();
        if (code != MPI_SUCCESS) {
            (void)taking_.release();
            finish(code);
            return false;
        }
        started_ = true;
        code = start_access_(*file_, taking_->before, type_, &request_);
        if (code != MPI_SUCCESS) finish(code, true);
        return code == MPI_SUCCESS;
    }

    std::shared_ptr<File> file_;
    std::unique_ptr<Taking> taking_;
    MPI_Datatype type_;  ///< the program may free its own
    Start start_access_;
    MPI_Request request_ = constants.request_null;
    bool started_ = false;
};

template <class Start>
int start_shared(const char* call, MPI_File fh, MPI_Count count, MPI_Datatype type, MPI_Request* request,
                 Start start_access) {
    auto file = find(fh);
    if (type == constants.datatype_null) return start_access(*file, 0, type, request);  // which fails
    Guard guard;
    auto taking = std::make_unique<Taking>();
    taking->etypes = etypes_of(*file, count, type);
    if (int code = taking->start(*file); code != MPI_SUCCESS) return raise_on_file(fh, code, call);
    auto operation = std::make_unique<SharedAccess<Start>>(std::move(file), std::move(taking), type,
                                                           std::move(start_access));
    enlist(*operation);
    *request = give_request(std::move(operation));
    return MPI_SUCCESS;
}

/// Finds where this rank's part of an ordered access begins. Raises errors.
int take_in_order(const char* call, File& file, std::int64_t etypes, std::int64_t& mine) {
    struct Places {
        std::int64_t etypes, up_to_mine, first;
    };
    const int last = file.window->size() - 1;
    auto places = std::make_unique<Places>(Places{etypes, 0, 0});
    int code = collect(file, places,
                       plan::Scan(call, &places->etypes, &places->up_to_mine, 1, constants.int64,
                                  constants.sum, file.comm()));
    if (code == MPI_SUCCESS && file.window->rank == last)
        code = take(call, file, places->up_to_mine, places->first);
    if (code == MPI_SUCCESS)
        code =
            collect(file, places, plan::Bcast(call, &places->first, 1, constants.int64, last, file.comm()));
    if (code == MPI_SUCCESS) mine = places->first + places->up_to_mine - etypes;
    return raise_on_file(file.handle, code, call);
}

int read_in_order(const char* call, File& file, const Elements<void*>& memory, MPI_Status* status) {
    std::int64_t place = 0;
    const int code = take_in_order(call, file, etypes_of(file, memory.count, memory.type), place);
    return code != MPI_SUCCESS ? code
                               : access_at(MPISEC_BOTH(File_read_at), {call, file, place}, memory, status);
}

int write_in_order(const char* call, File& file, const Elements<const void*>& memory, MPI_Status* status) {
    std::int64_t place = 0;
    const int code = take_in_order(call, file, etypes_of(file, memory.count, memory.type), place);
    return code != MPI_SUCCESS ? code
                               : access_at(MPISEC_BOTH(File_write_at), {call, file, place}, memory, status);
}

/// Finds the end of the file in etypes of the view, by moving the individual pointer there and back.
int find_end(const File& file, MPI_Offset* end) {
    MPI_Offset place = 0;
    if (const int asked = real.File_get_position(file.handle, &place); asked != MPI_SUCCESS) return asked;
    int code = real.File_seek(file.handle, 0, MPI_SEEK_END);
    if (code == MPI_SUCCESS) code = real.File_get_position(file.handle, end);
    const int back = real.File_seek(file.handle, place, MPI_SEEK_SET);
    return code != MPI_SUCCESS ? code : back;
}

/// Sets the shared pointer, which this process keeps. Errors are raised.
int move_pointer(const char* call, File& file, MPI_Offset offset, int whence) {
    MPI_Offset from = 0;
    if (whence == MPI_SEEK_CUR) {
        from = file.pointer;
    } else if (whence == MPI_SEEK_END) {
        if (int code = find_end(file, &from); code != MPI_SUCCESS) return code;
    } else if (whence != MPI_SEEK_SET) {
        return raise_on_file(file.handle, MPI_ERR_ARG, call);
    }
    if (from + offset < 0) return raise_on_file(file.handle, MPI_ERR_ARG, call);
    Guard guard;
    file.pointer = from + offset;
    return MPI_SUCCESS;
}

}  // namespace

int File_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
    constexpr const char* call = "MPI_File_seek_shared";
    const auto file = find(fh);
    if (int code = agree(call, *file, MPI_SUCCESS, offset, whence); code != MPI_SUCCESS) return code;
    return hear_of_keeper(call, *file,
                          file->keeps() ? move_pointer(call, *file, offset, whence) : MPI_SUCCESS);
}

int File_get_position_shared(MPI_File fh, MPI_Offset* offset) {
    constexpr const char* call = "MPI_File_get_position_shared";
    const auto file = find(fh);
    std::int64_t place = 0;
    const int code = take(call, *file, 0, place);
    *offset = place;
    return raise_on_file(fh, code, call);
}

int File_read_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status) {
    constexpr const char* call = "MPI_File_read_shared";
    const auto file = find(fh);
    std::int64_t place = 0;
    const int code = take(call, *file, etypes_of(*file, count, type), place);
    if (code != MPI_SUCCESS) return raise_on_file(fh, code, call);
    return access_at(MPISEC_BOTH(File_read_at), {call, *file, place}, Elements<void*>{buf, count, type},
                     status);
}

int File_write_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status) {
    constexpr const char* call = "MPI_File_write_shared";
    const auto file = find(fh);
    std::int64_t place = 0;
    const int code = take(call, *file, etypes_of(*file, count, type), place);
    if (code != MPI_SUCCESS) return raise_on_file(fh, code, call);
    return access_at(MPISEC_BOTH(File_write_at), {call, *file, place},
                     Elements<const void*>{buf, count, type}, status);
}

int File_iread_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Request* request) {
    constexpr const char* call = "MPI_File_iread_shared";
    auto start_access = [=](const File& file, MPI_Offset place, MPI_Datatype kept, MPI_Request* started) {
        return access_at(MPISEC_BOTH(File_iread_at), {call, file, place}, Elements<void*>{buf, count, kept},
                         started);
    };
    return start_shared(call, fh, count, type, request, start_access);
}

int File_iwrite_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type,
                       MPI_Request* request) {
    constexpr const char* call = "MPI_File_iwrite_shared";
    auto start_access = [=](const File& file, MPI_Offset place, MPI_Datatype kept, MPI_Request* started) {
        return access_at(MPISEC_BOTH(File_iwrite_at), {call, file, place},
                         Elements<const void*>{buf, count, kept}, started);
    };
    return start_shared(call, fh, count, type, request, start_access);
}

int File_read_ordered(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status) {
    return read_in_order("MPI_File_read_ordered", *find(fh), {buf, count, type}, status);
}

int File_write_ordered(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status) {
    return write_in_order("MPI_File_write_ordered", *find(fh), {buf, count, type}, status);
}

int File_read_ordered_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type) {
    return begin_split("MPI_File_read_ordered_begin", fh,
                       [=](const char* call, File& file, MPI_Status* status) {
                           return read_in_order(call, file, {buf, count, type}, status);
                       });
}

int File_read_ordered_end(MPI_File fh, void*, MPI_Status* status) {
    return end_split("MPI_File_read_ordered_end", fh, status);
}

int File_write_ordered_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type) {
    return begin_split("MPI_File_write_ordered_begin", fh,
                       [=](const char* call, File& file, MPI_Status* status) {
                           return write_in_order(call, file, {buf, count, type}, status);
                       });
}

int File_write_ordered_end(MPI_File fh, const void*, MPI_Status* status) {
    return end_split("MPI_File_write_ordered_end", fh, status);
}

}  // namespace mpisec::shim::io
