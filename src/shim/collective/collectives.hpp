// Each collective of MPI becomes a plan for its algorithm, which the generated wrappers run in the three
// forms (collective_operation.hpp). Arguments are those of the MPI standard, with widened counts (M12).
#pragma once

#include <mpi.h>

#include <memory>

#include "shim/collective/collective_operation.hpp"
#include "shim/collective/collective_plan.hpp"
#include "shim/pmpi/counts.hpp"

namespace mpisec::shim::plan {

using Plan = std::unique_ptr<CollectivePlan>;

// Moving data (collectives.cpp)
Plan Barrier(const char* procedure, MPI_Comm comm);
Plan Bcast(const char* procedure, void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
Plan Gather(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
            void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
Plan Gatherv(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
             void* recvbuf, Counts recvcounts, Displacements displs, MPI_Datatype recvtype, int root,
             MPI_Comm comm);
Plan Scatter(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
             void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
Plan Scatterv(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements displs,
              MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
              MPI_Comm comm);
Plan Allgather(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
               void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm);
Plan Allgatherv(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                void* recvbuf, Counts recvcounts, Displacements displs, MPI_Datatype recvtype, MPI_Comm comm);
/// Among the ranks of both groups of an inter-communicator, in the order of its shadow communicator;
/// blocks of bytes.
Plan Allgather_of_both(const char* procedure, const void* block, MPI_Count bytes, void* blocks,
                       MPI_Comm comm);
Plan Alltoall(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
              void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm);
Plan Alltoallv(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements sdispls,
               MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Displacements rdispls,
               MPI_Datatype recvtype, MPI_Comm comm);
/// Displacements are bytes.
Plan Alltoallw(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements sdispls,
               const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts, Displacements rdispls,
               const MPI_Datatype* recvtypes, MPI_Comm comm);

// Reducing (collectives_reduce.cpp)
Plan Reduce(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
            MPI_Op op, int root, MPI_Comm comm);
Plan Allreduce(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
               MPI_Op op, MPI_Comm comm);
Plan Reduce_scatter(const char* procedure, const void* sendbuf, void* recvbuf, Counts recvcounts,
                    MPI_Datatype type, MPI_Op op, MPI_Comm comm);
Plan Reduce_scatter_block(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                          MPI_Datatype type, MPI_Op op, MPI_Comm comm);
Plan Scan(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
          MPI_Op op, MPI_Comm comm);
Plan Exscan(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
            MPI_Op op, MPI_Comm comm);

// Between neighbours (collectives_neighbor.cpp)
Plan Neighbor_allgather(const char* procedure, const void* sendbuf, MPI_Count sendcount,
                        MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                        MPI_Comm comm);
Plan Neighbor_allgatherv(const char* procedure, const void* sendbuf, MPI_Count sendcount,
                         MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Displacements displs,
                         MPI_Datatype recvtype, MPI_Comm comm);
Plan Neighbor_alltoall(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                       void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm);
Plan Neighbor_alltoallv(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements sdispls,
                        MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Displacements rdispls,
                        MPI_Datatype recvtype, MPI_Comm comm);
/// Displacements are bytes.
Plan Neighbor_alltoallw(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements sdispls,
                        const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts,
                        Displacements rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm);

}  // namespace mpisec::shim::plan
