// The messages of windows that cross nodes (docs/protocol.md, "One-sided communication"). A request is a
// header, then the runs that describe the target's data, then the origin's data; short requests travel together
// in one message. All are sealed messages on the window's private communicator, which binds them to the window,
// the pair of ranks, the tag and the order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"

namespace mpisec::shim::rma {

enum class Kind : std::uint8_t {
    put = 1,
    get,
    accumulate,
    get_accumulate,
    compare_and_swap,
    flush,           ///< answered when everything before it has been applied
    lock_shared,     ///< answered when granted
    lock_exclusive,  ///< the same
    unlock,          ///< answered like a flush
    complete,        ///< MPI_Win_complete: no operation of this epoch follows
    failed,          ///< the sender has found an integrity error; no sequence number
};
inline constexpr auto last_kind = Kind::failed;
/// Whether MPI requires operations of this kind to be atomic with respect to each other.
constexpr bool is_atomic(Kind kind) {
    return kind == Kind::accumulate || kind == Kind::get_accumulate || kind == Kind::compare_and_swap;
}

/// What directly follows a request and travels in its header instead of as a request of its own.
enum class Ending : std::uint8_t { none, flush, unlock };
inline constexpr auto last_ending = Ending::unlock;
/// Whether such an ending may follow: not where an answer is read from the memory after the request, because the next
/// holder of the lock may change that memory.
constexpr bool may_end(Kind kind) {
    return kind == Kind::put || kind == Kind::accumulate;
}

/// Tags on the window's private communicator. Messages with one tag from one rank arrive in order.
enum Tag : int {
    request_tag,   ///< origin to target: requests, each a header and those runs and data that fit
    grant_tag,     ///< target to origin: the lock is granted
    exposure_tag,  ///< MPI_Win_post to MPI_Win_start
    first_numbered_tag = 16,
};

/// Messages that belong to one request. Their tags follow from its sequence number, so that no other message can be taken for one
/// that was lost. Tags repeat after `requests_with_tags_of_their_own` requests; all are below 32767, which every MPI library has.
enum class Piece : int {
    runs,    ///< origin to target: runs that did not fit into the request
    data,    ///< origin to target: data, likewise
    answer,  ///< target to origin: what was fetched, or that a flush has ended
};
inline constexpr std::uint64_t requests_with_tags_of_their_own = 8192;

constexpr int tag_of(Piece piece, std::uint64_t sequence) {
    constexpr auto numbers = static_cast<int>(requests_with_tags_of_their_own);
    return first_numbered_tag + static_cast<int>(piece) * numbers +
           static_cast<int>(sequence % requests_with_tags_of_their_own);
}

struct Header {
    Kind kind{};
    bool bulk_runs = false;  ///< the runs come in a message of their own
    bool bulk_data = false;  ///< so does the data
    Ending ending = Ending::none;
    std::int32_t element = 0;       ///< predefined type, as a Fortran handle: accumulates only
    std::int32_t op = 0;            ///< predefined operation, likewise
    std::uint32_t runs = 0;         ///< number of runs of one element of the target's datatype
    std::uint64_t sequence = 0;     ///< number among this origin's requests to this target, from 0
    std::int64_t displacement = 0;  ///< in the target's units
    std::uint64_t count = 0;        ///< elements of the target's datatype
    std::int64_t extent = 0;        ///< bytes from one element to the next
    std::uint64_t bytes = 0;        ///< bytes of data in the target's memory that this is about
};
inline constexpr std::size_t header_bytes = 64;  ///< with padding, to align what follows for every type
inline constexpr std::size_t ending_at = 2;      ///< offset of `ending` in the header
inline constexpr std::size_t run_bytes = 16;
/// The most bytes of a request with its runs and data, and of a message of several requests. What is longer goes in messages of its own.
inline constexpr std::size_t most_inline = 32768;
/// The same where nothing else is on its way to the target: one message less then saves more than the copies at both ends cost.
inline constexpr std::size_t most_inline_alone = 98304;
/// Requests that are together shorter than this may wait for each other.
inline constexpr std::size_t batch_bytes = 4096;

/// Requests begin at multiples of 16 bytes, aligned for every type, with zeros in between.
constexpr std::size_t padded(std::size_t request_bytes) {
    constexpr std::size_t alignment = 16;
    return (request_bytes + alignment - 1) / alignment * alignment;
}

inline void write(const Header& header, std::uint8_t* to) {
    std::memset(to, 0, header_bytes);
    to[0] = static_cast<std::uint8_t>(header.kind);
    to[1] = static_cast<std::uint8_t>((header.bulk_runs ? 1 : 0) | (header.bulk_data ? 2 : 0));
    to[ending_at] = static_cast<std::uint8_t>(header.ending);
    store_le(to + 4, header.element);
    store_le(to + 8, header.op);
    store_le(to + 12, header.runs);
    store_le(to + 16, header.sequence);
    store_le(to + 24, header.displacement);
    store_le(to + 32, header.count);
    store_le(to + 40, header.extent);
    store_le(to + 48, header.bytes);
}

/// False when the bytes are not a header.
inline bool read(Header& header, const std::uint8_t* from, std::size_t bytes) {
    if (bytes < header_bytes || from[0] == 0 || from[0] > static_cast<std::uint8_t>(last_kind) ||
        from[1] > 3 || from[ending_at] > static_cast<std::uint8_t>(last_ending))
        return false;
    header.kind = static_cast<Kind>(from[0]);
    header.bulk_runs = from[1] & 1;
    header.bulk_data = from[1] & 2;
    header.ending = static_cast<Ending>(from[ending_at]);
    if (header.ending != Ending::none && !may_end(header.kind)) return false;
    header.element = load_le<std::int32_t>(from + 4);
    header.op = load_le<std::int32_t>(from + 8);
    header.runs = load_le<std::uint32_t>(from + 12);
    header.sequence = load_le<std::uint64_t>(from + 16);
    header.displacement = load_le<std::int64_t>(from + 24);
    header.count = load_le<std::uint64_t>(from + 32);
    header.extent = load_le<std::int64_t>(from + 40);
    header.bytes = load_le<std::uint64_t>(from + 48);
    return true;
}

}  // namespace mpisec::shim::rma
