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

/// Under the Guard.
class Transfer {
  public:
    Transfer() = default;
    ~Transfer();
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    /// What is fetched goes to `result`, which is `bytes` bytes of data.
    void expect(const Elements& result, std::uint64_t bytes);
    /// Where the answer is to be received.
    std::uint8_t* room() const;
    /// Moves on; true when the operation is complete here: what was sent may change, what was fetched is there.
    bool advance();
    /// MPI_SUCCESS, an MPI error class, or a code of MPIsec's. Once it is complete.
    int error() const { return error_; }
    /// The same, and nobody is told again of what the target refused.
    int take_error() { return broken_ ? error_ : std::exchange(error_, MPI_SUCCESS); }
    /// The answer was not accepted, or could not be sent: nothing more can be believed of the window.
    bool broken() const { return broken_; }
    /// What was sent may change.
    bool sent();
    /// Its messages never come: gives up what MPI has of them.
    void abandon();

    std::vector<std::unique_ptr<Operation>> sends;
    unsigned unstarted = 0;                ///< sends that wait for others to the same rank
    std::unique_ptr<Operation> answer;     ///< where there is one
    Buffer message;                        ///< requests
    Buffer runs, bulk;                     ///< runs and packed data too long for that
    bool unsent = false;                   ///< more requests may join those in `message`
    const std::uint8_t* status = nullptr;  ///< the answer is an MPI error class, there

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

/// Gives up an operation that will not complete: MPI may write to its buffers until it ends.
void abandon(std::unique_ptr<Operation> operation);

}  // namespace mpisec::shim::rma
