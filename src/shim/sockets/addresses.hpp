// Addresses of TCP sockets: as keys and sentences need them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

#include "transport/connection_keys.hpp"

namespace mpisec::shim {

struct Address {
    std::array<std::uint8_t, 16> bytes{};
    in_port_t port = 0;
};

/// False unless it is an IPv4 or IPv6 address.
bool read_address(const sockaddr_storage& from, Address& to);
transport::Destination destination_of(const Address& address);
std::string text_of(const sockaddr_storage& address);

/// getsockname() or getpeername(). False when the descriptor has no such name.
using Name = int (*)(int, sockaddr*, socklen_t*);
bool read_name(Name name, int descriptor, sockaddr_storage& storage);

bool is_stream(int descriptor);

}  // namespace mpisec::shim
