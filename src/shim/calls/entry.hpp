// The procedures that MPIsec implements itself: the hand-written half of the shim. The generated wrappers
// (gen/) call these with counts widened, so that a procedure and its _c variant share one body (M12).
// Arguments and results are those of the MPI standard.
#pragma once

#include <mpi.h>

#include "shim/collective/reduction.hpp"  // Op_free
#include "shim/p2p/buffered.hpp"          // Buffer_attach, Buffer_detach
#include "shim/p2p/datatype.hpp"          // Type_free
#include "shim/p2p/progress_barrier.hpp"  // progress_barrier_of_members
#include "shim/p2p/unsupported.hpp"
#include "shim/pmpi/counts.hpp"
#include "shim/runtime/gate.hpp"  // Initialized, Finalized

namespace mpisec::shim {

// Environment (init.cpp)
int Init(int* argc, char*** argv);
int Init_thread(int* argc, char*** argv, int required, int* provided);
int Finalize();
/// What MPI_Init does after the library's own, where the library starts its world with the first session (Intel MPI).
void start_world_of_session();

// Blocking point-to-point (blocking.cpp)
int Send(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int Ssend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int Bsend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int Rsend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int Recv(void* buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
         MPI_Status* status);
int Sendrecv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
             void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
             MPI_Comm comm, MPI_Status* status);
int Sendrecv_replace(void* buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag, int source,
                     int recvtag, MPI_Comm comm, MPI_Status* status);

// Non-blocking and persistent point-to-point (nonblocking.cpp)
int Isend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
          MPI_Request* request);
int Issend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
           MPI_Request* request);
int Ibsend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
           MPI_Request* request);
int Irsend(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
           MPI_Request* request);
int Irecv(void* buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
          MPI_Request* request);
int Isendrecv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
              void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
              MPI_Comm comm, MPI_Request* request);
int Isendrecv_replace(void* buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag, int source,
                      int recvtag, MPI_Comm comm, MPI_Request* request);
int Send_init(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
              MPI_Request* request);
int Ssend_init(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request* request);
int Bsend_init(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request* request);
int Rsend_init(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request* request);
int Recv_init(void* buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request);

// Partitioned point-to-point (partitioned_calls.cpp)
int Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag,
               MPI_Comm comm, MPI_Info info, MPI_Request* request);
int Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag,
               MPI_Comm comm, MPI_Info info, MPI_Request* request);
int Pready(int partition, MPI_Request request);
int Pready_range(int partition_low, int partition_high, MPI_Request request);
int Pready_list(int length, const int partitions[], MPI_Request request);
int Parrived(MPI_Request request, int partition, int* flag);

// Probes (probe.cpp)
int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status);
int Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status);
int Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status);
int Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status);
int Mrecv(void* buf, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status);
int Imrecv(void* buf, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Request* request);

// Completion (completion.cpp)
int Wait(MPI_Request* request, MPI_Status* status);
int Waitall(int count, MPI_Request* requests, MPI_Status* statuses);
int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status);
int Waitsome(int incount, MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses);
int Test(MPI_Request* request, int* flag, MPI_Status* status);
int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses);
int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status);
int Testsome(int incount, MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses);
int Request_get_status(MPI_Request request, int* flag, MPI_Status* status);
int Request_get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses);
/// An extension of MPICH: returns whether the request is complete, not an error code.
int Request_is_complete(MPI_Request request);
int Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status);
int Request_get_status_some(int incount, const MPI_Request* requests, int* outcount, int* indices,
                            MPI_Status* statuses);
int Start(MPI_Request* request);
int Startall(int count, MPI_Request* requests);
int Request_free(MPI_Request* request);
int Cancel(MPI_Request* request);

// Communicators (communicator_calls.cpp)
int Comm_dup(MPI_Comm comm, MPI_Comm* newcomm);
int Comm_set_info(MPI_Comm comm, MPI_Info info);
int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm);
int Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request);
int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request);
int Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm);
int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm);
int Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm);
int Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm);
int Comm_free(MPI_Comm* comm);
int Comm_disconnect(MPI_Comm* comm);
int Cart_create(MPI_Comm comm, int ndims, const int* dims, const int* periods, int reorder,
                MPI_Comm* newcomm);
int Cart_sub(MPI_Comm comm, const int* remain_dims, MPI_Comm* newcomm);
int Graph_create(MPI_Comm comm, int nnodes, const int* index, const int* edges, int reorder,
                 MPI_Comm* newcomm);
int Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int* sources, const int* sourceweights,
                               int outdegree, const int* destinations, const int* destweights, MPI_Info info,
                               int reorder, MPI_Comm* newcomm);
int Dist_graph_create(MPI_Comm comm, int n, const int* sources, const int* degrees, const int* destinations,
                      const int* weights, MPI_Info info, int reorder, MPI_Comm* newcomm);  // dist_graph.cpp
int Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                     MPI_Comm* newcomm);
int Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newcomm);

// Going on without processes that have died (fault_tolerance_calls.cpp)
int Comm_agree(MPI_Comm comm, int* flag);
int Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request);
int Comm_shrink(MPI_Comm comm, MPI_Comm* newcomm);

}  // namespace mpisec::shim
