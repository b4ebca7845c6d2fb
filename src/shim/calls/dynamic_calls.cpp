// Worlds that are spawned or connected (dynamic/worlds.hpp), and the name service. The ports and commands by which the library and its
// launcher connect them are metadata in clear, and none of it is trusted.
#include <algorithm>
#include <string>
#include <vector>

#include "shim/calls/entry.hpp"
#include "shim/calls/guarded.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/dynamic/command.hpp"
#include "shim/dynamic/worlds.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/progress_barrier.hpp"
#include "shim/p2p/unsupported.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/watchdog.hpp"
#include "shim/sessions/start_up.hpp"

namespace mpisec::shim {
namespace {

/// A call on an intra-communicator that makes a communicator to another world with `ask(MPI_Comm*)`.
template <class Ask>
int connect(const char* procedure, const std::string& known_to_both, Side side, MPI_Comm comm,
            MPI_Comm* newcomm, Ask ask) {
    if (comm == constants.comm_null || !newcomm) return ask(newcomm);
    *newcomm = constants.comm_null;
    if (gate.phase == Phase::ended) return raise_route(route_unknown(comm), procedure);
    Communicator* parent = gate.phase == Phase::closed ? find_communicator(comm) : nullptr;
    if (parent)
        if (int code = progress_barrier(*parent); code != MPI_SUCCESS) return raise(parent, code);
    MPI_Comm made = constants.comm_null;
    {
        WaitScope waiting(procedure, MPI_ANY_SOURCE, MPI_ANY_TAG);
        if (int code = ask(&made); code != MPI_SUCCESS || made == constants.comm_null) return code;
    }
    MPI_Group local;
    if (int code = real.Comm_group(comm, &local); code != MPI_SUCCESS) return code;
    const int code = join_worlds({procedure, known_to_both, side, local, constants.group_null}, made);
    real.Group_free(&local);
    if (code == MPI_SUCCESS) *newcomm = made;
    return raise_on(comm, code);
}

bool is_root(MPI_Comm comm, int root) {
    int rank = MPI_UNDEFINED;
    if (comm != constants.comm_null) real.Comm_rank(comm, &rank);
    return rank == root;
}

/// Nothing is spawned that could not be protected: tells all ranks whether the root has the command for it, because they would wait for the
/// root in the library. Returns an error code.
int hear_whether_protected(const char* procedure, int root, MPI_Comm comm) {
    int found = !mpisec_program().empty(), size = 0;
    if (comm == constants.comm_null || real.Comm_size(comm, &size) != MPI_SUCCESS || root < 0 ||
        root >= size || gate.phase == Phase::ended)
        return MPI_SUCCESS;  // the library reports what is wrong
    Communicator* parent = gate.phase == Phase::closed ? find_communicator(comm) : nullptr;
    int code = MPI_SUCCESS;
    if (parent)  // who knows it goes on, also where the telling was attacked: all others do
        code = tell_learned(procedure, *parent, hand_down(*parent, root, &found, sizeof found)).code;
    else if (gate.phase != Phase::closed)  // all of them are on this node
        code = real.Bcast(&found, 1, constants.int32, root, comm);
    if (code != MPI_SUCCESS || found) return code;
    return refusal_code(procedure, "bin/mpisec is not beside MPIsec's libraries where its root runs");
}

}  // namespace

int Comm_spawn(const char* command, char** argv, int maxprocs, MPI_Info info, int root, MPI_Comm comm,
               MPI_Comm* intercomm, int* errcodes) {
    if (const int code = hear_whether_protected("MPI_Comm_spawn", root, comm); code != MPI_SUCCESS)
        return raise_on(comm, code);
    if (!is_root(comm, root) || !command)
        return connect("MPI_Comm_spawn", "MPI_Comm_spawn", Side::first, comm, intercomm, [&](MPI_Comm* made) {
            return real.Comm_spawn(command, argv, maxprocs, info, root, comm, made, errcodes);
        });
    SpawnCommand protected_one(command, argv, info);
    return connect("MPI_Comm_spawn", "MPI_Comm_spawn", Side::first, comm, intercomm, [&](MPI_Comm* made) {
        return real.Comm_spawn(protected_one.program(), protected_one.arguments(), maxprocs,
                               protected_one.info(), root, comm, made, errcodes);
    });
}

int Comm_spawn_multiple(int count, char** commands, char*** argvs, const int* maxprocs, const MPI_Info* infos,
                        int root, MPI_Comm comm, MPI_Comm* intercomm, int* errcodes) {
    if (const int code = hear_whether_protected("MPI_Comm_spawn_multiple", root, comm); code != MPI_SUCCESS)
        return raise_on(comm, code);
    const bool ours = is_root(comm, root) && count > 0 && commands;
    std::vector<SpawnCommand> each;
    std::vector<char*> programs;
    std::vector<char**> arguments;
    std::vector<MPI_Info> information;
    for (int i = 0; ours && i < count; ++i)
        each.emplace_back(commands[i], argvs ? argvs[i] : nullptr, infos[i]);
    for (SpawnCommand& one : each) {
        programs.push_back(one.program());
        arguments.push_back(one.arguments());
        information.push_back(one.info());
    }
    return connect(
        "MPI_Comm_spawn_multiple", "MPI_Comm_spawn", Side::first, comm, intercomm, [&](MPI_Comm* made) {
            return real.Comm_spawn_multiple(count, ours ? programs.data() : commands,
                                            ours ? arguments.data() : argvs, maxprocs,
                                            ours ? information.data() : infos, root, comm, made, errcodes);
        });
}

int Comm_accept(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
    return connect("MPI_Comm_accept", "a port", Side::first, comm, newcomm,
                   [&](MPI_Comm* made) { return real.Comm_accept(port, info, root, comm, made); });
}
int Comm_connect(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
    return connect("MPI_Comm_connect", "a port", Side::second, comm, newcomm,
                   [&](MPI_Comm* made) { return real.Comm_connect(port, info, root, comm, made); });
}
int Comm_join(int socket, MPI_Comm* newcomm) {
    return connect("MPI_Comm_join", "a socket", Side::either, constants.comm_self, newcomm,
                   [&](MPI_Comm* made) { return real.Comm_join(socket, made); });
}

int Comm_get_parent(MPI_Comm* parent) {
    const int code = real.Comm_get_parent(parent);
    if (code != MPI_SUCCESS || *parent == constants.comm_null || find_communicator(*parent)) return code;
    *parent = constants.comm_null;
    return refuse("MPI_Comm_get_parent", constants.comm_null);
}

int Publish_name(const char* service, MPI_Info info, const char* port) {
    return real.Publish_name(service ? hidden("service", service).c_str() : nullptr, info, port);
}
int Lookup_name(const char* service, MPI_Info info, char* port) {
    return real.Lookup_name(service ? hidden("service", service).c_str() : nullptr, info, port);
}
int Unpublish_name(const char* service, MPI_Info info, const char* port) {
    return real.Unpublish_name(service ? hidden("service", service).c_str() : nullptr, info, port);
}

}  // namespace mpisec::shim
