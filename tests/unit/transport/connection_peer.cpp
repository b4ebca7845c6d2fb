// connection_peer ROLE KEY ADDRESS PORT: one end of an authenticated connection with the long-term key KEY (64 hexadecimal digits), which says
// back what it hears. ROLE client: connects to ADDRESS and PORT, and greets first. Server: listens there, and prints a line when it does.
#include <arpa/inet.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "support.hpp"

using namespace mpisec;
using namespace mpisec::transport;
using test::calls;
using test::library;

namespace {

Destination destination_of(const sockaddr_in& address) {
    Destination destination{};
    destination[10] = destination[11] = 0xff;
    std::memcpy(destination.data() + 12, &address.sin_addr, 4);
    std::memcpy(destination.data() + 16, &address.sin_port, 2);
    return destination;
}

bool send_all(AuthenticatedStream& stream, int socket, const char* data, std::size_t n) {
    const iovec piece = {const_cast<char*>(data), n};
    return stream.send(socket, {&piece, 1}, MSG_NOSIGNAL) == static_cast<ssize_t>(n);
}

}  // namespace

int main(int, char** argv) {
    const bool client = std::string(argv[1]) == "client";
    std::array<std::uint8_t, keys::secret_bytes> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(std::stoi(std::string(argv[2] + 2 * i, 2), nullptr, 16));
    const keys::Secret secret = keys::connection_secret(keys::Secret(bytes));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, argv[3], &address.sin_addr);
    address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[4])));
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    auto* name = reinterpret_cast<sockaddr*>(&address);
    if (client) {
        if (connect(connection, name, sizeof address) != 0) return 2;
    } else {
        const int yes = 1;
        setsockopt(connection, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (bind(connection, name, sizeof address) != 0 || listen(connection, 1) != 0) return 2;
        std::puts("listens");
        std::fflush(stdout);
        connection = accept(connection, nullptr, nullptr);
    }
    AuthenticatedStream stream(client ? AuthenticatedStream::Side::client : AuthenticatedStream::Side::server,
                               destination_of(address), {library(), secret}, calls,
                               [](const void*, std::size_t n) { return n; });
    if (client && !send_all(stream, connection, "greeting", 8)) return 3;
    char data[1 << 17];
    const iovec room = {data, sizeof data};
    for (;;) {
        const ssize_t n = stream.receive(connection, {&room, 1}, 0);
        if (n == 0) return 0;
        if (n < 0 || !send_all(stream, connection, data, static_cast<std::size_t>(n)))
            return 10 + static_cast<int>(stream.failure());
    }
}
