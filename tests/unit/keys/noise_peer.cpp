// One side of a Noise NNpsk0 handshake over standard input and output, for test_noise_interop.py.
//
//     noise_peer initiator|responder PSK PROLOGUE PAYLOAD        (hexadecimal; - is empty)
//
// Each message is a line of hexadecimal. After the handshake, with PAYLOAD in this side's message, it prints
// "hash HASH" and then echoes transport messages: opens a line, seals the plaintext again, until the input
// ends.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "hex.hpp"
#include "keys/noise.hpp"

using namespace mpisec;
using keys::noise::HandshakeState;
using keys::noise::Role;

namespace {

std::vector<std::uint8_t> argument(const char* text) {
    return std::string(text) == "-" ? std::vector<std::uint8_t>{} : test::unhex(text);
}

template <class T>
T check(Result<T> result) {
    if (result) return std::move(*result);
    std::cout << "error " << result.error().message << std::endl;
    std::exit(1);
}

std::vector<std::uint8_t> read_line() {
    std::string line;
    if (!std::getline(std::cin, line)) std::exit(2);
    return test::unhex(line);
}

void print(std::span<const std::uint8_t> bytes) {
    std::cout << test::hex(bytes) << std::endl;
}

void echo(keys::noise::Transport transport) {
    std::string line;
    while (std::getline(std::cin, line)) {
        std::vector<std::uint8_t> sealed = test::unhex(line), plain(sealed.size() - keys::noise::tag_bytes);
        if (auto opened = transport.receive.decrypt({}, sealed, plain.data()); !opened) {
            std::cout << "error " << opened.error().message << std::endl;
            continue;
        }
        if (!transport.send.encrypt({}, plain, sealed.data())) std::exit(3);
        print(sealed);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 64;
    const bool initiator = std::string(argv[1]) == "initiator";
    std::vector<std::uint8_t> psk = test::unhex(argv[2]), prologue = argument(argv[3]),
                              payload = argument(argv[4]);
    if (psk.size() != keys::secret_bytes) return 64;
    keys::Secret key(std::span<const std::uint8_t, keys::secret_bytes>(psk.data(), keys::secret_bytes));
    HandshakeState handshake(initiator ? Role::initiator : Role::responder, prologue, key);

    if (initiator) print(check(handshake.write_message(payload)));
    std::vector<std::uint8_t> theirs = check(handshake.read_message(read_line()));
    std::cout << "payload " << test::hex(theirs) << std::endl;
    if (!initiator) print(check(handshake.write_message(payload)));

    auto transport = check(handshake.split());
    std::cout << "hash " << test::hex(transport.handshake_hash) << std::endl;
    echo(std::move(transport));
}
