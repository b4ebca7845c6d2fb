// What comes over an authenticated connection: an honest stream with the input laid over it, cut as the input says. The library below is
// given a beginning of what was sent, and nothing else.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "transport/authenticated_stream.hpp"

using namespace mpisec;
using namespace mpisec::transport;

extern "C" const mpisec_aead_plugin mpisec_aead_plugin_table;  // of plugins/openssl.cpp

namespace {

/// The network between the two sides: what was written and not read yet.
struct Network {
    std::vector<std::uint8_t> bytes;
    std::size_t read = 0, most = SIZE_MAX;  ///< of one call
} network;

ssize_t fake_send(int, const void* data, std::size_t n, int) {
    const auto* from = static_cast<const std::uint8_t*>(data);
    network.bytes.insert(network.bytes.end(), from, from + n);
    return static_cast<ssize_t>(n);
}

ssize_t fake_sendmsg(int socket, const msghdr* message, int flags) {
    ssize_t sum = 0;
    for (std::size_t i = 0; i < message->msg_iovlen; ++i)
        sum += fake_send(socket, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len, flags);
    return sum;
}

ssize_t fake_recv(int, void* to, std::size_t n, int flags) {
    n = std::min({n, network.most, network.bytes.size() - network.read});
    if (n == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (!(flags & MSG_TRUNC)) std::memcpy(to, network.bytes.data() + network.read, n);
    if (!(flags & MSG_PEEK)) network.read += n;
    return static_cast<ssize_t>(n);
}

ssize_t fake_recvmsg(int socket, msghdr* message, int flags) {
    return fake_recv(socket, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len, flags);
}

constexpr SocketCalls calls = {fake_send, fake_sendmsg, fake_recv, fake_recvmsg};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) return 0;
    static const aead::Library library(&mpisec_aead_plugin_table);
    static const keys::Secret secret;
    const auto never = [](const void*, std::size_t n) { return n; };
    AuthenticatedStream client(AuthenticatedStream::Side::client, {}, {library, secret}, calls, never);
    AuthenticatedStream server(AuthenticatedStream::Side::server, {}, {library, secret}, calls, never);
    network = {};
    std::string sent;
    for (std::size_t length : {5u, 40u, 1u, 300u}) {
        std::string text(length, static_cast<char>('a' + sent.size() % 26));
        const iovec piece = {text.data(), text.size()};
        FUZZ_CHECK(client.send(0, {&piece, 1}, 0) == static_cast<ssize_t>(length));
        sent += text;
    }
    network.most = data[0] + 1u;
    const std::size_t room = data[1] * 16u + 1, at = data[2] * 2u;
    for (std::size_t i = 3; i < size && at + i - 3 < network.bytes.size(); ++i)
        network.bytes[at + i - 3] ^= data[i];
    if (size % 5 == 0)
        network.bytes.insert(network.bytes.begin() + static_cast<std::ptrdiff_t>(at % network.bytes.size()),
                             data, data + size);
    std::string received;
    for (int left = 2000; left > 0; --left) {
        std::string text(room, 0);
        const iovec piece = {text.data(), text.size()};
        server.has_something(0);
        const ssize_t n = server.receive(0, {&piece, 1}, 0);
        if (n < 0 &&
            (server.failure() != AuthenticatedStream::Failure::none || network.read == network.bytes.size()))
            break;
        if (n > 0) received.append(text, 0, static_cast<std::size_t>(n));
    }
    // P bytes are passed on unseen, but how many there are is authenticated: here none.
    FUZZ_CHECK(sent.starts_with(received));
    return 0;
}
