// The procedures of windows that cross nodes, for the generated wrappers (gen/): arguments and results are
// those of the MPI standard, counts widened (M12).
#pragma once

#include <mpi.h>

#include "shim/process/process.hpp"

namespace mpisec::shim::rma {

bool is_known(MPI_Win win);
/// Whether the window crosses nodes. Programs without such windows pay for a load and a branch.
inline bool crosses(MPI_Win win) {
    return process.rma_window_count.load(std::memory_order_relaxed) != 0 && is_known(win);
}

/// In MPI_Finalize, when no rank sends any more: ends windows that the program has not freed.
void close_windows();

// Constructors (constructors.cpp), freeing and queries (windows.cpp)
int Win_create(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win);
int Win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                 MPI_Win* win);
int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win);
int Win_free(MPI_Win* win);
int Win_attach(MPI_Win win, void* base, MPI_Aint size);
int Win_detach(MPI_Win win, const void* base);
int Win_get_group(MPI_Win win, MPI_Group* group);
int Win_get_attr(MPI_Win win, int keyval, void* value, int* flag);
int Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit, void* baseptr);
int Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* baseptr);

// Operations (origin.cpp)
int Put(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
        MPI_Count count, MPI_Datatype type, MPI_Win win);
int Get(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
        MPI_Count count, MPI_Datatype type, MPI_Win win);
int Accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
               MPI_Aint disp, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win);
int Get_accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, void* result,
                   MPI_Count result_count, MPI_Datatype result_type, int target, MPI_Aint disp,
                   MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win);
int Fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint disp, MPI_Op op,
                 MPI_Win win);
int Compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type, int target,
                     MPI_Aint disp, MPI_Win win);
int Rput(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
         MPI_Count count, MPI_Datatype type, MPI_Win win, MPI_Request* request);
int Rget(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
         MPI_Count count, MPI_Datatype type, MPI_Win win, MPI_Request* request);
int Raccumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                MPI_Aint disp, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win,
                MPI_Request* request);
int Rget_accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, void* result,
                    MPI_Count result_count, MPI_Datatype result_type, int target, MPI_Aint disp,
                    MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win, MPI_Request* request);

// Epochs (synchronization.cpp)
int Win_fence(int assertion, MPI_Win win);
int Win_lock(int kind, int rank, int assertion, MPI_Win win);
int Win_unlock(int rank, MPI_Win win);
int Win_lock_all(int assertion, MPI_Win win);
int Win_unlock_all(MPI_Win win);
int Win_flush(int rank, MPI_Win win);
int Win_flush_all(MPI_Win win);
int Win_flush_local(int rank, MPI_Win win);
int Win_flush_local_all(MPI_Win win);
int Win_post(MPI_Group group, int assertion, MPI_Win win);
int Win_start(MPI_Group group, int assertion, MPI_Win win);
int Win_complete(MPI_Win win);
int Win_wait(MPI_Win win);
int Win_test(MPI_Win win, int* flag);
int Win_sync(MPI_Win win);

}  // namespace mpisec::shim::rma
