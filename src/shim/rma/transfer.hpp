// What an origin has under way to a target: the messages of one operation, and the answer that it waits for.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "shim/p2p/datatype.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/runtime/pool.hpp"

namespace mpisec::shim::rma {

/// Elements of the program's memory.
struct Elements {
    void* buf = nullptr;
    MPI_Count count = 0;
    MPI_Datatype type{};
};

/// Used under the Guard.
class Transfer {
  public:
    Transfer() = default;
    ~Transfer();
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    /// The fetched data goes to `result`, which has `bytes` bytes of data.
    void expect(const Elements& result, std::uint64_t bytes);
    /// Where the answer is to be received.
    std::uint8_t* room() const;
    /// Makes progress; true when the operation is complete here: sent data may be changed, fetched data has arrived.
    bool advance();
    /// Once the transfer is complete: MPI_SUCCESS, an MPI error class, or a code of MPIsec's.
    int error() const { return error_; }
    /// The same, but an error of an operation that the target refused is returned only once.
    int take_error() { return broken_ ? error_ : std::exchange(error_, MPI_SUCCESS); }
    /// The answer was not accepted, or a message could not be sent: nothing in the window can be trusted any more.
    bool broken() const { return broken_; }
    /// Whether sent data may be changed.
    bool sent();
    /// Its messages will never arrive: abandons the requests that MPI still holds.
    void abandon();

    std::vector<std::unique_ptr<Operation>> sends;
    unsigned unstarted = 0;                ///< sends that wait for earlier ones to the same rank
    std::unique_ptr<Operation> answer;     ///< where there is one
    bool fetches = false;                  ///< counted in Window::fetches
    Buffer message;                        ///< requests
    Buffer runs, bulk;                     ///< runs and packed data too long for `message`
    bool unsent = false;                   ///< more requests may join those in `message`
    const std::uint8_t* status = nullptr;  ///< if not null, the answer is an MPI error class, here

  private:
    void note_error_of(const Operation& part);
    void take_answer(const Outcome& outcome);

    Elements result_;
    TypeFacts facts_;
    Buffer packed_;
    std::uint64_t expected_ = 0;
    bool kept_ = false;
    bool done_ = false;
    bool broken_ = false;
    int error_ = MPI_SUCCESS;
};

}  // namespace mpisec::shim::rma
