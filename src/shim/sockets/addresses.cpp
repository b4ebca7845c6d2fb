#include "shim/sockets/addresses.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace mpisec::shim {

bool read_address(const sockaddr_storage& from, Address& to) {
    if (from.ss_family == AF_INET6) {
        const auto& six = reinterpret_cast<const sockaddr_in6&>(from);
        std::memcpy(to.bytes.data(), &six.sin6_addr, to.bytes.size());
        to.port = six.sin6_port;
        return true;
    }
    const auto& four = reinterpret_cast<const sockaddr_in&>(from);
    to.bytes[10] = to.bytes[11] = 0xff;
    std::memcpy(to.bytes.data() + 12, &four.sin_addr, 4);
    to.port = four.sin_port;
    return from.ss_family == AF_INET;
}

transport::Destination destination_of(const Address& address) {
    transport::Destination destination;
    std::copy(address.bytes.begin(), address.bytes.end(), destination.begin());
    std::memcpy(destination.data() + address.bytes.size(), &address.port, sizeof address.port);
    return destination;
}

std::string text_of(const sockaddr_storage& address) {
    char host[INET6_ADDRSTRLEN] = "?";
    const bool six = address.ss_family == AF_INET6;
    const void* bytes =
        six ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
            : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    inet_ntop(address.ss_family, bytes, host, sizeof host);
    return host;
}

bool read_name(Name name, int descriptor, sockaddr_storage& storage) {
    socklen_t size = sizeof storage;
    return name(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) == 0;
}

bool is_stream(int descriptor) {
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace mpisec::shim
