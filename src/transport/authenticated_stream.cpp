#include "transport/authenticated_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/bytes.hpp"

namespace mpisec::transport {

using Use = keys::ConnectionUse;

namespace {

constexpr std::array<std::uint8_t, 8> magic = {'M', 'P', 'I', 's', 'e', 'c', 'C', '1'};
constexpr std::array<std::uint8_t, 8> refusal = {'M', 'P', 'I', 's', 'e', 'c', 'C', '-'};
constexpr std::uint32_t early_bit = 1u << 31, more_bit = 1u << 30;
constexpr std::size_t most_passing = 1u << 30;
/// Shorter sealed pieces are authenticated again: that takes less time than handling them separately.
constexpr std::size_t least_passing = 8192;
/// A record has at least this much before sealed bytes: something to authenticate.
constexpr std::size_t least_authenticated = 16;
/// The least that is read at a time, and the most that a stream keeps while it is idle.
constexpr std::size_t smallest_buffer = 4096, largest_idle_buffer = 40960;
/// Up to this many sealed bytes behind a record are read with it: copying them takes less time than another call.
constexpr std::size_t most_read_ahead = 32768;
/// A stranger's first record is not waited for longer than this, nor at all if it is larger: the libraries greet with some 50 bytes.
constexpr std::chrono::seconds longest_greeting{30};
constexpr std::size_t largest_greeting = 4096;
constexpr std::size_t most_pieces = 16;  // of one system call

/// Otherwise false, and errno says so: other flags would need the socket's own bytes, or keep the bytes in use after the call.
bool is_supported(int flags) {
    constexpr int supported = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_WAITALL | MSG_MORE | MSG_CMSG_CLOEXEC;
    if (!(flags & ~supported)) return true;
    errno = EOPNOTSUPP;
    return false;
}

std::array<std::uint8_t, aead::nonce_bytes> nonce_of(std::uint64_t record) {
    std::array<std::uint8_t, aead::nonce_bytes> nonce{};
    store_le(nonce.data() + 4, record);
    return nonce;
}

}  // namespace

/// What is left of the pieces of a call.
class AuthenticatedStream::Pieces {
  public:
    explicit Pieces(std::span<const iovec> pieces) : left_(pieces) { skip_empty(); }

    bool empty() const { return left_.empty(); }
    std::uint8_t* data() const { return static_cast<std::uint8_t*>(left_.front().iov_base) + done_; }
    std::size_t size() const { return left_.front().iov_len - done_; }  ///< of the first one
    std::size_t total() const {
        std::size_t sum = 0;
        for (const iovec& piece : left_) sum += piece.iov_len;
        return sum - done_;
    }
    void advance(std::size_t n) {
        while (n > 0) {
            const std::size_t step = std::min(n, size());
            done_ += step;
            n -= step;
            skip_empty();
        }
    }
    /// Lists the first `n` bytes as pieces, or fewer where there are more pieces than fit. Returns how many bytes are listed.
    std::size_t list(std::size_t n, iovec* to, std::size_t most, std::size_t& count) const {
        Pieces rest = *this;
        std::size_t listed = 0;
        for (count = 0; count < most && listed < n && !rest.empty(); ++count) {
            const std::size_t step = std::min(n - listed, rest.size());
            to[count] = {rest.data(), step};
            listed += step;
            rest.advance(step);
        }
        return listed;
    }

  private:
    void skip_empty() {
        while (!left_.empty() && left_.front().iov_len == done_) {
            left_ = left_.subspan(1);
            done_ = 0;
        }
    }
    std::span<const iovec> left_;
    std::size_t done_ = 0;  // of the first one
};

AuthenticatedStream::AuthenticatedStream(Side side, const Destination& destination, Credentials credentials,
                                         const SocketCalls& calls, SealedFrom sealed_from)
    : side_(side),
      destination_(destination),
      credentials_(credentials),
      calls_(calls),
      sealed_from_(sealed_from) {
    keys::random_bytes(own_nonce_.data(), own_nonce_.size());
    if (side_ == Side::server) return;
    auto early = connection_key(credentials_.library, credentials_.secret, Use::client_early, destination_,
                                own_nonce_);
    if (early) out_.early = std::move(*early);
}

ssize_t AuthenticatedStream::fail(Failure failure) {
    if (failure_ == Failure::none) failure_ = failure;
    errno = ECONNRESET;
    return -1;
}

/// Called once the other side's nonce is known.
bool AuthenticatedStream::make_keys() {
    const bool client = side_ == Side::client;
    std::array<std::uint8_t, 2 * nonce_bytes> both;
    std::copy_n((client ? own_nonce_ : peer_nonce_).begin(), nonce_bytes, both.begin());
    std::copy_n((client ? peer_nonce_ : own_nonce_).begin(), nonce_bytes, both.begin() + nonce_bytes);
    const auto make = [&](Use use, std::span<const std::uint8_t> nonces, aead::Key& key) {
        auto made = connection_key(credentials_.library, credentials_.secret, use, destination_, nonces);
        if (made) key = std::move(*made);
        return made.has_value();
    };
    if (!client && !make(Use::client_early, peer_nonce_, in_.early)) return false;
    out_.early = aead::Key();
    return make(Use::client, both, client ? out_.key : in_.key) &&
           make(Use::server, both, client ? in_.key : out_.key);
}

// ---- sending ---------------------------------------------------------------------------------------------

ssize_t AuthenticatedStream::send(int socket, std::span<const iovec> given, int flags) {
    if (failure_ != Failure::none) return fail(failure_);
    if (!is_supported(flags)) return -1;
    Pieces pieces(given);
    if (pieces.empty()) return 0;
    if (!out_.key && !out_.early) {  // on the side that accepts, the library hears first
        errno = EAGAIN;
        return side_ == Side::client ? fail(Failure::no_memory) : -1;
    }
    ssize_t done = 0;
    if (!out_.rest.empty()) {
        if (!send_rest(socket, flags)) return -1;
        pieces.advance(1);  // the byte that counted as not taken
        done = 1;
    }
    while (!pieces.empty()) {
        const bool passing = out_.passing > 0;
        const ssize_t n = passing ? pass_on(socket, pieces, flags) : send_record(socket, pieces, flags);
        if (n < 0) return done > 0 ? done : -1;
        done += n;
        if (!out_.rest.empty()) break;
    }
    if (done > 0) return done;
    errno = EAGAIN;  // the one byte that was offered counts as not taken
    return -1;
}

/// True when all of the rest is on its way; otherwise errno says why not.
bool AuthenticatedStream::send_rest(int socket, int flags) {
    Rest& rest = out_.rest;
    const ssize_t n = calls_.send(socket, rest.bytes.get() + rest.begin, rest.end - rest.begin, flags);
    if (n < 0) return false;
    rest.begin += static_cast<std::size_t>(n);
    errno = EAGAIN;
    if (!rest.empty()) return false;
    rest = {};
    return true;
}

/// Sends bytes that MPIsec has sealed, straight from where they are.
ssize_t AuthenticatedStream::pass_on(int socket, Pieces& pieces, int flags) {
    iovec listed[most_pieces];
    std::size_t count = 0;
    pieces.list(out_.passing, listed, most_pieces, count);
    msghdr message{};
    message.msg_iov = listed;
    message.msg_iovlen = count;
    const ssize_t sent = calls_.sendmsg(socket, &message, flags);
    if (sent < 0) return -1;
    pieces.advance(static_cast<std::size_t>(sent));
    out_.passing -= static_cast<std::size_t>(sent);
    return sent;
}

/// Exists only while it is sent: with a buffer for each connection, the buffers of many connections would add up.
struct AuthenticatedStream::Record {
    /// With room for `most` of the library's bytes; `bytes` is null where there is no memory for them.
    explicit Record(std::size_t most) {
        const std::size_t needed = hello_bytes + header_bytes + most + aead::tag_bytes;
        if (needed <= sizeof small) return;
        large.reset(new (std::nothrow) std::uint8_t[needed]);
        bytes = large.get();
    }
    void append(const void* from, std::size_t n) {
        std::memcpy(bytes + size, from, n);
        size += n;
    }
    void pass(Pieces& rest, std::size_t n) {
        n = std::min(n, most_passing - passing);
        passing += n;
        rest.advance(n);
    }
    std::uint8_t small[2048];
    std::unique_ptr<std::uint8_t[]> large;
    std::uint8_t* bytes = small;
    std::size_t size = 0;
    std::size_t authenticated = 0;  ///< of the library's bytes, those in the record
    std::size_t passing = 0;        ///< those behind it
};

/// Cuts the next bytes into the two parts of a record, and puts the first part into it. False when the crypto library failed.
bool AuthenticatedStream::make_record(const Pieces& pieces, Record& record) {
    Pieces rest = pieces;
    if (!out_.begun) {
        record.append(magic.data(), magic.size());
        record.append(own_nonce_.data(), own_nonce_.size());
    }
    std::uint8_t* header = record.bytes + record.size;
    record.size += header_bytes;
    std::size_t& authenticated = record.authenticated;
    while (!rest.empty() && authenticated < most_authenticated) {
        const std::size_t size = rest.size();
        std::size_t clear = size < least_passing ? size : sealed_from_(rest.data(), size);
        if (authenticated + clear < least_authenticated)
            clear = std::min(size, least_authenticated - authenticated);
        const std::size_t step = std::min(clear, most_authenticated - authenticated);
        record.append(rest.data(), step);
        authenticated += step;
        rest.advance(step);
        if (step < clear || clear == size) continue;
        record.pass(rest, size - clear);
        while (!rest.empty() && sealed_from_(rest.data(), rest.size()) == 0 && record.passing < most_passing)
            record.pass(rest, rest.size());
        break;
    }
    const bool early = !out_.key;
    store_le(header, static_cast<std::uint32_t>(authenticated) | (early ? early_bit : 0) |
                         (rest.empty() ? 0 : more_bit));
    store_le(header + 4, static_cast<std::uint32_t>(record.passing));
    std::uint8_t* tag = record.bytes + record.size;
    record.size += aead::tag_bytes;
    const aead::Key& key = early ? out_.early : out_.key;
    return key.seal(tag, tag, 0, nonce_of(out_.records).data(), header,
                    static_cast<std::size_t>(tag - header));
}

/// Sends the record that was made, and the sealed bytes that follow it.
ssize_t AuthenticatedStream::send_both_parts(int socket, Pieces pieces, const Record& record, int flags) {
    if (record.passing == 0) return calls_.send(socket, record.bytes, record.size, flags);
    pieces.advance(record.authenticated);
    iovec listed[1 + most_pieces];
    listed[0] = {record.bytes, record.size};
    std::size_t count = 0;
    pieces.list(record.passing, listed + 1, most_pieces, count);
    msghdr message{};
    message.msg_iov = listed;
    message.msg_iovlen = 1 + count;
    return calls_.sendmsg(socket, &message, flags);
}

/// False when there is no memory for it.
bool AuthenticatedStream::keep_rest(Record& record, std::size_t sent) {
    Rest& rest = out_.rest;
    rest = {std::move(record.large), sent, record.size};
    if (rest.bytes) return true;
    rest = {std::unique_ptr<std::uint8_t[]>(new (std::nothrow) std::uint8_t[record.size - sent]), 0,
            record.size - sent};
    if (!rest.bytes) return false;
    std::memcpy(rest.bytes.get(), record.bytes + sent, rest.end);
    return true;
}

/// Sends a record of the next pieces. Returns how many of the library's bytes count as taken.
ssize_t AuthenticatedStream::send_record(int socket, Pieces& pieces, int flags) {
    Record record(std::min(pieces.total(), most_authenticated));
    if (!record.bytes || !make_record(pieces, record)) return fail(Failure::no_memory);
    const ssize_t sent = send_both_parts(socket, pieces, record, flags);
    if (sent < 0) return -1;  // nobody has seen this record's tag: its number may be used again
    out_.records++;
    out_.begun = true;
    out_.passing = record.passing;
    auto n = static_cast<std::size_t>(sent);
    if (n < record.size) {
        if (!keep_rest(record, n)) return fail(Failure::no_memory);
        n = record.authenticated - 1;
    } else {
        n -= record.size;
        out_.passing -= n;
        n += record.authenticated;
    }
    pieces.advance(n);
    return static_cast<ssize_t>(n);
}

// ---- receiving -------------------------------------------------------------------------------------------

ssize_t AuthenticatedStream::receive(int socket, std::span<const iovec> given, int flags) {
    if (failure_ != Failure::none) return fail(failure_);
    if (!is_supported(flags)) return -1;
    Pieces pieces(given);
    if (pieces.empty()) return 0;
    const bool all = (flags & MSG_WAITALL) != 0;
    flags &= ~MSG_WAITALL;
    ssize_t done = 0;
    while (!pieces.empty()) {
        if (in_.verified > 0 || in_.passing > 0) {
            const ssize_t n = give(socket, pieces, done > 0 && !all ? flags | MSG_DONTWAIT : flags);
            if (n <= 0 && done == 0) return n;
            if (n <= 0) break;
            done += n;
            continue;
        }
        const Next next = next_record();
        if (next == Next::failed) {
            refuse(socket);
            return done > 0 ? done : -1;
        }
        if (next == Next::record) continue;
        if (is_overdue()) return fail(Failure::not_ours);
        if (done > 0 && !all) break;  // what has arrived does not wait for more
        const ssize_t n = fill(socket, pieces.total(), flags);
        if (n <= 0 && done == 0) return n;
        if (n <= 0) break;
    }
    take_from_socket(socket);
    return done;
}

bool AuthenticatedStream::has_something(int socket) {
    if (failure_ != Failure::none || in_.verified > 0 || in_.passing > 0 || !in_.more) return true;
    const ssize_t n = fill(socket, 0, MSG_DONTWAIT);
    return in_.verified > 0 || n == 0 || (n < 0 && errno != EAGAIN) || failure_ != Failure::none;
}

/// Whether the side that has connected takes too long for its first record.
bool AuthenticatedStream::is_overdue() {
    if (side_ == Side::client || in_.records > 0 || held() == 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (in_.since == decltype(now){}) in_.since = now;
    return now - in_.since > longest_greeting;
}

void AuthenticatedStream::end() {
    failure_ = Failure::ended;
    in_ = {};
    out_ = {};
}

/// Tells the side that has connected, whose library might otherwise try for ever. Strangers that speak other protocols are not told.
void AuthenticatedStream::refuse(int socket) {
    if (side_ == Side::client || failure_ != Failure::first || out_.begun) return;
    const int error = errno;
    calls_.send(socket, refusal.data(), refusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    errno = error;
}

/// Gives the library the verified bytes, then the bytes that pass, from the buffer or straight from the socket.
ssize_t AuthenticatedStream::give(int socket, Pieces& pieces, int flags) {
    std::size_t& part = in_.verified > 0 ? in_.verified : in_.passing;
    if (&part == &in_.passing && held() <= in_.in_socket) {  // from the socket, where all of it still is
        discard(socket, in_.in_socket - held());
        in_.end = in_.begin;
        in_.in_socket = 0;
    }
    ssize_t n;
    if (held() > 0) {
        const std::size_t step = std::min({part, pieces.size(), held()});
        std::memcpy(pieces.data(), in_.bytes.get() + in_.begin, step);
        in_.begin += step;
        n = static_cast<ssize_t>(step);
        if (in_.verified == step && &part == &in_.verified) in_.begin += aead::tag_bytes;
    } else {
        iovec listed[most_pieces];
        msghdr message{};
        message.msg_iov = listed;
        pieces.list(part, listed, most_pieces, message.msg_iovlen);
        n = calls_.recvmsg(socket, &message, flags);
        if (n <= 0) return n;
    }
    pieces.advance(static_cast<std::size_t>(n));
    part -= static_cast<std::size_t>(n);
    return n;
}

AuthenticatedStream::Next AuthenticatedStream::read_hello() {
    const std::uint8_t* bytes = in_.bytes.get() + in_.begin;
    if (std::memcmp(bytes, magic.data(), std::min(held(), magic.size())) != 0) {
        const bool is_refusal = side_ == Side::client && held() >= refusal.size() &&
                                std::memcmp(bytes, refusal.data(), refusal.size()) == 0;
        fail(is_refusal ? Failure::refused : Failure::not_ours);
        return Next::failed;
    }
    in_.expected = hello_bytes;
    if (held() < hello_bytes) return Next::incomplete;
    std::copy_n(bytes + magic.size(), nonce_bytes, peer_nonce_.begin());
    in_.begin += hello_bytes;
    in_.begun = true;
    if (make_keys()) return Next::record;
    fail(Failure::no_memory);
    return Next::failed;
}

/// Verifies the next record, if it is there.
AuthenticatedStream::Next AuthenticatedStream::next_record() {
    if (!in_.begun) {
        const Next hello = held() > 0 ? read_hello() : Next::incomplete;
        if (hello != Next::record) return hello;
    }
    in_.expected = header_bytes;
    if (held() < header_bytes) return Next::incomplete;
    const std::uint8_t* header = in_.bytes.get() + in_.begin;
    const auto word = load_le<std::uint32_t>(header);
    const bool early = (word & early_bit) != 0;
    const std::size_t authenticated = word & ~(early_bit | more_bit);
    const bool greets = side_ == Side::server && in_.records == 0;
    const bool possible = authenticated > 0 &&
                          authenticated <= (greets ? largest_greeting : most_authenticated) &&
                          !(early && in_.late);
    in_.expected = header_bytes + authenticated + aead::tag_bytes;
    if (possible && held() < in_.expected) return Next::incomplete;
    if (!possible || !verify(header, authenticated, early)) {
        fail(in_.records == 0 ? Failure::first : Failure::later);
        return Next::failed;
    }
    in_.records++;
    in_.passing = load_le<std::uint32_t>(header + 4);
    in_.usual = in_.expected + (in_.passing <= most_read_ahead ? in_.passing : 0);
    in_.late = !early;
    if (in_.late) in_.early = aead::Key();
    in_.more = (word & more_bit) != 0;
    in_.begin += header_bytes;
    in_.verified = authenticated;
    return Next::record;
}

bool AuthenticatedStream::verify(const std::uint8_t* header, std::size_t authenticated, bool early) {
    const aead::Key& key = early ? in_.early : in_.key;
    std::uint8_t nothing[1];
    return key && key.open(nothing, header + header_bytes + authenticated, 0, nonce_of(in_.records).data(),
                           header, header_bytes + authenticated);
}

/// Reads more bytes into the buffer. They stay in the socket, too, until take_from_socket(), unless the library has `room` for all of them.
/// 0: the other side has ended; -1 with errno.
ssize_t AuthenticatedStream::fill(int socket, std::size_t room, int flags) {
    discard(socket, std::exchange(in_.in_socket, 0));
    if (in_.begin == in_.end) in_.begin = in_.end = 0;
    const std::size_t known = std::max(in_.expected, in_.usual);
    if (!reserve(std::max(known > held() ? known - held() : 0, smallest_buffer)))
        return fail(Failure::no_memory);
    const std::size_t most = in_.capacity - in_.end;
    const int look = room >= held() + most ? 0 : MSG_PEEK;
    const ssize_t n = calls_.recv(socket, in_.bytes.get() + in_.end, most, flags | look);
    if (n <= 0) return n;
    in_.end += static_cast<std::size_t>(n);
    in_.in_socket = look ? static_cast<std::size_t>(n) : 0;
    if (next_record() == Next::incomplete) discard(socket, std::exchange(in_.in_socket, 0));
    return n;
}

/// Makes room for `more` bytes after those that are held. False when there is no memory for them.
bool AuthenticatedStream::reserve(std::size_t more) {
    if (in_.capacity - in_.end >= more) return true;
    const std::size_t needed = held() + more;
    if (in_.capacity < needed) {
        std::unique_ptr<std::uint8_t[]> larger(new (std::nothrow) std::uint8_t[needed]);
        if (!larger) return false;
        if (held() > 0) std::memcpy(larger.get(), in_.bytes.get() + in_.begin, held());
        in_.bytes = std::move(larger);
        in_.capacity = needed;
    } else if (held() > 0) {
        std::memmove(in_.bytes.get(), in_.bytes.get() + in_.begin, held());
    }
    in_.end = held();
    in_.begin = 0;
    return true;
}

/// Takes from the socket what was only peeked at and is done with. While the library can still receive bytes without reading the socket,
/// one byte stays, so that the socket is readable.
void AuthenticatedStream::take_from_socket(int socket) {
    if (in_.verified == 0 && in_.passing > 0) {  // goes from the socket to the library
        const std::size_t untouched = std::min(held(), in_.in_socket);
        in_.end -= untouched;
        in_.in_socket -= untouched;
    }
    const bool more = in_.verified > 0 || (in_.passing > 0 && held() > 0) || next_record() == Next::record;
    const std::size_t stays = more ? std::min<std::size_t>(in_.in_socket, 1) : 0;
    discard(socket, in_.in_socket - stays);
    in_.in_socket = stays;
    if (held() == 0 && in_.capacity > largest_idle_buffer) {
        in_.bytes.reset();
        in_.capacity = in_.begin = in_.end = 0;
    }
}

void AuthenticatedStream::discard(int socket, std::size_t n) {
    while (n > 0) {
        const ssize_t taken = calls_.recv(socket, nullptr, n, MSG_TRUNC | MSG_DONTWAIT);
        if (taken <= 0) return;
        n -= static_cast<std::size_t>(taken);
    }
}

}  // namespace mpisec::transport
