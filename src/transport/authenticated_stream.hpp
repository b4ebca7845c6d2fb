// One TCP connection of the MPI library, authenticated (docs/protocol.md, "Connections of the MPI library").
//
// The library's bytes travel as they are, cut into records, each with a tag:
//
//     hello   "MPIsecC1" | nonce, once per direction, ahead of all else; or "MPIsecC-": the other side's first record was false
//     record  header: u32 length A, with two flags | u32 length P | A bytes | tag of header and A bytes | P bytes
//
// Flags: `early`, the record is under the client's early key; `more`, the call that this record belongs to had more to send. The P bytes
// belong to messages that MPIsec has already sealed and whose receiver verifies them.
//
// To the library a stream looks like the socket: it takes and gives as many bytes as it can, blocks or returns EAGAIN as the socket does,
// and a process that polls the socket is woken when bytes can be received. Hence two rules:
//
//   - when the socket took a record in part, the rest is kept here, and the last of its bytes counts as not taken: the library waits until
//     it can write again and offers that byte once more, and the rest goes first
//   - while verified bytes wait here to be received, the last byte after them is left in the socket, which thus stays readable
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/connection_keys.hpp"

namespace mpisec::transport {

inline constexpr std::size_t hello_bytes = 8 + nonce_bytes;
inline constexpr std::size_t header_bytes = 8;
inline constexpr std::size_t most_authenticated = 1 << 16;  ///< A bytes of a record

/// The system's calls on a socket.
struct SocketCalls {
    ssize_t (*send)(int, const void*, std::size_t, int);
    ssize_t (*sendmsg)(int, const msghdr*, int);
    ssize_t (*recv)(int, void*, std::size_t, int);
    ssize_t (*recvmsg)(int, msghdr*, int);
};

/// What a stream derives its keys with.
struct Credentials {
    const aead::Library& library;
    const keys::Secret& secret;  ///< keys::connection_secret()
};

/// Returns the offset from which on the bytes belong to one sealed message; `n` if none do.
using SealedFrom = std::size_t (*)(const void* data, std::size_t n);

class AuthenticatedStream {
  public:
    enum class Side : std::uint8_t { client, server };  ///< connects, accepts
    enum class Failure : std::uint8_t {
        none,
        not_ours,   ///< the other side does not begin as MPIsec does
        refused,    ///< the other side could not verify this side's first record
        first,      ///< the other side's first record has a wrong tag: another key, or changed on the way
        later,      ///< a later record has a wrong tag: changed, dropped, replayed or injected on the way
        no_memory,  ///< there is none, or the crypto library failed
        ended,
    };

    /// `credentials` must outlive the stream.
    AuthenticatedStream(Side side, const Destination& destination, Credentials credentials,
                        const SocketCalls& calls, SealedFrom sealed_from);

    /// As sendmsg(2) and recvmsg(2) with these pieces and flags. -1 with errno ECONNRESET once the stream has failed.
    ssize_t send(int socket, std::span<const iovec> pieces, int flags);
    ssize_t receive(int socket, std::span<const iovec> pieces, int flags);

    /// Whether the last record has said that more follows: only then can has_something() return false.
    bool expects_more() const { return in_.more; }
    /// Whether receive() would find something on a socket that is readable, or fail. To be asked before the library is woken: UCX takes
    /// EAGAIN for the end of a message that it receives in parts.
    bool has_something(int socket);

    /// To be called when the socket is closed: keys and buffers are given back, and nothing is sent or received any more.
    void end();
    /// Whether anything was sent or received.
    bool begun() const { return out_.begun || in_.begun; }
    bool has_heard() const { return in_.begun; }  ///< whether the other side's hello has been read

    Failure failure() const { return failure_; }
    Side side() const { return side_; }

  private:
    /// What is left of a record that the socket took in part; one byte of it counts as not taken.
    struct Rest {
        std::unique_ptr<std::uint8_t[]> bytes;
        std::size_t begin = 0, end = 0;
        bool empty() const { return begin == end; }
    };
    struct Sending {
        aead::Key early, key;
        std::uint64_t records = 0;
        bool begun = false;  ///< the hello is sent
        Rest rest;
        std::size_t passing = 0;  ///< P bytes still to come from the library
    };
    struct Receiving {
        aead::Key early, key;
        std::uint64_t records = 0;
        bool begun = false;  ///< the hello has been read
        /// When the first byte was seen, while there is no record.
        std::chrono::steady_clock::time_point since{};
        bool late = false;  ///< a record that was not early has been read
        bool more = false;  ///< the last record has said that it is not the end of what was sent
        std::unique_ptr<std::uint8_t[]> bytes;
        std::size_t capacity = 0, begin = 0, end = 0;
        std::size_t in_socket = 0;  ///< how many of the last bytes are not taken from the socket yet
        std::size_t verified = 0;   ///< bytes at `begin` that are to be given to the library
        std::size_t passing = 0;    ///< P bytes behind them
        std::size_t usual = 0;      ///< size of the last record
        std::size_t expected = 0;   ///< size of the next record, as far as is known
    };
    class Pieces;
    struct Record;
    enum class Next : std::uint8_t { record, incomplete, failed };

    ssize_t fail(Failure failure);
    void refuse(int socket);
    bool is_overdue();
    bool make_keys();

    bool make_record(const Pieces& pieces, Record& record);
    bool send_rest(int socket, int flags);
    ssize_t send_both_parts(int socket, Pieces pieces, const Record& record, int flags);
    ssize_t send_record(int socket, Pieces& pieces, int flags);
    bool keep_rest(Record& record, std::size_t sent);
    ssize_t pass_on(int socket, Pieces& pieces, int flags);

    Next read_hello();
    Next next_record();
    bool verify(const std::uint8_t* header, std::size_t authenticated, bool early);
    ssize_t fill(int socket, std::size_t room, int flags);
    ssize_t give(int socket, Pieces& pieces, int flags);
    void take_from_socket(int socket);
    void discard(int socket, std::size_t n);
    std::size_t held() const { return in_.end - in_.begin; }
    bool reserve(std::size_t more);

    const Side side_;
    Failure failure_ = Failure::none;
    const Destination destination_;
    const Credentials credentials_;
    const SocketCalls& calls_;
    const SealedFrom sealed_from_;
    Nonce own_nonce_, peer_nonce_{};
    Sending out_;
    Receiving in_;
};

}  // namespace mpisec::transport
