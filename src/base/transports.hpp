// Communication libraries beside MPI, by the names of their shared libraries: `mpisec exec` and `mpisec doctor` look for them among the
// libraries that a program is linked with, the shim among those that it has loaded.
#pragma once

#include <string_view>

namespace mpisec {

struct TransportLibrary {
    std::string_view stem;   ///< of the file's name, up to ".so" or '-': libnccl of libnccl.so.2
    std::string_view title;  ///< for people
    bool under_mpi;  ///< MPI libraries load it themselves, so that seeing it in a process says nothing
};

inline constexpr TransportLibrary transport_libraries[] = {
    {"libnccl", "NCCL", false},
    {"librccl", "RCCL", false},
    {"libnvshmem", "NVSHMEM", false},
    {"libnvshmem_host", "NVSHMEM", false},
    {"librocshmem", "rocSHMEM", false},
    {"libccl", "oneCCL", false},
    {"libgloo", "Gloo", false},
    {"liboshmem", "OpenSHMEM", false},
    {"libsma", "OpenSHMEM", false},
    {"libgasnet", "GASNet", false},
    {"libucp", "UCX", true},
    {"libuct", "UCX", true},
    {"libucc", "UCC", true},
    {"libfabric", "libfabric", true},
    {"libpsm2", "PSM2", true},
    {"libibverbs", "InfiniBand verbs", true},
};

/// The library that a file of this name (without directory) is; null when it is none of them.
inline constexpr const TransportLibrary* transport_library(std::string_view file) {
    const std::string_view stem = file.substr(0, file.find(".so"));
    for (const TransportLibrary& library : transport_libraries) {
        // libgasnet-udp-par.so and the like: a conduit follows the name
        if (stem == library.stem || (stem.starts_with(library.stem) && stem.size() > library.stem.size() &&
                                     stem[library.stem.size()] == '-'))
            return &library;
    }
    return nullptr;
}

}  // namespace mpisec
