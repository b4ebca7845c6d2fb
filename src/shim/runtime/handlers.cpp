#include "shim/runtime/handlers.hpp"

#include <cstdarg>
#include <mutex>

#include "shim/pmpi/real.hpp"

namespace mpisec::shim {

constinit thread_local Handled handled{};

namespace {

template <typename Handle>
using Function = void(Handle*, int*, ...);

// MPI_Comm, MPI_Win and MPI_File may be one type.
struct OfCommunicators {
    using Handle = MPI_Comm;
    static auto& functions() { return process.handler_functions.of_communicators; }
};
struct OfWindows {
    using Handle = MPI_Win;
    static auto& functions() { return process.handler_functions.of_windows; }
};
struct OfFiles {
    using Handle = MPI_File;
    static auto& functions() { return process.handler_functions.of_files; }
};

/// What the library calls in place of the program's procedure number `slot`.
template <typename Kind, std::size_t slot>
void call_program(typename Kind::Handle* object, int* code, ...) {
    int* const outcome = std::exchange(handled.outcome, nullptr);  // the handler may make calls that fail
    const auto function = reinterpret_cast<Function<typename Kind::Handle>*>(
        Kind::functions()[slot].load(std::memory_order_acquire));
#if defined(OPEN_MPI)  // passes the name of the procedure that failed
    std::va_list more;
    va_start(more, code);
    const char* const procedure = va_arg(more, const char*);
    va_end(more);
    function(object, code, procedure, nullptr);
#else
    function(object, code);
#endif
    if (outcome) *outcome = *code;
}

/// What the library gets in place of `function`: the same for the same one. Beyond the number of slots, which no program is known to need,
/// `function` itself.
template <typename Kind, std::size_t... slots>
auto in_place_of(Function<typename Kind::Handle>* function, std::index_sequence<slots...>) {
    constexpr std::array<Function<typename Kind::Handle>*, sizeof...(slots)> callers{
        &call_program<Kind, slots>...};
    if (!function) return function;  // an error, and the library's to find
    const std::lock_guard lock(process.handler_functions.lock);
    const auto wanted = reinterpret_cast<HandlerFunctions::Any*>(function);
    for (std::size_t slot = 0; slot < callers.size(); ++slot) {
        auto& known = Kind::functions()[slot];
        HandlerFunctions::Any* const there = known.load(std::memory_order_relaxed);
        if (there && there != wanted) continue;
        known.store(wanted, std::memory_order_release);
        return callers[slot];
    }
    return function;
}

template <typename Kind>
auto in_place_of(Function<typename Kind::Handle>* function) {
    return in_place_of<Kind>(function, std::make_index_sequence<HandlerFunctions::slots>{});
}

}  // namespace

int Comm_create_errhandler(MPI_Comm_errhandler_function* function, MPI_Errhandler* handler) {
    return real.Comm_create_errhandler(in_place_of<OfCommunicators>(function), handler);
}

int Win_create_errhandler(MPI_Win_errhandler_function* function, MPI_Errhandler* handler) {
    return real.Win_create_errhandler(in_place_of<OfWindows>(function), handler);
}

int File_create_errhandler(void (*function)(MPI_File*, int*, ...), MPI_Errhandler* handler) {
    return real.File_create_errhandler(in_place_of<OfFiles>(function), handler);
}

}  // namespace mpisec::shim
