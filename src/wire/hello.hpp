// What every rank says about itself before there is a key: who it is, on which node, and its settings (S7). (The cipher is not among the
// settings: it may depend on a calibration, and is compared in the handshake.)
//
// A hello travels in clear and unauthenticated, as part of its node's card (node_cards.hpp). What makes it trustworthy afterwards: the
// ranks of a node show each other their hellos in its memory, and the handshake succeeds only between leaders that received the same cards.
#pragma once

#include <array>
#include <cstdint>

namespace mpisec::wire {

/// Names a job. Zeros: the name is not known, or several jobs meet.
using JobMark = std::array<std::uint8_t, 16>;

inline constexpr std::uint32_t protocol_version = 3;  ///< of the start-up exchange; docs/protocol.md

/// 256 bytes, little-endian, in this and every later version, so that different versions can still tell each other apart.
struct Hello {
    std::uint32_t protocol = 0;
    std::uint32_t wire_version = 0;
    std::array<char, 24> version{};          ///< of MPIsec, zero-padded
    std::array<char, 64> host{};             ///< for error messages, zero-padded
    std::array<std::uint8_t, 16> nonce{};    ///< random: hellos of an earlier job differ from this job's
    std::array<std::uint8_t, 16> node_id{};  ///< the same for ranks that may share memory
    std::int32_t rank = 0;
    /// 1: MPISEC_UNPROTECTED=allow; plus 2 times MPISEC_SAME_NODE, 8 times MPISEC_PIPELINE and 32 times
    /// MPISEC_CONNECTIONS (Settings::SameNode, Pipeline, Connections)
    std::uint32_t policy = 0;
    std::uint64_t threshold = 0;
    std::uint64_t segment = 0;
    std::uint64_t rekey_messages = 0;
    std::uint64_t rekey_bytes = 0;
    std::array<std::uint8_t, 16> selection{};  ///< mark of the algorithms of collectives
    std::uint64_t kernel = 0;                  ///< mark of the kernel; cpu_set: mark of the affinity mask
    std::uint64_t cpu_set = 0;
    std::uint32_t cpus = 0;
    std::array<std::uint8_t, 16> purpose{};  ///< zeros for MPI_Init
    std::uint32_t side = 0;                  ///< of two worlds that are joined: 0 or 1
    std::uint32_t rank_on_side = 0;          ///< in its group of their inter-communicator
    std::int32_t job_rank = -1;              ///< in a session's "mpi://WORLD"; -1 elsewhere
    JobMark job{};
    std::array<std::uint8_t, 8> zero{};
};
static_assert(sizeof(Hello) == 256);

}  // namespace mpisec::wire
