// Noise messages as they arrive: read as they are, and true messages changed by the input. Only an unchanged
// one may be accepted.
#include <span>

#include "../unit/keys/fixed_ephemeral.hpp"
#include "check.hpp"

using namespace mpisec;
using namespace mpisec::keys;
using namespace mpisec::keys::noise;

namespace {

Secret secret_of(std::uint8_t byte) {
    Secret secret;
    std::memset(secret.data(), byte, secret_bytes);
    return secret;
}

/// One side of a handshake that is the same in every run.
struct Side {
    Side(Role role, std::uint8_t ephemeral, const Secret& psk) : state(role, prologue, psk) {
        FixedEphemeral::set(state, secret_of(ephemeral));
    }
    static constexpr std::uint8_t prologue[] = {'M', 'P', 'I'};
    HandshakeState state;
};

/// `message` with the input laid over it from offset `at`; tells whether that changed anything.
bool change(std::vector<std::uint8_t>& message, std::span<const std::uint8_t> input, std::size_t at) {
    bool changed = false;
    for (std::size_t i = 0; i < input.size() && !message.empty(); ++i) {
        message[(at + i) % message.size()] ^= input[i];
        changed = changed || input[i] != 0;
    }
    return changed && input.size() <= message.size();  // what is laid over twice may undo itself
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::span<const std::uint8_t> input(data + 2, size - 2);
    const Secret psk = secret_of(7);
    Side initiator(Role::initiator, 1, psk), responder(Role::responder, 2, psk);

    if (data[0] % 4 == 0) {  // as it is, to a responder that expects message 1
        const auto payload = responder.state.read_message(input);
        FUZZ_CHECK(!payload || input.size() >= HandshakeState::message_bytes(0));
        FUZZ_CHECK(!payload || payload->size() == input.size() - HandshakeState::message_bytes(0));
        if (!payload) FUZZ_CHECK(!responder.state.read_message(input) && !responder.state.write_message({}));
        return 0;
    }
    const std::uint8_t hello[] = {'h', 'i'};
    auto first = initiator.state.write_message(hello).value();
    const bool first_changed = data[0] % 4 == 1 && change(first, input, data[1]);
    auto payload = responder.state.read_message(first);
    if (data[0] % 4 == 1) {
        if (first_changed) FUZZ_CHECK(!payload);
        return 0;
    }
    FUZZ_CHECK(payload && payload->size() == sizeof hello);
    auto second = responder.state.write_message(hello).value();
    const bool second_changed = data[0] % 4 == 2 ? change(second, input, data[1]) : false;
    if (data[0] % 4 == 3) second.assign(input.begin(), input.end());
    payload = initiator.state.read_message(second);
    if (second_changed) FUZZ_CHECK(!payload && !initiator.state.split());
    return 0;
}
