#include "cli/transports.hpp"

#include <deque>
#include <map>
#include <set>

#include "base/transports.hpp"
#include "cli/family.hpp"

namespace mpisec::cli {
namespace {

std::string file_of(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::vector<Transport> transports_past_mpi(const Program& program,
                                           const std::vector<LoadedLibrary>& libraries) {
    std::vector<Transport> found;
    if (program.is_script || program.is_python) return found;
    std::map<std::string, std::string> path_of;
    for (const LoadedLibrary& library : libraries) path_of[library.name] = library.path;
    std::set<std::string> seen;
    std::deque<std::pair<std::string, Elf>> open{{program.executable, program.elf}};
    while (!open.empty()) {
        const auto [path, elf] = std::move(open.front());
        open.pop_front();
        for (const std::string& needed : elf.needed) {
            const std::string file = file_of(needed);
            // What the MPI library is linked with, it needs for MPI's messages.
            if (looks_like_mpi(file) || !seen.insert(file).second) continue;
            if (const TransportLibrary* library = transport_library(file)) {
                found.push_back({file, std::string(library->title), path});
                continue;
            }
            const std::string& where = path_of[needed];
            if (where.empty()) continue;
            if (auto next = read_elf(where); next && *next) open.emplace_back(where, **next);
        }
    }
    // GASNet is mostly linked in statically, with one of its conduits.
    if (defines_symbol(program.executable, "gasnetc_")) found.push_back({"", "GASNet", program.executable});
    return found;
}

std::string sentence_about(const Transport& transport) {
    const std::string linked = transport.library.empty()
                                   ? " contains " + transport.title
                                   : " is linked with " + transport.title + " (" + transport.library + ")";
    return transport.user + linked +
           ": what that sends to other nodes is not protected by MPIsec. Let the program communicate by MPI "
           "alone, or protect that traffic by other means (WireGuard, IPsec)";
}

}  // namespace mpisec::cli
