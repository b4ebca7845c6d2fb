#include "shim/startup/node_id.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/small_file.hpp"
#include "keys/hkdf.hpp"

namespace mpisec::shim {
namespace {

void add(keys::Sha256& hash, const std::string& text) {
    hash.update(keys::as_bytes(text)).update(keys::as_bytes("\n"));
}

/// What a path leads to, by device and inode: "-" when it cannot be told.
std::string identity(const char* path) {
    struct stat status;
    if (stat(path, &status) != 0) return "-";
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

}  // namespace

std::string pmi_server() {
    const char* text = std::getenv("PMI_FD");
    int descriptor = -1;
    if (text) std::from_chars(text, text + std::strlen(text), descriptor);
    ucred peer{};
    socklen_t n = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0) return "-";
    if (peer.pid == 0) return "-";  // no number here: our container numbers its own processes
    return std::to_string(peer.pid);
}

std::string boot_id() {
    const std::string text = read_small_file("/proc/sys/kernel/random/boot_id");
    return text.substr(0, text.find('\n'));
}

bool launcher_is_known() {
    auto set = [](const char* name) { return std::getenv(name) != nullptr; };
    return pmi_server() != "-" || set("PMIX_NAMESPACE") || set("FLUX_JOB_ID") ||
           (set("SLURM_JOB_ID") && set("SLURM_STEP_ID"));
}

std::array<std::uint8_t, 16> node_id() {
    keys::Sha256 hash;
    add(hash, boot_id());
    add(hash, identity("/dev/shm"));
    add(hash, identity("/proc/self/ns/net"));
    add(hash, std::to_string(geteuid()));
    for (const char* name :
         {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID", "FLUX_JOB_ID", "PBS_JOBID"}) {
        const char* value = std::getenv(name);
        add(hash, value ? value : "-");
    }
    add(hash, pmi_server());
    keys::Digest digest;
    hash.finish(digest.data());
    std::array<std::uint8_t, 16> mark;
    std::memcpy(mark.data(), digest.data(), mark.size());
    return mark;
}

}  // namespace mpisec::shim
