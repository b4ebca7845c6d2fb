// Which file systems `mpisec doctor` tells of.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "cli/file_systems.hpp"

namespace mpisec::cli {
namespace {

/// A mount table in a file.
class Table {
  public:
    explicit Table(const std::string& text) {
        close(mkstemp(path_.data()));
        std::ofstream(path_) << text;
    }
    ~Table() { unlink(path_.c_str()); }
    const std::string& path() const { return path_; }

  private:
    std::string path_ = "/tmp/mpisec-mounts-XXXXXX";
};

TEST(FileSystems, ThoseThatOtherMachinesServeAreFound) {
    const Table table(
        "/dev/vda / ext4 rw 0 0\n"
        "server:/home /home\\040of\\040all nfs4 rw 0 0\n"
        "10.0.0.1@tcp:/scratch /scratch lustre rw 0 0\n"
        "tmpfs /dev/shm tmpfs rw 0 0\n"
        "//server/share /share cifs rw 0 0\n"
        "server:/volume /volume fuse.glusterfs rw 0 0\n"
        "user /gpfs gpfs rw 0 0\n"
        "beegfs_nodev /beegfs beegfs rw 0 0\n"
        "/dev/fuse /local fuse.portal rw 0 0\n");
    std::string all;
    for (const NetworkFileSystem& each : network_file_systems(table.path()))
        all += each.kind + " " + each.place + "\n";
    EXPECT_EQ(all,
              "nfs4 /home of all\nlustre /scratch\ncifs /share\nfuse.glusterfs /volume\ngpfs /gpfs\nbeegfs "
              "/beegfs\n");
    EXPECT_TRUE(network_file_systems("/nowhere/mounts").empty());
}

TEST(FileSystems, AreKnownByTheirNumbers) {
    EXPECT_EQ(network_file_system_of_magic(0x6969), "nfs");
    EXPECT_EQ(network_file_system_of_magic(0x0BD00BD0), "lustre");
    EXPECT_EQ(network_file_system_of_magic(
                  static_cast<unsigned long>(static_cast<long>(static_cast<int>(0xFF534D42)))),
              "cifs");
    EXPECT_EQ(network_file_system_of_magic(0xEF53), "") << "ext4";
    EXPECT_EQ(network_file_system_of("/proc"), "");
    EXPECT_EQ(network_file_system_of("/nowhere"), "");
}

}  // namespace
}  // namespace mpisec::cli
