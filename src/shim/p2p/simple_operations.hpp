// Operations without sealing of their own: a plain MPI request among sealed ones, a failure, two operations
// as one.
#pragma once

#include <functional>
#include <utility>

#include "shim/p2p/operation.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {

/// Complete from the start, with an error that is still to be raised.
class FailedOperation final : public Operation {
  public:
    FailedOperation(Communicator* comm, int error) : Operation(comm) { finish(error); }
    ~FailedOperation() override { drop_comm(); }

  private:
    void step() override {}
};

/// Complete from the start: what a buffered send is to the program, and a receive from MPI_PROC_NULL.
class DoneOperation final : public Operation {
  public:
    explicit DoneOperation(Communicator* comm, const Outcome& outcome = {}) : Operation(comm) {
        outcome_ = outcome;
        finish();
    }
    ~DoneOperation() override { drop_comm(); }

  private:
    void step() override {}
};

/// One request of the MPI library.
class PlainOperation : public Operation {
  public:
    PlainOperation(Communicator* comm, int started, MPI_Request request, std::function<void()> when_done = {})
        : Operation(comm), request_(request), when_done_(std::move(when_done)) {
        if (started != MPI_SUCCESS) finish(started, true);
    }
    ~PlainOperation() override { drop_comm(); }
    MPI_Request* sole_request() override { return &request_; }
    void sole_request_done(int code, const MPI_Status& status) override {
        if (code == MPI_SUCCESS) {
            outcome_.source = status.MPI_SOURCE;
            outcome_.tag = status.MPI_TAG;
            int cancelled = 0;
            real.Test_cancelled(&status, &cancelled);
            outcome_.cancelled = cancelled != 0;
            MPI_Count bytes = 0;
            real.Get_elements_x(&status, constants.byte, &bytes);
            outcome_.bytes = bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
            if (when_done_) when_done_();
        }
        finish(code, code != MPI_SUCCESS);
    }
    void cancel() override {
        if (!complete_) real.Cancel(&request_);
    }
    WaitInfo wait_info() const override { return {"a message of this node", MPI_ANY_SOURCE, MPI_ANY_TAG}; }

  private:
    void step() override {
        int flag = 0;
        MPI_Status status{};  // MPICH leaves the status of a send unchanged
        const int code = real.Test(&request_, &flag, &status);
        if (flag || code != MPI_SUCCESS) sole_request_done(code, status);
    }

    MPI_Request request_;
    std::function<void()> when_done_;
};

/// A send and a receive under one request (MPI_Isendrecv); the status is the receive's.
class SendReceiveOperation final : public Operation {
  public:
    SendReceiveOperation(Communicator* comm, std::unique_ptr<Operation> send,
                         std::unique_ptr<Operation> receive, Buffer copy)
        : Operation(comm), copy_(std::move(copy)), send_(std::move(send)), receive_(std::move(receive)) {}
    ~SendReceiveOperation() override {
        leave_work_list(*this);
        drop_comm();
    }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override {
        return receive_->complete() ? send_->wait_info() : receive_->wait_info();
    }

  private:
    void step() override {
        const bool sent = send_->advance();
        const bool received = receive_->advance();
        if (!sent || !received) return;
        outcome_ = receive_->outcome();
        const Outcome& sending = send_->outcome();
        if (outcome_.error == MPI_SUCCESS && sending.error != MPI_SUCCESS)
            finish(sending.error, sending.raised);
        else
            finish(outcome_.error, outcome_.raised);
    }

    /// Copy of the data to send, when it is received into the same place (MPI_Isendrecv_replace); outlives the send.
    Buffer copy_;
    std::unique_ptr<Operation> send_;
    std::unique_ptr<Operation> receive_;
};

}  // namespace mpisec::shim
