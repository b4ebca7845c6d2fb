// Streams over real TCP connections: whatever way bytes are cut, they arrive, whoever polls the sockets is woken, and nothing that was
// changed on the way is given to the library.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "support.hpp"

namespace mpisec::transport {
namespace {

using Bytes = std::vector<std::uint8_t>;
using test::calls;
using test::library;
using Side = AuthenticatedStream::Side;
using Failure = AuthenticatedStream::Failure;

keys::Secret secret(std::uint8_t first) {
    std::array<std::uint8_t, keys::secret_bytes> bytes{};
    bytes[0] = first;
    return keys::connection_secret(keys::Secret(bytes));
}

/// Two ends of a TCP connection, which do not block.
struct Connected {
    explicit Connected(bool small_buffers = false) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* name = reinterpret_cast<sockaddr*>(&address);
        const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, small = 8192;
        if (small_buffers) setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        EXPECT_EQ(bind(listener, name, size), 0);
        EXPECT_EQ(listen(listener, 1), 0);
        EXPECT_EQ(getsockname(listener, name, &size), 0);
        ends[0] = socket(AF_INET, SOCK_STREAM, 0);
        if (small_buffers) setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        EXPECT_EQ(connect(ends[0], name, size), 0);
        ends[1] = accept(listener, nullptr, nullptr);
        close(listener);
        for (const int end : ends) {
            fcntl(end, F_SETFL, O_NONBLOCK);
            setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        }
    }
    ~Connected() {
        for (const int end : ends) close(end);
    }
    int ends[2];
};

/// Bytes of messages that MPIsec is taken to have sealed; and messages that are copied behind headers.
Bytes sealed_area(1 << 20), copied_area(1 << 20);
constexpr std::size_t header_of_library = 60;
std::vector<const std::uint8_t*> headers;  // in the copied area, in order

std::size_t in_sealed_area(const void* data, std::size_t n) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    const auto inside = [&](const Bytes& area) {
        return bytes >= area.data() && bytes + n <= area.data() + area.size();
    };
    if (!inside(copied_area)) return inside(sealed_area) ? 0 : n;
    const auto behind = std::ranges::upper_bound(headers, bytes);
    if (behind != headers.end() && *behind < bytes + n) return n;  // of two messages
    const std::uint8_t* sealed = *std::prev(behind) + header_of_library;
    return sealed <= bytes ? 0 : std::min(n, static_cast<std::size_t>(sealed - bytes));
}

bool can(int socket, short what) {
    pollfd polled = {socket, what, 0};
    return poll(&polled, 1, 0) == 1 && (polled.revents & what);
}

std::uint8_t byte_at(std::size_t i) {
    return static_cast<std::uint8_t>((i * 2654435761u) >> 13);
}

/// Sends the bytes of byte_at() in pieces of all sizes, some of them sealed.
class Sender {
  public:
    Sender(AuthenticatedStream& stream, int socket, std::size_t n, unsigned seed)
        : stream_(stream), socket_(socket), n_(n), random_(seed) {}
    bool finished() const { return sent_ == n_; }
    /// As a library does that waits until it can write.
    bool step() {
        if (finished() || !can(socket_, POLLOUT)) return false;
        headers.clear();
        std::vector<Bytes> own;
        std::vector<iovec> pieces;
        std::size_t at = sent_, area = 0;
        for (std::size_t count = 1 + random_() % 4; count > 0 && at < n_; --count) {
            const std::size_t size = std::min<std::size_t>(n_ - at, random_() % (1u << (random_() % 18)));
            std::uint8_t* to;
            const unsigned kind = random_() % 3;
            if (kind > 0 && area + size <= sealed_area.size()) {
                to = (kind == 1 ? sealed_area : copied_area).data() + area;
                if (kind == 2) headers.push_back(to);
                area += size;
            } else {
                to = own.emplace_back(size).data();
            }
            for (std::size_t i = 0; i < size; ++i) to[i] = byte_at(at + i);
            pieces.push_back({to, size});
            at += size;
        }
        const ssize_t n = stream_.send(socket_, pieces, MSG_NOSIGNAL);
        if (n > 0) sent_ += static_cast<std::size_t>(n);
        if (n < 0) wrong |= errno != EAGAIN;
        return true;
    }
    bool wrong = false;

  private:
    AuthenticatedStream& stream_;
    int socket_;
    std::size_t n_, sent_ = 0;
    std::mt19937 random_;
};

/// Receives them, by pieces of other sizes.
class Receiver {
  public:
    Receiver(AuthenticatedStream& stream, int socket, std::size_t n, unsigned seed)
        : stream_(stream), socket_(socket), n_(n), random_(seed) {}
    bool finished() const { return received_ == n_; }
    bool step() {
        if (!can(socket_, POLLIN)) return false;
        Bytes first(1 + random_() % (1u << (random_() % 17))), second(random_() % 300);
        const std::vector<iovec> pieces = {{first.data(), first.size()}, {second.data(), second.size()}};
        const ssize_t n = stream_.receive(socket_, pieces, 0);
        if (n < 0) wrong |= errno != EAGAIN;
        for (std::size_t i = 0; n > 0 && i < static_cast<std::size_t>(n); ++i) {
            const std::uint8_t got = i < first.size() ? first[i] : second[i - first.size()];
            if (got != byte_at(received_ + i)) wrong = true;
        }
        if (n > 0) received_ += static_cast<std::size_t>(n);
        return n > 0;
    }
    bool wrong = false;

  private:
    AuthenticatedStream& stream_;
    int socket_;
    std::size_t n_, received_ = 0;
    std::mt19937 random_;
};

constexpr Destination somewhere{1, 2, 3};

struct Streams {
    explicit Streams(const keys::Secret& client_key, const keys::Secret& server_key,
                     const Destination& client_destination = somewhere)
        : client(Side::client, client_destination, {library(), client_key}, calls, in_sealed_area),
          server(Side::server, somewhere, {library(), server_key}, calls, in_sealed_area) {}
    AuthenticatedStream client, server;
};

TEST(AuthenticatedStream, WhateverTheCuts) {
    const keys::Secret key = secret(1);
    for (unsigned seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        Connected sockets(true);
        Streams streams(key, key);
        std::uint8_t greeting = 1;
        const iovec piece = {&greeting, 1};
        ASSERT_EQ(streams.client.send(sockets.ends[0], {&piece, 1}, 0), 1);
        usleep(100);
        ASSERT_EQ(streams.server.receive(sockets.ends[1], {&piece, 1}, 0), 1);
        const std::size_t n = seed % 3 == 0 ? 3000 : 300'000;
        Sender there(streams.client, sockets.ends[0], n, seed),
            back(streams.server, sockets.ends[1], n, seed + 1);
        Receiver at_server(streams.server, sockets.ends[1], n, seed + 2),
            at_client(streams.client, sockets.ends[0], n, seed + 3);
        std::mt19937 random(seed);
        for (int idle = 0;
             !(there.finished() && back.finished() && at_server.finished() && at_client.finished());) {
            bool moved = false;
            if (random() % 2) moved |= there.step();
            if (random() % 2) moved |= at_server.step();
            if (random() % 2) moved |= back.step();
            if (random() % 2) moved |= at_client.step();
            idle = moved ? 0 : idle + 1;
            if (idle > 20) usleep(200);
            ASSERT_LT(idle, 500) << "nobody is woken any more";
        }
        EXPECT_FALSE(at_server.wrong || at_client.wrong || there.wrong || back.wrong);
        EXPECT_EQ(streams.client.failure(), Failure::none);
        EXPECT_EQ(streams.server.failure(), Failure::none);
    }
}

/// What one side sends, as the network sees it, and what the other side makes of bytes from the network.
struct Ends {
    Connected of_client, of_server;
    Streams streams;

    explicit Ends(const keys::Secret& key) : streams(key, key) {}

    static Bytes taken(int socket) {
        Bytes bytes(1 << 20);
        usleep(200);
        const ssize_t n = recv(socket, bytes.data(), bytes.size(), 0);
        bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        return bytes;
    }
    static Bytes sent(AuthenticatedStream& stream, const Connected& sockets, std::size_t n,
                      const std::uint8_t* from) {
        const iovec piece = {const_cast<std::uint8_t*>(from), n};
        EXPECT_EQ(stream.send(sockets.ends[0], {&piece, 1}, 0), static_cast<ssize_t>(n));
        return taken(sockets.ends[1]);
    }
    static Bytes received(AuthenticatedStream& stream, const Connected& sockets, const Bytes& bytes) {
        EXPECT_EQ(::send(sockets.ends[1], bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
        usleep(200);
        Bytes got(1 << 18);
        const iovec piece = {got.data(), got.size()};
        const ssize_t n = stream.receive(sockets.ends[0], {&piece, 1}, 0);
        got.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        return got;
    }
    Bytes from_client(const std::string& text) {
        return sent(streams.client, of_client, text.size(), bytes_of(text));
    }
    Bytes from_server(const std::string& text) {
        return sent(streams.server, of_server, text.size(), bytes_of(text));
    }
    std::string to_client(const Bytes& bytes) { return text_of(received(streams.client, of_client, bytes)); }
    std::string to_server(const Bytes& bytes) { return text_of(received(streams.server, of_server, bytes)); }
    /// Both sides have heard each other.
    void meet() {
        EXPECT_EQ(to_server(from_client("magic")), "magic");
        EXPECT_EQ(to_client(from_server("ack")), "ack");
    }
    static const std::uint8_t* bytes_of(const std::string& text) {
        return reinterpret_cast<const std::uint8_t*>(text.data());
    }
    static std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }
};

Bytes together(Bytes first, const Bytes& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

TEST(AuthenticatedStream, EachBitOfWhatIsSent) {
    const keys::Secret key = secret(2);
    const std::size_t first_size = hello_bytes + header_bytes + 5 + aead::tag_bytes;
    for (std::size_t bit = 0; bit < 8 * first_size; ++bit) {
        Ends ends(key);
        Bytes bytes = ends.from_client("magic");
        ASSERT_EQ(bytes.size(), first_size);
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
        EXPECT_EQ(ends.to_server(bytes), "") << bit;
        const std::size_t length =
            bit < 8 * hello_bytes || bit >= 8 * hello_bytes + 30 ? 0 : 5 ^ (1u << (bit - 8 * hello_bytes));
        const bool waits_for_more = length > 5 && length <= 4096;  // a longer record
        EXPECT_NE(ends.streams.server.failure() == Failure::none, !waits_for_more) << bit;
    }
    Ends ends(key);
    ends.meet();
    const Bytes later = ends.from_client("later");
    for (std::size_t bit = 24; bit < 8 * later.size(); ++bit) {
        Ends again(key);
        again.meet();
        Bytes bytes = again.from_client("later");
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
        EXPECT_EQ(again.to_server(bytes), "") << bit;
        EXPECT_EQ(again.streams.server.failure(), Failure::later) << bit;
    }
}

TEST(AuthenticatedStream, WhatIsRefused) {
    const keys::Secret key = secret(3);
    const auto refused = [&](const char* what, const std::function<Bytes(Ends&)>& attack) {
        Ends ends(key);
        ends.meet();
        EXPECT_EQ(ends.to_server(attack(ends)), "") << what;
        EXPECT_EQ(ends.streams.server.failure(), Failure::later) << what;
        std::uint8_t byte = 0;
        const iovec piece = {&byte, 1};
        EXPECT_EQ(ends.streams.server.send(ends.of_server.ends[0], {&piece, 1}, 0), -1) << what;
        EXPECT_EQ(errno, ECONNRESET) << what;
    };
    refused("the first record is missing", [](Ends& ends) {
        ends.from_client("one");
        return ends.from_client("two");
    });
    refused("bytes are injected",
            [](Ends& ends) { return together(Bytes(100, 7), ends.from_client("one")); });
    refused("reflected", [](Ends& ends) { return ends.from_server("one"); });
    refused("no content", [](Ends&) { return Bytes(header_bytes + aead::tag_bytes, 0); });
    refused("too long", [](Ends&) { return Bytes{1, 0, 1, 0, 0, 0, 0, 0}; });
    refused("early again", [](Ends& ends) {
        Bytes bytes = ends.from_client("one");
        bytes[3] |= 0x80;
        return bytes;
    });
    Ends ends(key);
    ends.meet();
    const Bytes one = ends.from_client("one"), two = ends.from_client("two");
    EXPECT_EQ(ends.to_server(together(one, two)), "onetwo");
    EXPECT_EQ(ends.to_server(two), "");
    EXPECT_EQ(ends.streams.server.failure(), Failure::later) << "repeated";
}

TEST(AuthenticatedStream, VerifiedBytesBeforeAFalseRecordAreGiven) {
    const keys::Secret key = secret(3);
    Ends ends(key);
    ends.meet();
    EXPECT_EQ(ends.to_server(together(ends.from_client("one"), Bytes(50, 9))), "one");
    EXPECT_EQ(ends.to_server({1}), "");
    EXPECT_EQ(ends.streams.server.failure(), Failure::later);
}

TEST(AuthenticatedStream, AnotherKeyDestinationOrProgram) {
    const keys::Secret key = secret(4), other = secret(5);
    const auto heard = [&](Streams& streams, bool as_plain) {
        Connected pair;
        std::uint8_t data[64] = "plain words of an MPI library, which are no hello of MPIsec";
        const iovec piece = {data, sizeof data};
        if (as_plain)
            (void)!::send(pair.ends[0], data, sizeof data, 0);
        else
            streams.client.send(pair.ends[0], {&piece, 1}, 0);
        usleep(200);
        EXPECT_EQ(streams.server.receive(pair.ends[1], {&piece, 1}, 0), -1);
        return streams.server.failure();
    };
    Streams keys_differ(key, other), places_differ(key, key, Destination{1, 2, 4}), same(key, key);
    EXPECT_EQ(heard(keys_differ, false), Failure::first);
    EXPECT_EQ(heard(places_differ, false), Failure::first);
    EXPECT_EQ(heard(same, true), Failure::not_ours);
}

TEST(AuthenticatedStream, WhoWasRefusedIsTold) {
    const keys::Secret key = secret(4), other = secret(5);
    Connected sockets;
    Streams streams(key, other);
    std::uint8_t data[8] = "hello";
    const iovec piece = {data, sizeof data};
    EXPECT_EQ(streams.client.send(sockets.ends[0], {&piece, 1}, 0), 8);
    usleep(200);
    EXPECT_EQ(streams.server.receive(sockets.ends[1], {&piece, 1}, 0), -1);
    usleep(200);
    EXPECT_EQ(streams.client.receive(sockets.ends[0], {&piece, 1}, 0), -1);
    EXPECT_EQ(streams.client.failure(), Failure::refused);
}

TEST(AuthenticatedStream, AConnectionOfEarlierDays) {
    const keys::Secret key = secret(6);
    Ends then(key), now(key);
    const Bytes first = then.from_client("magic");
    EXPECT_EQ(then.to_server(first), "magic");
    EXPECT_EQ(then.to_client(then.from_server("ack")), "ack");
    const Bytes second = then.from_client("data");
    // What a client says before it has heard the server may be said again by others, and no more.
    EXPECT_EQ(now.to_server(first), "magic");
    EXPECT_EQ(now.to_server(second), "");
    EXPECT_EQ(now.streams.server.failure(), Failure::later);
}

TEST(AuthenticatedStream, TheServerHearsFirst) {
    const keys::Secret key = secret(7);
    Ends ends(key);
    std::uint8_t byte = 1;
    const iovec piece = {&byte, 1};
    EXPECT_EQ(ends.streams.server.send(ends.of_server.ends[0], {&piece, 1}, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    ends.meet();
    EXPECT_EQ(ends.to_client(ends.from_server("x")), "x");
}

TEST(AuthenticatedStream, AllThatIsAskedFor) {
    const keys::Secret key = secret(7);
    Ends ends(key);
    ends.meet();
    fcntl(ends.of_server.ends[0], F_SETFL, 0);  // blocks
    const Bytes first = ends.from_client("one"), bytes = together(first, ends.from_client("three"));
    EXPECT_EQ(::send(ends.of_server.ends[1], bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    char text[9] = "";
    const iovec pieces[] = {{text, 2}, {text + 2, 6}};
    EXPECT_EQ(ends.streams.server.receive(ends.of_server.ends[0], pieces, MSG_WAITALL), 8);
    EXPECT_STREQ(text, "onethree");
    EXPECT_EQ(ends.streams.server.receive(ends.of_server.ends[0], pieces, MSG_PEEK), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
    shutdown(ends.of_server.ends[1], SHUT_WR);
    EXPECT_EQ(ends.streams.server.receive(ends.of_server.ends[0], pieces, 0), 0);
    ends.streams.server.end();
    EXPECT_EQ(ends.streams.server.send(ends.of_server.ends[0], pieces, 0), -1);
}

TEST(AuthenticatedStream, ALargeGreetingIsNotWaitedFor) {
    const keys::Secret key = secret(7);
    Ends ends(key);
    EXPECT_EQ(ends.to_server(ends.from_client(std::string(5000, 'x'))), "");
    EXPECT_EQ(ends.streams.server.failure(), Failure::first);
}

TEST(AuthenticatedStream, SealedBytesPassAsTheyAre) {
    const keys::Secret key = secret(8);
    Ends ends(key);
    ends.meet();
    for (std::size_t i = 0; i < 9000; ++i) sealed_area[i] = byte_at(i);
    std::uint8_t header[20] = "a library's header";
    const iovec pieces[] = {{header, sizeof header}, {sealed_area.data(), 9000}};
    ASSERT_EQ(ends.streams.client.send(ends.of_client.ends[0], pieces, 0), 9020);
    Bytes bytes = Ends::taken(ends.of_client.ends[1]);
    ASSERT_EQ(bytes.size(), header_bytes + sizeof header + aead::tag_bytes + 9000);
    EXPECT_TRUE(std::equal(bytes.end() - 9000, bytes.end(), sealed_area.begin()));
    bytes.back() ^= 1;  // MPIsec's own tag is to find that
    const std::string got = ends.to_server(bytes);
    ASSERT_EQ(got.size(), 9020u);
    EXPECT_EQ(ends.streams.server.failure(), Failure::none);
    EXPECT_EQ(ends.to_server(ends.from_client("next")), "next");
}

TEST(AuthenticatedStream, SealedBytesBehindAHeaderPassAsTheyAre) {
    const keys::Secret key = secret(1);
    Ends ends(key);
    ends.meet();
    headers = {copied_area.data()};
    const iovec piece = {copied_area.data(), 20'000};
    ASSERT_EQ(ends.streams.client.send(ends.of_client.ends[0], {&piece, 1}, 0), 20'000);
    Bytes record = Ends::taken(ends.of_client.ends[1]);
    const std::size_t front = header_bytes + header_of_library + aead::tag_bytes;
    ASSERT_EQ(record.size(), front + 20'000 - header_of_library);
    record[front + 100] ^= 1;  // what MPIsec has sealed it verifies itself
    EXPECT_EQ(ends.to_server(record).size(), 20'000u);
    EXPECT_EQ(ends.streams.server.failure(), Failure::none);
}

TEST(AuthenticatedStream, WhoeverIsWokenFindsSomething) {
    const keys::Secret key = secret(9);
    Ends ends(key);
    ends.meet();
    const Bytes large(100'000, 1);
    const iovec piece = {const_cast<std::uint8_t*>(large.data()), large.size()};
    ASSERT_EQ(ends.streams.client.send(ends.of_client.ends[0], {&piece, 1}, 0), 100'000);
    Bytes all;
    const std::size_t first = header_bytes + most_authenticated + aead::tag_bytes;
    while (all.size() < first + 100) all = together(std::move(all), Ends::taken(ends.of_client.ends[1]));
    Bytes buffer(most_authenticated);
    const iovec room = {buffer.data(), buffer.size()};
    const auto feed = [&](std::size_t from, std::size_t n) {
        EXPECT_EQ(::send(ends.of_server.ends[1], all.data() + from, n, 0), static_cast<ssize_t>(n));
        usleep(200);
    };
    feed(0, first);
    EXPECT_TRUE(ends.streams.server.has_something(ends.of_server.ends[0]));
    EXPECT_EQ(ends.streams.server.receive(ends.of_server.ends[0], {&room, 1}, 0),
              static_cast<ssize_t>(most_authenticated));
    // The first record has said that there is more.
    feed(first, 100);
    EXPECT_TRUE(can(ends.of_server.ends[0], POLLIN));
    EXPECT_FALSE(ends.streams.server.has_something(ends.of_server.ends[0]));
    EXPECT_FALSE(can(ends.of_server.ends[0], POLLIN)) << "and nobody is woken for it again";
    // What is false is something, too.
    Bytes rest(all.begin() + static_cast<std::ptrdiff_t>(first) + 100, all.end());
    rest.resize(40'000);
    rest[0] ^= 1;
    EXPECT_EQ(::send(ends.of_server.ends[1], rest.data(), rest.size(), 0), static_cast<ssize_t>(rest.size()));
    usleep(1000);
    EXPECT_TRUE(ends.streams.server.has_something(ends.of_server.ends[0]));
    EXPECT_EQ(ends.streams.server.receive(ends.of_server.ends[0], {&room, 1}, 0), -1);
    EXPECT_EQ(ends.streams.server.failure(), Failure::later);
}

}  // namespace
}  // namespace mpisec::transport
