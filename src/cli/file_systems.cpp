#include "cli/file_systems.hpp"

#include <mntent.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <utility>

namespace mpisec::cli {
namespace {

constexpr std::string_view kinds[] = {
    "nfs",        "nfs4",        "lustre", "gpfs",  "beegfs", "cifs",   "smb3",           "smbfs",
    "ceph",       "9p",          "afs",    "pvfs2", "panfs",  "wekafs", "fuse.glusterfs", "fuse.ceph-fuse",
    "fuse.sshfs", "fuse.juicefs"};

// linux/magic.h, and the file systems' own sources for those that are not in the kernel.
constexpr std::array magics = {
    std::pair(0x6969ul, "nfs"),        std::pair(0x0BD00BD0ul, "lustre"), std::pair(0x47504653ul, "gpfs"),
    std::pair(0x19830326ul, "beegfs"), std::pair(0xFF534D42ul, "cifs"),   std::pair(0xFE534D42ul, "smb2"),
    std::pair(0x517Bul, "smb"),        std::pair(0x00C36400ul, "ceph"),   std::pair(0x01021997ul, "9p"),
    std::pair(0x5346414Ful, "afs"),    std::pair(0x20030528ul, "pvfs2"),  std::pair(0xAAD7AAEAul, "panfs")};

}  // namespace

std::vector<NetworkFileSystem> network_file_systems(const std::string& mount_table) {
    std::vector<NetworkFileSystem> found;
    FILE* table = setmntent(mount_table.c_str(), "re");
    if (!table) return found;
    mntent entry{};
    std::array<char, 4096> room{};
    while (getmntent_r(table, &entry, room.data(), static_cast<int>(room.size())))
        if (std::ranges::find(kinds, std::string_view(entry.mnt_type)) != std::end(kinds))
            found.push_back({entry.mnt_type, entry.mnt_dir});
    endmntent(table);
    return found;
}

std::string network_file_system_of_magic(unsigned long magic) {
    for (const auto& [number, kind] : magics)
        if (number == (magic & 0xFFFFFFFFul)) return kind;
    return {};
}

std::string network_file_system_of(const std::string& directory) {
    struct statfs status {};
    if (statfs(directory.c_str(), &status) != 0) return {};
    return network_file_system_of_magic(static_cast<unsigned long>(status.f_type));
}

}  // namespace mpisec::cli
