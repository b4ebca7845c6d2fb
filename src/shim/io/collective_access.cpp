// Access that all ranks of a file make together. Where their data is interleaved in small runs, it is
// exchanged first (aggregation.hpp); otherwise every rank accesses the file by itself, as MPI allows.
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "shim/collective/collectives.hpp"
#include "shim/io/aggregation.hpp"
#include "shim/io/entry.hpp"
#include "shim/p2p/datatype.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim::io {
namespace {

constexpr std::int64_t most_pieces = std::int64_t{1} << 22;
constexpr std::int64_t usual_window = 16 << 20, least_window = 64 << 10, most_window = 1 << 30;

/// One rank's part of a collective access.
struct Part {
    MPI_Count count = 0;
    MPI_Datatype type{};
    TypeFacts facts{};
    std::int64_t bytes = 0;
    bool able = false;
    std::vector<Piece> pieces{};
};

/// The value of a hint that the library knows of the file.
bool find_hint(const File& file, const char* key, char (&value)[64]) {
    MPI_Info info;
    int found = 0;
    if (real.File_get_info(file.handle, &info) != MPI_SUCCESS) return false;
    real.Info_get(info, key, sizeof value - 1, value, &found);
    real.Info_free(&info);
    return found != 0;
}

std::int32_t wish_of(const File& file, bool writes) {
    char value[64] = "";
    if (!find_hint(file, writes ? "romio_cb_write" : "romio_cb_read", value)) return 0;
    return std::strcmp(value, "enable") == 0 ? 1 : std::strcmp(value, "disable") == 0 ? -1 : 0;
}

std::int64_t window_of_hints(const File& file) {
    char value[64] = "";
    if (!find_hint(file, "cb_buffer_size", value)) return usual_window;
    const std::int64_t bytes = std::strtoll(value, nullptr, 10);
    return std::clamp(bytes, least_window, most_window);
}

/// Finds where the data lies in the file, from the view and the offset in it, as far as that can be told.
Part describe_part(const File& file, MPI_Offset offset, MPI_Count count, MPI_Datatype type) {
    Part part{.count = count, .type = type};
    if (count < 0 || offset < 0 || type == constants.datatype_null || !type_facts(type, part.facts))
        return part;
    part.bytes = static_cast<std::int64_t>(part.facts.size) * count;
    if (!file.view || file.sequential() || file.atomic ||
        file.etypes_in(part.bytes) * file.etype_size != part.bytes)
        return part;
    part.able = true;
    std::int64_t place = 0;
    file.view->for_each_run(offset * file.etype_size, part.bytes, [&](std::int64_t at, std::int64_t bytes) {
        if (static_cast<std::int64_t>(part.pieces.size()) < most_pieces)
            part.pieces.push_back({at, bytes, place});
        place += bytes;
    });
    if (static_cast<std::int64_t>(part.pieces.size()) == most_pieces) part.able = false;
    return part;
}

/// The ranks tell each other what they are about to do.
int plan_access(const char* call, File& file, bool writes, const Part& part, Division& division) {
    MPI_Offset size = 0;
    if (real.File_get_size(file.handle, &size) != MPI_SUCCESS) size = 0;
    Offer mine{.pieces = static_cast<std::int64_t>(part.pieces.size()),
               .bytes = part.bytes,
               .file_size = size,
               .window = file.window_bytes,
               .able = part.able,
               .hint = writes ? file.wish_to_write : file.wish_to_read};
    if (!part.pieces.empty()) {
        mine.first = part.pieces.front().offset;
        mine.end = part.pieces.back().offset + part.pieces.back().bytes;
    }
    struct Exchange {
        Offer mine;
        std::vector<Offer> all;
    };
    auto exchange = std::make_unique<Exchange>(Exchange{mine, std::vector<Offer>(file.ranks())});
    if (int code = collect(file, exchange,
                           plan::Allgather(call, &exchange->mine, sizeof mine, constants.byte,
                                           exchange->all.data(), sizeof mine, constants.byte, file.comm()));
        code != MPI_SUCCESS)
        return raise_on_file(file.handle, code, call);
    division = divide(exchange->all);
    return MPI_SUCCESS;
}

int finish(const char* call, File& file, int code, std::uint64_t bytes, MPI_Status* status) {
    code = agree(call, file, raise_on_file(file.handle, code, call));
    if (code == MPI_SUCCESS)
        write_status({.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG, .bytes = bytes}, status);
    return code;
}

int write_divided(const char* call, File& file, const Division& division, const Part& part, const void* buf,
                  MPI_Status* status) {
    const auto* data = static_cast<const std::uint8_t*>(buf);
    Buffer packed;
    int code = MPI_SUCCESS;
    if (!part.facts.contiguous) {
        packed = Buffer(static_cast<std::size_t>(part.bytes) + 1);
        code = pack(buf, part.count, part.type, part.facts, packed.data());
        // The others count on these bytes; none of an older message may get into the file.
        if (code != MPI_SUCCESS) std::memset(packed.data(), 0, static_cast<std::size_t>(part.bytes));
        data = packed.data();
    }
    const int written = write_in_phases(call, file, division, part.pieces, data);
    return finish(call, file, code != MPI_SUCCESS ? code : written, static_cast<std::uint64_t>(part.bytes),
                  status);
}

/// Bytes of the data that lie before the end of the file.
std::int64_t bytes_before(const std::vector<Piece>& pieces, std::int64_t end) {
    std::int64_t bytes = 0;
    for (const Piece& piece : pieces) bytes += std::clamp<std::int64_t>(end - piece.offset, 0, piece.bytes);
    return bytes;
}

int read_divided(const char* call, File& file, const Division& division, const Part& part, void* buf,
                 MPI_Status* status) {
    const auto bytes = static_cast<std::uint64_t>(bytes_before(part.pieces, division.file_size));
    Buffer packed(static_cast<std::size_t>(part.bytes) + 1);
    int code = read_in_phases(call, file, division, part.pieces, packed.data());
    if (code == MPI_SUCCESS) code = unpack(packed.data(), bytes, buf, part.count, part.type, part.facts);
    return finish(call, file, code, bytes, status);
}

/// A read by this rank alone of what lies before the end of the file. Beyond that end the library's own would count all that was asked for
/// where the view has gaps; its collective read does not.
int read_up_to_end(const Place& place, const Part& part, std::int64_t bytes, void* buf, MPI_Status* status) {
    const std::int64_t whole = place.file.etypes_in(bytes) * place.file.etype_size;
    Buffer packed(static_cast<std::size_t>(whole) + 1);
    MPI_Status of_library;
    if (int code = access_at(MPISEC_BOTH(File_read_at), place,
                             Elements<void*>{packed.data(), whole, constants.byte}, &of_library);
        code != MPI_SUCCESS)
        return code;
    MPI_Count bytes_read = 0;  // fewer where the file has become shorter
    real.Get_elements_x(&of_library, constants.byte, &bytes_read);
    const auto read = static_cast<std::uint64_t>(std::clamp<MPI_Count>(bytes_read, 0, whole));
    const int code = unpack(packed.data(), read, buf, part.count, part.type, part.facts);
    if (code == MPI_SUCCESS)
        write_status({.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG, .bytes = read}, status);
    return raise_on_file(place.file.handle, code, place.call);
}

int write_at_together(const char* call, File& file, MPI_Offset offset, const Elements<const void*>& memory,
                      MPI_Status* status) {
    const Part part = describe_part(file, offset, memory.count, memory.type);
    Division division;
    if (int code = plan_access(call, file, true, part, division); code != MPI_SUCCESS) return code;
    if (division.aggregators > 0) return write_divided(call, file, division, part, memory.buf, status);
    return access_at(MPISEC_BOTH(File_write_at), {call, file, offset}, memory, status);
}

int read_at_together(const char* call, File& file, MPI_Offset offset, const Elements<void*>& memory,
                     MPI_Status* status) {
    const Part part = describe_part(file, offset, memory.count, memory.type);
    Division division;
    if (int code = plan_access(call, file, false, part, division); code != MPI_SUCCESS) return code;
    if (division.aggregators > 0) return read_divided(call, file, division, part, memory.buf, status);
    const std::int64_t bytes = part.able ? bytes_before(part.pieces, division.file_size) : part.bytes;
    if (part.able && bytes < part.bytes)
        return read_up_to_end({call, file, offset}, part, bytes, memory.buf, status);
    return access_at(MPISEC_BOTH(File_read_at), {call, file, offset}, memory, status);
}

/// Accesses the file at the individual pointer, and moves the pointer behind the access.
template <class Access>
int at_pointer(const File& file, MPI_Count count, MPI_Datatype type, Access access) {
    MPI_Offset place = 0;
    if (int code = real.File_get_position(file.handle, &place); code != MPI_SUCCESS) return code;
    if (int code = access(place); code != MPI_SUCCESS) return code;
    TypeFacts facts;
    type_facts(type, facts);
    const MPI_Offset moved = file.etypes_in(static_cast<std::int64_t>(facts.size) * count);
    return real.File_seek(file.handle, place + moved, MPI_SEEK_SET);
}

/// The library's access with the individual pointer.
template <class Small, class Big, class Buf, class Last>
int access_here(Small small, Big big, const char* call, MPI_File fh, const Elements<Buf>& memory, Last last) {
    const auto& [buf, count, type] = memory;
    if (count <= INT_MAX) return small(fh, buf, static_cast<int>(count), type, last);
    if constexpr (!std::is_same_v<Big, std::nullptr_t>) {
        if (big) return big(fh, buf, count, type, last);
    }
    return raise_on_file(fh, MPI_ERR_COUNT, call);
}

/// Linux transfers less than 2 GiB in one call. ROMIO's non-blocking access of one rank, which stands for collective access here, makes one call
/// only. Its blocking access makes as many as are needed.
bool is_too_long(MPI_Count count, MPI_Datatype type) {
    constexpr std::int64_t most_in_a_call = 0x7ffff000;
    TypeFacts facts;
    return count > 0 && type != constants.datatype_null && type_facts(type, facts) &&
           static_cast<std::int64_t>(facts.size) > most_in_a_call / count;
}

/// An access that ends before its request is given.
template <class Access>
int done_at_once(MPI_Request* request, Access access) {
    MPI_Status status;
    if (int code = access(&status); code != MPI_SUCCESS) return code;
    MPI_Count bytes = 0;
    real.Get_elements_x(&status, constants.byte, &bytes);
    Outcome outcome;
    outcome.bytes = static_cast<std::uint64_t>(std::max<MPI_Count>(bytes, 0));
    Guard guard;
    *request = give_request(std::make_unique<DoneOperation>(nullptr, outcome));
    return MPI_SUCCESS;
}

int write_together(const char* call, File& file, const Elements<const void*>& memory, MPI_Status* status) {
    return at_pointer(file, memory.count, memory.type,
                      [&](MPI_Offset place) { return write_at_together(call, file, place, memory, status); });
}

int read_together(const char* call, File& file, const Elements<void*>& memory, MPI_Status* status) {
    return at_pointer(file, memory.count, memory.type,
                      [&](MPI_Offset place) { return read_at_together(call, file, place, memory, status); });
}

}  // namespace

void learn_hints(File& file) {
    file.wish_to_write = wish_of(file, true);
    file.wish_to_read = wish_of(file, false);
    file.window_bytes = window_of_hints(file);
}

int File_write_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype type,
                      MPI_Status* status) {
    return write_at_together("MPI_File_write_at_all", *find(fh), offset, {buf, count, type}, status);
}

int File_read_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype type,
                     MPI_Status* status) {
    return read_at_together("MPI_File_read_at_all", *find(fh), offset, {buf, count, type}, status);
}

int File_write_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status) {
    return write_together("MPI_File_write_all", *find(fh), {buf, count, type}, status);
}

int File_read_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status) {
    return read_together("MPI_File_read_all", *find(fh), {buf, count, type}, status);
}

// Non-blocking collective access is not aggregated. The library's own procedures for it cannot be used: where a hint asks
// for collective access, ROMIO also reads and writes back what lies between the data (hints.hpp). What is too long for one call of the system is
// done before the request is given.

int File_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype type,
                       MPI_Request* request) {
    const auto file = find(fh);
    const Place place{"MPI_File_iwrite_at_all", *file, offset};
    const Elements<const void*> memory{buf, count, type};
    if (is_too_long(count, type))
        return done_at_once(request, [&](MPI_Status* status) {
            return access_at(MPISEC_BOTH(File_write_at), place, memory, status);
        });
    return access_at(MPISEC_BOTH(File_iwrite_at), place, memory, request);
}

int File_iread_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype type,
                      MPI_Request* request) {
    const auto file = find(fh);
    const Place place{"MPI_File_iread_at_all", *file, offset};
    const Elements<void*> memory{buf, count, type};
    if (is_too_long(count, type))
        return done_at_once(request, [&](MPI_Status* status) {
            return access_at(MPISEC_BOTH(File_read_at), place, memory, status);
        });
    return access_at(MPISEC_BOTH(File_iread_at), place, memory, request);
}

int File_iwrite_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type, MPI_Request* request) {
    constexpr const char* call = "MPI_File_iwrite_all";
    const Elements<const void*> memory{buf, count, type};
    if (is_too_long(count, type))
        return done_at_once(request, [&](MPI_Status* status) {
            return access_here(MPISEC_BOTH(File_write), call, fh, memory, status);
        });
    return access_here(MPISEC_BOTH(File_iwrite), call, fh, memory, request);
}

int File_iread_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Request* request) {
    constexpr const char* call = "MPI_File_iread_all";
    const Elements<void*> memory{buf, count, type};
    if (is_too_long(count, type))
        return done_at_once(request, [&](MPI_Status* status) {
            return access_here(MPISEC_BOTH(File_read), call, fh, memory, status);
        });
    return access_here(MPISEC_BOTH(File_iread), call, fh, memory, request);
}

int File_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count,
                            MPI_Datatype type) {
    return begin_split("MPI_File_write_at_all_begin", fh,
                       [=](const char* call, File& file, MPI_Status* status) {
                           return write_at_together(call, file, offset, {buf, count, type}, status);
                       });
}

int File_read_at_all_begin(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype type) {
    return begin_split("MPI_File_read_at_all_begin", fh,
                       [=](const char* call, File& file, MPI_Status* status) {
                           return read_at_together(call, file, offset, {buf, count, type}, status);
                       });
}

int File_write_all_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type) {
    return begin_split("MPI_File_write_all_begin", fh, [=](const char* call, File& file, MPI_Status* status) {
        return write_together(call, file, {buf, count, type}, status);
    });
}

int File_read_all_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type) {
    return begin_split("MPI_File_read_all_begin", fh, [=](const char* call, File& file, MPI_Status* status) {
        return read_together(call, file, {buf, count, type}, status);
    });
}

int File_write_at_all_end(MPI_File fh, const void*, MPI_Status* status) {
    return end_split("MPI_File_write_at_all_end", fh, status);
}

int File_read_at_all_end(MPI_File fh, void*, MPI_Status* status) {
    return end_split("MPI_File_read_at_all_end", fh, status);
}

int File_write_all_end(MPI_File fh, const void*, MPI_Status* status) {
    return end_split("MPI_File_write_all_end", fh, status);
}

int File_read_all_end(MPI_File fh, void*, MPI_Status* status) {
    return end_split("MPI_File_read_all_end", fh, status);
}

}  // namespace mpisec::shim::io
