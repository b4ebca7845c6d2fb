// File systems that other machines serve: what they send is theirs to protect, not MPI's.
#pragma once

#include <string>
#include <vector>

namespace mpisec::cli {

struct NetworkFileSystem {
    std::string kind;   ///< as the kernel calls it: nfs4, lustre
    std::string place;  ///< where it is mounted
};

/// Those in a mount table (/proc/self/mounts), in its order. Nothing is asked of their servers, which may be dead.
std::vector<NetworkFileSystem> network_file_systems(const std::string& mount_table);

/// What statfs(2) says the directory is on, where it is one of these by its magic number; empty for others.
std::string network_file_system_of(const std::string& directory);
/// The same of the number.
std::string network_file_system_of_magic(unsigned long magic);

}  // namespace mpisec::cli
