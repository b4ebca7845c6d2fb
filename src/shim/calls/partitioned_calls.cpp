// Partitioned point-to-point (MPI standard chapter 4.2). What stays on this node is left to the MPI library, where that serves each pair of
// ranks separately; Open MPI's makes a communicator of all ranks at the first call, and would wait for those whose peers are elsewhere.
#include <algorithm>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "shim/calls/entry.hpp"
#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/partitioned/receive.hpp"
#include "shim/partitioned/send.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/device.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {
namespace {

#ifdef OPEN_MPI
constexpr bool library_serves_node = false;
#else
constexpr bool library_serves_node = true;
#endif

/// What is wrong with the arguments, as an MPI error class.
int find_fault(const PartitionedSpec& spec) {
    if (spec.peer == MPI_PROC_NULL) return MPI_SUCCESS;
    if (spec.tag < 0 || spec.tag > state.tag_upper_bound) return MPI_ERR_TAG;
    return spec.count < 0 ? MPI_ERR_COUNT : MPI_SUCCESS;
}

/// A request of MPIsec's for what `route` leads to.
template <class End, class Start>
int init_partitioned(PartitionedSpec spec, const Route& route, MPI_Comm comm, MPI_Request* request) {
    Communicator* owner = route.comm ? route.comm : find_communicator(comm);
    if (!owner) return raise_route({Route::invalid, nullptr, MPI_ERR_COMM}, spec.call);
    if (int fault = find_fault(spec); fault != MPI_SUCCESS) return raise(owner, fault);
    if (spec.partitions < 0) return raise(owner, MPI_ERR_ARG);
    TypeFacts facts;  // partitions in a GPU's memory are packed, as types with gaps are
    if (spec.type == constants.datatype_null || !buffer_facts(spec.buf, spec.type, facts))
        return raise(owner, MPI_ERR_TYPE);
    Guard guard;
    spec.type = keep_type(spec.type);
    auto end = std::make_shared<End>(spec, route.comm, facts,
                                     route.kind == Route::sealed || route.kind == Route::verified);
    if constexpr (std::is_same_v<End, ReceiveEnd>) {
        if (route.comm && end->piece_tag < 0) {
            say("MPI_Precv_init: rank " + std::to_string(spec.peer) + " is the sender of " +
                std::to_string(piece_tags()) + " partitioned messages already, and the MPI library has no " +
                "more tags; free some of their requests");
            return raise(owner, MPI_ERR_OTHER);
        }
    }
    auto restart = [end]() -> std::unique_ptr<Operation> {
        auto operation = std::make_unique<Start>(end);
        operation->advance();
        enlist(*operation);
        return operation;
    };
    *request = give_persistent(std::move(restart), {});
    enter_partitioned(*request, end);
    return MPI_SUCCESS;
}

bool is_for_library(const Route& route, const PartitionedSpec& spec) {
    return library_serves_node && route.kind == Route::plain && spec.peer != MPI_PROC_NULL;
}

/// Whether the request is one of the MPI library's.
bool is_of_library(MPI_Request request) {
    return library_serves_node && !find_request(request) && request != constants.request_null;
}

int mark_ready(const std::vector<int>& partitions, MPI_Request request) {
    const std::shared_ptr<PartitionedEnd> end = find_partitioned(request);
    auto* mine = dynamic_cast<SendEnd*>(end.get());
    PartitionedSend* send = nullptr;
    int ended = MPI_ERR_REQUEST;
    {
        Guard guard;
        PartitionedSend* active = mine ? mine->active : nullptr;
        // Another thread may take away a send that has ended at any time. Its error is returned where the request is completed.
        if (active && active->complete())
            ended = active->outcome().error != MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_ARG;
        else if (active)
            (send = active)->enter();
    }
    if (!send) return raise(end ? end->comm : nullptr, ended);
    const bool in_range = std::ranges::all_of(
        partitions, [&](int partition) { return partition >= 0 && partition < mine->spec.partitions; });
    const int code = in_range ? send->mark_ready(partitions) : MPI_ERR_ARG;
    {
        Guard guard;
        if (code == MPI_SUCCESS && mine->receiver_start < mine->start) hear_partition_notices();
    }
    if (code == MPI_SUCCESS) send->send_ready();
    {
        Guard guard;
        send->leave();
    }
    return raise(mine->comm, code);
}

}  // namespace

int Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag,
               MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    const PartitionedSpec spec{const_cast<void*>(buf), partitions, count, type, dest, tag, "MPI_Psend_init"};
    const Route route = route_send(dest, tag, comm, count);
    if (route.kind == Route::invalid) return raise_route(route, spec.call);
    if (is_for_library(route, spec)) {
        if (any_foreign_to_library(buf)) [[unlikely]]
            return refuse_device(spec.call, comm);
        return real.Psend_init(buf, partitions, count, type, dest, tag, comm, info, request);
    }
    return init_partitioned<SendEnd, PartitionedSend>(spec, route, comm, request);
}

int Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag,
               MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    const PartitionedSpec spec{buf, partitions, count, type, source, tag, "MPI_Precv_init"};
    const Route route = route_send(source, tag, comm, count);  // there are no wildcards
    if (route.kind == Route::invalid) return raise_route(route, spec.call);
    if (is_for_library(route, spec)) {
        if (any_foreign_to_library(buf)) [[unlikely]]
            return refuse_device(spec.call, comm);
        return real.Precv_init(buf, partitions, count, type, source, tag, comm, info, request);
    }
    return init_partitioned<ReceiveEnd, PartitionedReceive>(spec, route, comm, request);
}

int Pready(int partition, MPI_Request request) {
    if (is_of_library(request)) return real.Pready(partition, request);
    return mark_ready({partition}, request);
}

int Pready_range(int partition_low, int partition_high, MPI_Request request) {
    if (is_of_library(request)) return real.Pready_range(partition_low, partition_high, request);
    if (partition_low > partition_high || partition_low < 0) return mark_ready({-1}, request);
    const std::shared_ptr<PartitionedEnd> end = find_partitioned(request);
    if (end && partition_high >= end->spec.partitions) return mark_ready({-1}, request);
    std::vector<int> partitions(end ? static_cast<std::size_t>(partition_high - partition_low) + 1 : 0);
    std::iota(partitions.begin(), partitions.end(), partition_low);
    return mark_ready(partitions, request);
}

int Pready_list(int length, const int partitions[], MPI_Request request) {
    if (is_of_library(request)) return real.Pready_list(length, const_cast<int*>(partitions), request);
    if (length < 0) return mark_ready({-1}, request);
    return mark_ready(std::vector<int>(partitions, partitions + length), request);
}

int Parrived(MPI_Request request, int partition, int* flag) {
    progress();
    if (is_of_library(request)) return real.Parrived(request, partition, flag);
    const std::shared_ptr<PartitionedEnd> end = find_partitioned(request);
    if (!end && request != constants.request_null) return raise(nullptr, MPI_ERR_REQUEST);
    *flag = 1;  // of a null or inactive request
    if (!end) return MPI_SUCCESS;
    auto* mine = dynamic_cast<ReceiveEnd*>(end.get());
    if (!mine) return raise(end->comm, MPI_ERR_REQUEST);
    if (partition < 0 || partition >= mine->spec.partitions) return raise(mine->comm, MPI_ERR_ARG);
    int error = MPI_SUCCESS;
    {
        Guard guard;
        if (!mine->active) return MPI_SUCCESS;
        mine->active->advance();
        *flag = mine->active->arrived(partition);
        if (!*flag) error = mine->active->complete() ? mine->active->outcome().error : mine->active->error();
    }
    return raise(mine->comm, error);
}

}  // namespace mpisec::shim
