#include "shim/collective/collective_operation.hpp"

#include <memory>
#include <utility>

#include "coll/selection/selection_settings.hpp"
#include "shim/collective/call_comparison.hpp"
#include "shim/collective/collective_choice.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/collective/mpi_fabric.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/threads.hpp"

namespace mpisec::shim {
namespace {

class CollectiveOperation final : public Operation {
  public:
    CollectiveOperation(std::shared_ptr<CollectivePlan> plan,
                        std::shared_ptr<CollectiveContext> collective_context, bool blocking)
        : Operation(plan->comm),
          blocking_(blocking),
          collective_context_(std::move(collective_context)),
          plan_(std::move(plan)) {
        ++comm_->collectives;
        CollectiveSequence sequence = [&] {
            SealingScope alone(plan_->procedure);
            return collective_context_->next(blocking);
        }();
        number_ = sequence.number;
        if (collective_context_->ended != MPI_SUCCESS) {
            plan_->note(collective_context_->ended);
            end();
            return;
        }
        remember_call(*collective_context_, number_, *plan_);
        if (plan_->participants.empty())
            fabric_ =
                std::make_unique<MpiFabric>(*collective_context_, std::move(sequence), plan_->procedure);
        else if (plan_->takes_part)
            fabric_ = std::make_unique<MpiFabric>(*collective_context_, std::move(sequence), plan_->procedure,
                                                  plan_->participants);
        else
            end();
        step_if_open();
    }
    ~CollectiveOperation() override {
        leave_work_list(*this);
        drop_comm();
    }

    bool needs_progress() const override { return !blocking_; }
    WaitInfo wait_info() const override { return {plan_->procedure, MPI_ANY_SOURCE, MPI_ANY_TAG}; }

  private:
    void step_if_open() {
        if (!complete_) step();
    }

    void step() override {
        // A step may wait for room inside a node; that wait makes progress and may come here again.
        if (std::exchange(stepping_, true)) return;
        step_alone();
        stepping_ = false;
    }

    void step_alone() {
        const int failure = failures_.now_and_then([this] { return failure_on(*comm_); });
        if (failure != MPI_SUCCESS) return give_up(failure);
        if (collective_context_->ended != MPI_SUCCESS) [[unlikely]]
            return give_up(collective_context_->ended);
        wait_.pass(*collective_context_, number_);
        if (!started_) {
            if (!fabric_->ready()) return;
            started_ = true;
            plan_->load();
            if (!plan_->good()) fabric_->fail();  // the others must not wait for this rank (S8)
            task_ = choose_algorithm(*plan_, *collective_context_, fabric_->topology())
                        .run(*fabric_, plan_->call);
            task_.start();
        }
        fabric_->advance();
        // Where nothing else needs progress, polls for the next message here rather than in full passes of the progress loop.
        if (blocking_ && may_block())
            for (unsigned polls = 0; polls < polls_at_once && !task_.done() && !fabric_->lost(); ++polls)
                fabric_->advance();
        if (fabric_->lost()) return give_up(fabric_->error());
        if (!task_.done()) return;
        task_ = {};
        fabric_->leave();
        if (fabric_->failed()) {
            remember_failure(*collective_context_, number_);
            plan_->note(fabric_->error() != MPI_SUCCESS ? fabric_->error() : MPI_ERR_OTHER);
        }
        fabric_.reset();
        end();
    }

    /// A process has died, the communicator was revoked, or its ranks made different calls. MPI may still read from and
    /// write to the memory that it was given, so that is never freed.
    void give_up(int code) {
        struct Abandoned {
            std::shared_ptr<CollectiveContext> context;
            std::shared_ptr<CollectivePlan> plan;
            std::unique_ptr<MpiFabric> fabric;
            fabric::Task task;
        };
        fabric_->cancel();
        (void)new Abandoned{collective_context_, plan_, std::move(fabric_), std::move(task_)};
        // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): what MPI may still use is never given back
        --comm_->collectives;
        finish(code);
    }

    void end() {
        --comm_->collectives;
        finish(plan_->good() ? plan_->finish() : plan_->error);
    }

    static constexpr unsigned polls_at_once = 256;
    bool blocking_, started_ = false, stepping_ = false;
    std::uint64_t number_ = 0;
    LongWait wait_;
    std::shared_ptr<CollectiveContext> collective_context_;
    std::shared_ptr<CollectivePlan> plan_;
    std::unique_ptr<MpiFabric> fabric_;
    FailureWatch failures_;
    fabric::Task task_;  // last, because it uses the other members
};

std::unique_ptr<Operation> start(std::shared_ptr<CollectivePlan> plan,
                                 std::shared_ptr<CollectiveContext> collective_context, bool blocking) {
    auto operation =
        std::make_unique<CollectiveOperation>(std::move(plan), std::move(collective_context), blocking);
    enlist(*operation);
    return operation;
}

}  // namespace

int run_unraised(std::unique_ptr<CollectivePlan> plan) {
    std::unique_ptr<Operation> operation;
    {
        Guard guard;
        std::shared_ptr<CollectiveContext> collective_context = plan->comm->collective_context;
        operation = start(std::move(plan), std::move(collective_context), true);
    }
    if (!operation->complete()) complete_operation(*operation);
    return operation->outcome().error;
}

int run_collective(std::unique_ptr<CollectivePlan> plan) {
    if (!plan->good()) return plan->raise();
    Communicator* comm = plan->comm;
    const char* procedure = plan->procedure;
    return raise(comm, run_unraised(std::move(plan)), procedure);
}

int start_collective(std::unique_ptr<CollectivePlan> plan, MPI_Request* request) {
    if (!plan->good()) return plan->raise();
    Guard guard;
    auto collective_context = plan->comm->collective_context;
    *request = give_request(start(std::move(plan), std::move(collective_context), false));
    return MPI_SUCCESS;
}

std::unique_ptr<Operation> begin_collective(std::unique_ptr<CollectivePlan> plan,
                                            std::shared_ptr<CollectiveContext> collective_context) {
    return std::make_unique<CollectiveOperation>(std::move(plan), std::move(collective_context), false);
}

int init_collective(std::unique_ptr<CollectivePlan> plan, MPI_Request* request) {
    if (!plan->good()) return plan->raise();
    Communicator* comm = plan->comm;
    std::shared_ptr<CollectiveContext> collective_context;
    Result<void> memory;
    {
        Guard guard;
        collective_context = comm->collective_context->for_persistent(comm->persistent_collectives++);
        memory = collective_context->attach_memory();
    }
    if (!memory) {
        say(std::string(plan->procedure) + ": " + memory.error().message);
        return raise(comm, MPI_ERR_NO_MEM, plan->procedure);
    }
    Guard guard;
    std::shared_ptr<CollectivePlan> kept = std::move(plan);
    *request =
        give_persistent([kept, collective_context] { return start(kept, collective_context, false); }, [] {});
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim
