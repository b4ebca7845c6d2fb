// The notice that a rank sends when it waits long in a collective: what it has called (docs/protocol.md, "Calls that are compared").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/bytes.hpp"
#include "wire/frame.hpp"

namespace mpisec::wire {

struct CallNotice {
    static constexpr std::uint64_t no_bytes = std::numeric_limits<std::uint64_t>::max();

    ContextId context{};
    std::uint64_t number = 0;  ///< of the collective on its communicator, from 0
    /// What all ranks must have given alike; no_bytes where there is no such number.
    std::uint64_t bytes = no_bytes;
    std::int32_t root = -1;       ///< -1 where there is none
    std::uint8_t collective = 0;  ///< its place in base/collectives.def
    bool failed = false;          ///< the call ended in an error here
    bool ended = false;           ///< all collectives of the communicator end in an error
    bool operator==(const CallNotice&) const = default;

    /// Whether the rank waits in the call. Other notices tell what happened, also from MPI_Finalize, and are in no count.
    bool asks() const { return !failed && !ended; }
    /// Whether nobody needs to hear it any more once `newer` is told.
    bool superseded_by(const CallNotice& newer) const;
};

/// A rank keeps this many of its last calls to compare.
inline constexpr std::uint64_t calls_kept = 8;

inline bool CallNotice::superseded_by(const CallNotice& newer) const {
    if (newer.context != context) return false;
    if (newer.ended || asks()) return true;
    return !ended && number + calls_kept <= newer.number;
}

/// context(16) number(8) bytes(8) root(4) collective(1) failed(1) ended(1) zero(1)
inline constexpr std::size_t call_notice_bytes = 40;
using EncodedCall = std::array<std::uint8_t, call_notice_bytes>;

inline EncodedCall encode_call(const CallNotice& call) {
    EncodedCall to{};
    std::memcpy(to.data(), call.context.data(), call.context.size());
    store_le(to.data() + 16, call.number);
    store_le(to.data() + 24, call.bytes);
    store_le(to.data() + 32, call.root);
    to[36] = call.collective;
    to[37] = call.failed;
    to[38] = call.ended;
    return to;
}

inline CallNotice decode_call(const std::uint8_t* from) {
    CallNotice call;
    std::memcpy(call.context.data(), from, call.context.size());
    call.number = load_le<std::uint64_t>(from + 16);
    call.bytes = load_le<std::uint64_t>(from + 24);
    call.root = load_le<std::int32_t>(from + 32);
    call.collective = from[36];
    call.failed = from[37] != 0;
    call.ended = from[38] != 0;
    return call;
}

}  // namespace mpisec::wire
