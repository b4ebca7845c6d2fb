#include "shim/collective/local_reduction.hpp"

#include <cstddef>

#include "shim/pmpi/real.hpp"
#include "shim/runtime/gate.hpp"

namespace mpisec::shim {

/// The function that Open MPI's MPI_Reduce_local calls through MPI_COMM_SELF. A program that uses sessions alone has no
/// MPI_COMM_SELF, and MPI_Reduce_local crashes there (seen on 5.0.11, without MPIsec). The function itself needs no
/// communicator. It is internal to the library, exported for its collective components; its last argument, a component,
/// is not used. Its count is an int or a size_t, depending on the version, and is passed in one register either way.
struct LocalReductions {
    using Procedure = int (*)(const void* in, void* inout, std::size_t count, MPI_Datatype type, MPI_Op op,
                              void* component);
    Procedure without_world = reinterpret_cast<Procedure>(library_symbol("mca_coll_base_reduce_local"));
};

namespace {

bool self_is_there() {
#ifdef OPEN_MPI
    // It is not there either while another thread is in MPI_Init.
    return process.world_begun && !starts_elsewhere();
#else
    return true;
#endif
}

}  // namespace

bool can_reduce_locally() {
    return self_is_there() || process.local_reductions->without_world;
}

int reduce_locally(const void* in, void* inout, int count, MPI_Datatype type, MPI_Op op) {
    if (self_is_there()) [[likely]]
        return real.Reduce_local(in, inout, count, type, op);
    if (auto* without_world = process.local_reductions->without_world)
        return without_world(in, inout, static_cast<std::size_t>(count), type, op, nullptr);
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

}  // namespace mpisec::shim
