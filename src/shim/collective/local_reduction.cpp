#include "shim/collective/local_reduction.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// A window of this process alone, made when it is first needed, and locked as long as it stands.
struct LocalReductions {
    std::mutex mutex;
    MPI_Win window{};
    std::uint8_t* memory = nullptr;  ///< null while there is no window
};

namespace {

constexpr MPI_Aint window_bytes = 64 * 1024;

bool by_accumulate() {
#ifdef OPEN_MPI
    // Nor is there an MPI_COMM_SELF while another thread is in MPI_Init.
    return !process.world_begun || starts_elsewhere();
#else
    return false;
#endif
}

int make_window(LocalReductions& here) {
    if (here.memory) return MPI_SUCCESS;
    std::uint8_t* memory = nullptr;
    int code =
        real.Win_allocate(window_bytes, 1, constants.info_null, state.private_self, &memory, &here.window);
    if (code != MPI_SUCCESS) return code;
    code = real.Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, here.window);
    if (code == MPI_SUCCESS) here.memory = memory;
    return code;
}

/// As many elements at a time as the window has room for.
int accumulate(const std::uint8_t* in, std::uint8_t* inout, int count, MPI_Datatype type, MPI_Op op) {
    LocalReductions& here = *process.local_reductions;
    const std::lock_guard lock(here.mutex);
    int code = make_window(here);
    MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    real.Type_get_extent(type, &lower, &extent);
    real.Type_get_true_extent(type, &true_lower, &true_extent);
    const int most = static_cast<int>(window_bytes / extent);
    for (int done = 0; done < count && code == MPI_SUCCESS; done += most) {
        const int now = std::min(most, count - done);
        const MPI_Aint at = done * extent;
        // The last one may end before its extent does.
        const auto bytes = static_cast<std::size_t>((now - 1) * extent + true_extent);
        std::memcpy(here.memory, inout + at, bytes);
        code = real.Accumulate(in + at, now, type, 0, 0, now, type, op, here.window);
        if (code == MPI_SUCCESS) code = real.Win_flush(0, here.window);
        if (code == MPI_SUCCESS) std::memcpy(inout + at, here.memory, bytes);
    }
    return code;
}

}  // namespace

bool can_reduce_locally(MPI_Op op) {
    return !by_accumulate() || is_predefined(op);
}

int reduce_locally(const void* in, void* inout, int count, MPI_Datatype type, MPI_Op op) {
    if (by_accumulate()) [[unlikely]]
        return accumulate(static_cast<const std::uint8_t*>(in), static_cast<std::uint8_t*>(inout), count,
                          type, op);
    return real.Reduce_local(in, inout, count, type, op);
}

void end_local_reductions() {
    LocalReductions& here = *process.local_reductions;
    const std::lock_guard lock(here.mutex);
    if (!here.memory) return;
    real.Win_unlock(0, here.window);
    real.Win_free(&here.window);
    here.memory = nullptr;
}

}  // namespace mpisec::shim
