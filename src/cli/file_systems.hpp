// File systems that other machines serve: their traffic is for them to protect, not for MPI.
#pragma once

#include <string>
#include <vector>

namespace mpisec::cli {

struct NetworkFileSystem {
    std::string kind;   ///< as the kernel calls it: nfs4, lustre
    std::string place;  ///< where it is mounted
};

/// The network file systems in a mount table (/proc/self/mounts), in its order. Their servers, which may be dead, are not asked.
std::vector<NetworkFileSystem> network_file_systems(const std::string& mount_table);

/// The network file system that the directory is on, by the magic number from statfs(2); empty for other file systems.
std::string network_file_system_of(const std::string& directory);
/// The same for a magic number.
std::string network_file_system_of_magic(unsigned long magic);

}  // namespace mpisec::cli
