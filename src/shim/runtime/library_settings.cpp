// Settings that the MPI library below gets through its environment, unless the user has set them. They are made when this library is
// loaded, because MPI_T_init_thread() may make MPI read its environment before MPI_Init.
#include <mpi.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace mpisec::shim {
namespace {

struct LibrarySetting {
    const char *variable, *value;
};

// The standard ABI's library may be of either kind.
constexpr LibrarySetting library_settings[] = {
#ifndef MPICH
    // In a rendezvous by put requests, Open MPI's receivers tell their senders over the network from which place in the sender's memory to
    // send, and that is not checked (docs/threat-model.md, "Limits").
    {"OMPI_MCA_btl_tcp_flags", "send"},
#endif
#ifndef OPEN_MPI
    // For an MPICH that has both UCX and libfabric (PyPI's). UCX writes and reads memory at the addresses that a frame from the network
    // names (docs/threat-model.md, "Limits").
    {"MPIR_CVAR_CH4_NETMOD", "ofi"},
    // MPICH's own one-sided operations between nodes. While they are on, MPICH registers the memory of every window with the network, even
    // of a window that it believes to have one process, and whoever can write to its connections can read and write that memory past
    // MPIsec. Receivers then also acknowledge every message of more than 128 bytes (docs/adr/0024-mpichs-one-sided-operations-are-off.md).
    {"MPIR_CVAR_CH4_OFI_ENABLE_RMA", "0"},
    // MPICH's active messages are its other way to access windows; they do not ask where a window ends.
    {"MPIR_CVAR_CH4_OFI_ENABLE_AM", "0"},
    // The tcp provider of libfabric 2 hangs after 64 unexpected messages from one sender, and a large message may count as several when it
    // is sealed.
    {"FI_TCP_MAX_SAVED", "1024"},
#endif
};

/// MPICH also has earlier names for its variables; the name used here would override them.
bool is_set_by_another_name(std::string_view variable) {
    constexpr std::string_view prefix = "MPIR_CVAR_";
    if (!variable.starts_with(prefix)) return false;
    const std::string rest(variable.substr(prefix.size()));
    return std::getenv(("MPICH_" + rest).c_str()) || std::getenv(("MPIR_PARAM_" + rest).c_str());
}

__attribute__((constructor)) void tell_the_library() {
    for (const auto& [variable, value] : library_settings)
        if (!is_set_by_another_name(variable)) setenv(variable, value, 0);
}

}  // namespace
}  // namespace mpisec::shim
