// What is known of the MPI library underneath, and how far this process has come with it. Found and changed in
// shim/pmpi and shim/runtime/gate.cpp.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>

namespace mpisec::shim {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/// One pointer per procedure that the family's mpi.h declares; null where the library that runs lacks it.
struct Real {
#define MPISEC_PROCEDURE(name) decltype(&::MPI_##name) name;
#include "real_table.inc"
#undef MPISEC_PROCEDURE
};
#pragma GCC diagnostic pop

/// Where this process stands in the life of its job (gate.cpp, docs/architecture.md "Life of a process").
enum class Phase : int {
    closed,    ///< calls are sealed, or refused
    open,      ///< every rank of the job is on this node: nothing to protect, all calls go straight down
    before,    ///< MPI_Init was not called yet
    starting,  ///< from the call of MPI_Init to the end of the key exchange
    ended,     ///< MPI_Finalize wiped the keys: MPIsec knows no communicator any more, so all are refused
    forked,    ///< a child that fork() made since MPI_Init: keys are wiped, the connections are the parent's
};

/// State that the generated wrappers test before anything else. `resolved`: the table is filled.
struct Gate {
    std::atomic<bool> resolved = false;
    std::atomic<Phase> phase = Phase::before;
    std::atomic<bool> tracing = false;      ///< MPISEC_TRACE: spans are recorded (runtime/trace.hpp)
    std::atomic<bool> single_node = false;  ///< every rank of the job is known to be on this node
    std::atomic<unsigned> forks = 0;  ///< children made while calls were protected: for the stall report
    /// the MPI library's own code: calls from there are its internals (ROMIO, osc)
    const char* text_begin = nullptr;
    const char* text_end = nullptr;
};

/// MPI's handle constants, looked up where they are data symbols (Open MPI).
struct Constants {
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Request request_null;
    MPI_Message message_null, message_no_proc;
    MPI_Group group_null, group_empty;
    MPI_Info info_null;
    MPI_File file_null;
    MPI_Win win_null;
    MPI_Datatype datatype_null, byte, packed, int32, int64, uint64;
    MPI_Op max, sum, land, replace, no_op, op_null;
    MPI_Errhandler errors_return, errors_are_fatal;
    MPI_Comm_copy_attr_function* comm_null_copy_fn;
    int *unweighted, *weights_empty;
    std::array<MPI_Op, 14> predefined_operations;  ///< all that the standard and this family define
};

}  // namespace mpisec::shim
