// A started collective: the algorithm's coroutine, which any later MPI call of the program can advance (M5), and the
// three forms in which MPI offers it.
#pragma once

#include <memory>

#include "shim/collective/collective_plan.hpp"
#include "shim/p2p/operation.hpp"

namespace mpisec::shim {

/// MPI_X: returns when this rank's part is done.
int run_collective(std::unique_ptr<CollectivePlan> plan);
/// The same for a plan that is good(); the caller raises the error that it returns.
int run_unraised(std::unique_ptr<CollectivePlan> plan);
/// MPI_IX.
int start_collective(std::unique_ptr<CollectivePlan> plan, MPI_Request* request);
/// A collective of MPIsec's own, on a context of its own. Its owner must advance it, because it is not on the work list.
std::unique_ptr<Operation> begin_collective(std::unique_ptr<CollectivePlan> plan,
                                            std::shared_ptr<CollectiveContext> collective_context);
/// MPI_X_init.
int init_collective(std::unique_ptr<CollectivePlan> plan, MPI_Request* request);

}  // namespace mpisec::shim
