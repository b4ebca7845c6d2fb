// Collectives in a first, simple sealed form: linear, binomial or ring algorithms over sealed point-to-point
// messages. On a communicator inside a node the user's call goes down unchanged. MPI standard chapter 6.
#include "shim/collectives.hpp"

#include "shim/constants.hpp"

namespace mpisec::shim {

using namespace collective;

int Barrier(MPI_Comm comm) {
    if (!crosses_nodes(comm)) return move_down(comm, real.Barrier, comm);
    Exchange exchange("MPI_Barrier", comm, barrier_tag);
    if (exchange.impossible()) return exchange.finish();
    // Dissemination: after round k every rank has heard, through others, of 2^(k+1) ranks.
    const int rank = exchange.rank(), size = exchange.size();
    for (int distance = 1; distance < size; distance <<= 1) {
        exchange.send_receive(nullptr, 0, constants.byte, (rank + distance) % size, nullptr, 0,
                              constants.byte, (rank - distance + size) % size);
    }
    return exchange.finish();
}

int Bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (fits(count))
            return move_down(comm, real.Bcast, buffer, static_cast<int>(count), type, root, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Bcast, buffer, count, type, root, comm);
    }
    Exchange exchange("MPI_Bcast", comm, bcast_tag, root);
    if (!exchange.impossible()) broadcast(exchange, buffer, count, type, root);
    return exchange.finish();
}

namespace {

void gather_at_root(Exchange& exchange, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                    const Blocks& blocks) {
    const int root = exchange.rank();
    if (sendbuf != MPI_IN_PLACE)
        exchange.note(
            copy(sendbuf, sendcount, sendtype, blocks.start(root), blocks.count(root), blocks.type));
    for (int from = 0; from < exchange.size(); ++from)
        if (from != root) exchange.receive(blocks.start(from), blocks.count(from), blocks.type, from);
}

void scatter_at_root(Exchange& exchange, const Blocks& blocks, void* recvbuf, MPI_Count recvcount,
                     MPI_Datatype recvtype) {
    const int root = exchange.rank();
    if (recvbuf != MPI_IN_PLACE)
        exchange.note(
            copy(blocks.start(root), blocks.count(root), blocks.type, recvbuf, recvcount, recvtype));
    for (int to = 0; to < exchange.size(); ++to)
        if (to != root) exchange.send(blocks.start(to), blocks.count(to), blocks.type, to);
}

/// Ring: in step i every rank passes on the block that it got in step i-1, its own first.
void allgather(Exchange& exchange, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
               const Blocks& blocks) {
    const int rank = exchange.rank(), size = exchange.size();
    if (sendbuf != MPI_IN_PLACE)
        exchange.note(
            copy(sendbuf, sendcount, sendtype, blocks.start(rank), blocks.count(rank), blocks.type));
    const int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
    for (int step = 0; step < size - 1; ++step) {
        const int mine = (rank - step + size) % size, coming = (rank - step - 1 + size) % size;
        exchange.send_receive(blocks.start(mine), blocks.count(mine), blocks.type, next, blocks.start(coming),
                              blocks.count(coming), blocks.type, previous);
    }
}

/// Step i: to the rank i places on, from the rank i places back.
void alltoall(Exchange& exchange, const Blocks& out, const Blocks& in) {
    const int rank = exchange.rank(), size = exchange.size();
    exchange.note(copy(out.start(rank), out.count(rank), out.type, in.start(rank), in.count(rank), in.type));
    for (int step = 1; step < size; ++step) {
        const int to = (rank + step) % size, from = (rank - step + size) % size;
        exchange.send_receive(out.start(to), out.count(to), out.type, to, in.start(from), in.count(from),
                              in.type, from);
    }
}

/// MPI_IN_PLACE: blocks are swapped pair by pair. All ranks go through the pairs in one order, so no two wait
/// for each other in a circle.
void alltoall_in_place(Exchange& exchange, const Blocks& blocks) {
    for (int low = 0; low < exchange.size(); ++low) {
        for (int high = low + 1; high < exchange.size(); ++high) {
            if (exchange.rank() != low && exchange.rank() != high) continue;
            const int other = exchange.rank() == low ? high : low;
            exchange.send_receive_replace(blocks.start(other), blocks.count(other), blocks.type, other);
        }
    }
}

/// Whether the small variant can carry a v-collective's arguments: the user called it, or gave no arrays and
/// a count that fits.
bool small(const Counts& counts, MPI_Count count) {
    return !counts.big() && fits(count);
}

}  // namespace

int Gather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
           MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (fits(sendcount) && fits(recvcount))
            return move_down(comm, real.Gather, sendbuf, static_cast<int>(sendcount), sendtype, recvbuf,
                             static_cast<int>(recvcount), recvtype, root, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Gather, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                      recvtype, root, comm);
    }
    Exchange exchange("MPI_Gather", comm, gather_tag, root);
    if (exchange.impossible()) return exchange.finish();
    if (exchange.rank() == root)
        gather_at_root(exchange, sendbuf, sendcount, sendtype, Blocks(recvbuf, recvcount, recvtype));
    else
        exchange.send(sendbuf, sendcount, sendtype, root);
    return exchange.finish();
}

int Gatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
            Displacements displs, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (small(recvcounts, sendcount))
            return move_down(comm, real.Gatherv, sendbuf, static_cast<int>(sendcount), sendtype, recvbuf,
                             recvcounts.small(), displs.small(), recvtype, root, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Gatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts.big(),
                                      displs.big(), recvtype, root, comm);
    }
    Exchange exchange("MPI_Gatherv", comm, gather_tag, root);
    if (exchange.impossible()) return exchange.finish();
    if (exchange.rank() == root)
        gather_at_root(exchange, sendbuf, sendcount, sendtype, Blocks(recvbuf, recvcounts, displs, recvtype));
    else
        exchange.send(sendbuf, sendcount, sendtype, root);
    return exchange.finish();
}

int Scatter(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
            MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (fits(sendcount) && fits(recvcount))
            return move_down(comm, real.Scatter, sendbuf, static_cast<int>(sendcount), sendtype, recvbuf,
                             static_cast<int>(recvcount), recvtype, root, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Scatter, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                      recvtype, root, comm);
    }
    Exchange exchange("MPI_Scatter", comm, scatter_tag, root);
    if (exchange.impossible()) return exchange.finish();
    if (exchange.rank() == root)
        scatter_at_root(exchange, Blocks(sendbuf, sendcount, sendtype), recvbuf, recvcount, recvtype);
    else
        exchange.receive(recvbuf, recvcount, recvtype, root);
    return exchange.finish();
}

int Scatterv(const void* sendbuf, Counts sendcounts, Displacements displs, MPI_Datatype sendtype,
             void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (small(sendcounts, recvcount))
            return move_down(comm, real.Scatterv, sendbuf, sendcounts.small(), displs.small(), sendtype,
                             recvbuf, static_cast<int>(recvcount), recvtype, root, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Scatterv, sendbuf, sendcounts.big(), displs.big(), sendtype,
                                      recvbuf, recvcount, recvtype, root, comm);
    }
    Exchange exchange("MPI_Scatterv", comm, scatter_tag, root);
    if (exchange.impossible()) return exchange.finish();
    if (exchange.rank() == root)
        scatter_at_root(exchange, Blocks(sendbuf, sendcounts, displs, sendtype), recvbuf, recvcount,
                        recvtype);
    else
        exchange.receive(recvbuf, recvcount, recvtype, root);
    return exchange.finish();
}

int Allgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (fits(sendcount) && fits(recvcount))
            return move_down(comm, real.Allgather, sendbuf, static_cast<int>(sendcount), sendtype, recvbuf,
                             static_cast<int>(recvcount), recvtype, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                      recvtype, comm);
    }
    Exchange exchange("MPI_Allgather", comm, allgather_tag);
    if (!exchange.impossible())
        allgather(exchange, sendbuf, sendcount, sendtype, Blocks(recvbuf, recvcount, recvtype));
    return exchange.finish();
}

int Allgatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
               Counts recvcounts, Displacements displs, MPI_Datatype recvtype, MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (small(recvcounts, sendcount))
            return move_down(comm, real.Allgatherv, sendbuf, static_cast<int>(sendcount), sendtype, recvbuf,
                             recvcounts.small(), displs.small(), recvtype, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Allgatherv, sendbuf, sendcount, sendtype, recvbuf,
                                      recvcounts.big(), displs.big(), recvtype, comm);
    }
    Exchange exchange("MPI_Allgatherv", comm, allgather_tag);
    if (!exchange.impossible())
        allgather(exchange, sendbuf, sendcount, sendtype, Blocks(recvbuf, recvcounts, displs, recvtype));
    return exchange.finish();
}

int Alltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
             MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (fits(sendcount) && fits(recvcount))
            return move_down(comm, real.Alltoall, sendbuf, static_cast<int>(sendcount), sendtype, recvbuf,
                             static_cast<int>(recvcount), recvtype, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                      recvtype, comm);
    }
    Exchange exchange("MPI_Alltoall", comm, alltoall_tag);
    if (exchange.impossible()) return exchange.finish();
    const Blocks in(recvbuf, recvcount, recvtype);
    if (sendbuf == MPI_IN_PLACE)
        alltoall_in_place(exchange, in);
    else
        alltoall(exchange, Blocks(sendbuf, sendcount, sendtype), in);
    return exchange.finish();
}

int Alltoallv(const void* sendbuf, Counts sendcounts, Displacements sdispls, MPI_Datatype sendtype,
              void* recvbuf, Counts recvcounts, Displacements rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (small(recvcounts, 0))
            return move_down(comm, real.Alltoallv, sendbuf, sendcounts.small(), sdispls.small(), sendtype,
                             recvbuf, recvcounts.small(), rdispls.small(), recvtype, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Alltoallv, sendbuf, sendcounts.big(), sdispls.big(), sendtype,
                                      recvbuf, recvcounts.big(), rdispls.big(), recvtype, comm);
    }
    Exchange exchange("MPI_Alltoallv", comm, alltoall_tag);
    if (exchange.impossible()) return exchange.finish();
    const Blocks in(recvbuf, recvcounts, rdispls, recvtype);
    if (sendbuf == MPI_IN_PLACE)
        alltoall_in_place(exchange, in);
    else
        alltoall(exchange, Blocks(sendbuf, sendcounts, sdispls, sendtype), in);
    return exchange.finish();
}

}  // namespace mpisec::shim
