// What the tests of connections share.
#pragma once

#include <cstdlib>
#include <string>

#include "transport/authenticated_stream.hpp"

namespace mpisec::transport::test {

inline constexpr SocketCalls calls = {::send, ::sendmsg, ::recv, ::recvmsg};

/// The first that has the cipher.
inline const aead::Library& library() {
    for (const std::string& name : aead::available()) {
        const auto loaded = aead::load(name);
        if (loaded && (*loaded)->has(cipher)) return **loaded;
    }
    std::abort();
}

}  // namespace mpisec::transport::test
