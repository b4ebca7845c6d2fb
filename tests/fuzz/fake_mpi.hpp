// An MPI library for the shim to stand on, in the memory of one process: this process is one rank, and what
// the others would send is handed to arrive(). Receives are matched as MPI matches them, in the order of
// posting. Nothing blocks. Procedures that the code under test has no reason to call are null.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace mpisec::fuzz {

struct Message {
    MPI_Comm comm{};
    int peer = 0;  ///< its source, or of what the shim sends, its destination
    int tag = 0;
    std::vector<std::uint8_t> bytes;
};

inline constexpr MPI_Comm channel_handle = 0x101, other_handle = 0x102, private_handle = 0x103;

/// Fills the table of real procedures. This process is rank 0 of `size`.
void install_fake_mpi(int size);
/// As after MPI_Init: no message, no receive.
void reset_fake_mpi();

/// The network hands this process a message.
void arrive(Message message);
/// What the shim has sent since the last call.
std::vector<Message> take_sent();
/// From now on every receive fails, so that everything that is under way ends.
void fail_receives();

/// Thrown by MPI_Abort.
struct Aborted {};
/// What the shim has written to standard error since the last call: it is kept from the fuzzer's.
std::vector<char> take_said();

}  // namespace mpisec::fuzz
