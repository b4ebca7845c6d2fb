#include <new>
#include <string>

#include "shim/collectives.hpp"
#include "shim/constants.hpp"
#include "shim/datatype.hpp"
#include "shim/errors.hpp"

namespace mpisec::shim::collective {

Exchange::Exchange(const char* procedure, MPI_Comm comm, Tag tag, int root)
    : procedure_(procedure), comm_(find_communicator(comm)), tag_(tag) {
    if (!comm_ || comm_->inter) {
        error_ = refuse(procedure, comm);
        raised_ = true;
    } else if (root < 0 || root >= comm_->size) {
        error_ = MPI_ERR_ROOT;
    } else {
        error_ = collective_twin(*comm_, &twin_);
    }
    impossible_ = failed();
}

void Exchange::note(int code) {
    if (!failed()) error_ = code;
}

int Exchange::finish() {
    if (failed() && !raised_) raise(comm_, error_);
    raised_ = true;
    return error_;
}

void Exchange::check_arrival(int code, const MPI_Status& status, int from) {
    note(code);
    if (failed() || status.MPI_TAG == tag_) return;
    if (status.MPI_TAG != failure_tag) {
        error_ = report_violation(Violation::reordered, *comm_, from, status.MPI_TAG, procedure_);
        return;
    }
    say(std::string(procedure_) + " fails here because it failed on rank " + std::to_string(from) +
        " of the communicator, which says why.");
    error_ = MPI_ERR_OTHER;
}

void Exchange::send(const void* buf, MPI_Count count, MPI_Datatype type, int to) {
    if (!failed()) {
        note(Send(buf, count, type, to, tag_, twin_));
        if (!failed()) return;
    }
    Send(nullptr, 0, constants.byte, to, failure_tag, twin_);
}

void Exchange::receive(void* buf, MPI_Count count, MPI_Datatype type, int from) {
    MPI_Status status;
    const int code = Recv(buf, count, type, from, MPI_ANY_TAG, twin_, &status);
    check_arrival(code, status, from);
}

void Exchange::send_receive(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int to,
                            void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int from) {
    MPI_Status status;
    const int code = Sendrecv(sendbuf, failed() ? 0 : sendcount, sendtype, to, outgoing_tag(), recvbuf,
                              recvcount, recvtype, from, MPI_ANY_TAG, twin_, &status);
    check_arrival(code, status, from);
}

void Exchange::send_receive_replace(void* buf, MPI_Count count, MPI_Datatype type, int with) {
    MPI_Status status;
    const int code = failed()
                         ? Sendrecv(nullptr, 0, constants.byte, with, failure_tag, buf, count, type, with,
                                    MPI_ANY_TAG, twin_, &status)
                         : Sendrecv_replace(buf, count, type, with, tag_, with, MPI_ANY_TAG, twin_, &status);
    check_arrival(code, status, with);
}

Blocks::Blocks(const void* buf, MPI_Count each_rank, MPI_Datatype block_type)
    : base(const_cast<void*>(buf)), type(block_type), extent(0), each(each_rank) {
    MPI_Aint lower_bound = 0;
    real.Type_get_extent(type, &lower_bound, &extent);
}

Blocks::Blocks(const void* buf, Counts by_rank, Displacements where, MPI_Datatype block_type)
    : Blocks(buf, 0, block_type) {
    counts = by_rank;
    displacements = where;
}

int copy(const void* from, MPI_Count fromcount, MPI_Datatype fromtype, void* to, MPI_Count tocount,
         MPI_Datatype totype) {
    if (fromcount < 0 || tocount < 0) return MPI_ERR_COUNT;
    TypeFacts source, destination;
    if (!type_facts(fromtype, source) || !type_facts(totype, destination)) return MPI_ERR_TYPE;
    const std::size_t bytes = source.size * static_cast<std::size_t>(fromcount);
    if (bytes > destination.size * static_cast<std::size_t>(tocount)) return MPI_ERR_TRUNCATE;
    if (bytes == 0) return MPI_SUCCESS;
    if (source.contiguous)
        return unpack(static_cast<const std::uint8_t*>(from), bytes, to, tocount, totype, destination);
    if (destination.contiguous)
        return pack(from, fromcount, fromtype, source, static_cast<std::uint8_t*>(to));
    std::unique_ptr<std::uint8_t[]> packed(new (std::nothrow) std::uint8_t[bytes]);
    if (!packed) return MPI_ERR_NO_MEM;
    if (int code = pack(from, fromcount, fromtype, source, packed.get()); code != MPI_SUCCESS) return code;
    return unpack(packed.get(), bytes, to, tocount, totype, destination);
}

void broadcast(Exchange& exchange, void* buffer, MPI_Count count, MPI_Datatype type, int root) {
    const int size = exchange.size();
    const int place = (exchange.rank() - root + size) % size;  // root is place 0
    int distance = 1;
    while (distance < size && !(place & distance)) distance <<= 1;
    if (place != 0) exchange.receive(buffer, count, type, (place - distance + root) % size);
    for (distance >>= 1; distance > 0; distance >>= 1) {
        if (place + distance < size) exchange.send(buffer, count, type, (place + distance + root) % size);
    }
}

}  // namespace mpisec::shim::collective
