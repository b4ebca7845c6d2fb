// Reduce and Allreduce in a first, simple sealed form: a binomial tree over sealed point-to-point messages.
// MPI standard section 6.9.
#include <new>
#include <utility>

#include "shim/collectives.hpp"

namespace mpisec::shim {

using namespace collective;

namespace {

constexpr MPI_Count reduce_local_most = 1 << 30;  ///< elements per MPI_Reduce_local call, which counts in int

/// Room for `count` elements of any datatype, addressed as MPI wants it: the first byte of data lies
/// `true_lb` from the address.
class Elements {
  public:
    Elements(MPI_Count count, MPI_Datatype type) {
        if (count <= 0) return;
        MPI_Aint lower_bound, extent, true_lower_bound, true_extent;
        real.Type_get_extent(type, &lower_bound, &extent);
        real.Type_get_true_extent(type, &true_lower_bound, &true_extent);
        const MPI_Aint last =
            extent * (count - 1);  // where the last element is; before the first when the extent is negative
        const MPI_Aint lowest = true_lower_bound + (last < 0 ? last : 0);
        const MPI_Aint bytes = true_extent + (last < 0 ? -last : last);
        memory_.reset(new (std::nothrow) std::uint8_t[static_cast<std::size_t>(bytes)]);
        address_ = memory_ ? at(memory_.get(), -lowest) : nullptr;
        missing_ = !memory_;
    }
    void* address() const { return address_; }
    bool missing() const { return missing_; }

  private:
    std::unique_ptr<std::uint8_t[]> memory_;
    void* address_ = nullptr;
    bool missing_ = false;
};

/// inout = in op inout, element by element.
int combine(const void* in, void* inout, MPI_Count count, MPI_Datatype type, MPI_Op op) {
    MPI_Aint lower_bound = 0, extent = 0;
    real.Type_get_extent(type, &lower_bound, &extent);
    for (MPI_Count done = 0; done < count; done += reduce_local_most) {
        const int now = static_cast<int>(count - done < reduce_local_most ? count - done : reduce_local_most);
        const int code = real.Reduce_local(at(in, extent * done), at(inout, extent * done), now, type, op);
        if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
}

/// Binomial tree to `root`; `result` is filled there. A rank combines what it has, the lower ranks' part,
/// from the left with what a child sends, so values are combined in rank order when the tree starts at rank
/// 0, as operations that do not commute need.
void reduce_along_tree(Exchange& exchange, const void* own, void* result, MPI_Count count, MPI_Datatype type,
                       MPI_Op op, int root) {
    const int size = exchange.size();
    const int place = (exchange.rank() - root + size) % size;  // root is place 0
    const Elements first(count, type), second(count, type);
    if (first.missing() || second.missing()) exchange.note(MPI_ERR_NO_MEM);
    const void* so_far = own;
    void *incoming = first.address(), *spare = second.address();
    for (int distance = 1; distance < size; distance <<= 1) {
        if (place & distance) return exchange.send(so_far, count, type, (place - distance + root) % size);
        if (place + distance >= size) continue;
        exchange.receive(incoming, exchange.failed() ? 0 : count, type, (place + distance + root) % size);
        if (exchange.failed()) continue;
        exchange.note(combine(so_far, incoming, count, type, op));
        so_far = incoming;
        std::swap(incoming, spare);
    }
    if (!exchange.failed() && so_far != result) exchange.note(copy(so_far, count, type, result, count, type));
}

}  // namespace

int Reduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
           MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (fits(count))
            return move_down(comm, real.Reduce, sendbuf, recvbuf, static_cast<int>(count), type, op, root,
                             comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Reduce, sendbuf, recvbuf, count, type, op, root, comm);
    }
    Exchange exchange("MPI_Reduce", comm, reduce_tag, root);
    if (exchange.impossible()) return exchange.finish();
    const bool at_root = exchange.rank() == root;
    const void* own = at_root && sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    int commutes = 0;
    exchange.note(real.Op_commutative(op, &commutes));
    if (commutes || root == 0) {
        reduce_along_tree(exchange, own, recvbuf, count, type, op, root);
        return exchange.finish();
    }
    // In rank order at rank 0, then on to the root.
    const Elements at_zero(exchange.rank() == 0 ? count : 0, type);
    if (at_zero.missing()) exchange.note(MPI_ERR_NO_MEM);
    reduce_along_tree(exchange, own, at_zero.address(), count, type, op, 0);
    if (exchange.rank() == 0) exchange.send(at_zero.address(), count, type, root);
    if (at_root) exchange.receive(recvbuf, count, type, 0);
    return exchange.finish();
}

int Allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm) {
    if (!crosses_nodes(comm)) {
        if (fits(count))
            return move_down(comm, real.Allreduce, sendbuf, recvbuf, static_cast<int>(count), type, op, comm);
        return MPISEC_MOVE_DOWN_LARGE(comm, Allreduce, sendbuf, recvbuf, count, type, op, comm);
    }
    Exchange exchange("MPI_Allreduce", comm, reduce_tag);
    if (exchange.impossible()) return exchange.finish();
    // One rank computes and all others get its result, so that it is the same bits everywhere.
    reduce_along_tree(exchange, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf, count, type, op, 0);
    exchange.set_tag(bcast_tag);
    broadcast(exchange, recvbuf, count, type, 0);
    return exchange.finish();
}

}  // namespace mpisec::shim
