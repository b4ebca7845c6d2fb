// MPI's handle constants, looked up where they are data symbols (Open MPI), so that the shim loads into any
// program.
#pragma once

#include <mpi.h>

namespace mpisec::shim {

struct Constants {
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Request request_null;
    MPI_Message message_null, message_no_proc;
    MPI_Group group_null, group_empty;
    MPI_Info info_null;
    MPI_Datatype datatype_null, byte, packed, int32, int64, uint64;
    MPI_Op max, sum, land, op_null;
    MPI_Errhandler errors_return, errors_are_fatal;
    MPI_Comm_copy_attr_function* comm_null_copy_fn;
    int *unweighted, *weights_empty;
};
extern Constants constants;

/// Whether MPI defines the operation, and whether it is MPICH's MPIX_EQUAL.
bool is_predefined(MPI_Op op);
bool is_equality(MPI_Op op);

/// Called by resolve_real(). Aborts with a sentence when one is missing.
void resolve_constants();

}  // namespace mpisec::shim
