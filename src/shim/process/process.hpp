// The mutable state of the shim in one process: one object, `process`. Each layer and module has its members
// here and is the only one to change them. Beside the object there are only the thread-locals, each declared where it
// is used, and what the wrappers look up once (tests/unit/shim/check_state.py compares the library's symbols).
//
// Its life:
//
//   load           every member has its first value before any code of the library runs, so another library's
//                  constructor may call MPI. A FirstUse makes its object when it is first used.
//   first call     of any procedure of MPI: resolve_real() fills `real`, `constants`, `library` and the gate's range of
//                  code
//   MPI_Init       Starting (gate.cpp) moves the gate's phase; start() (calls/init.cpp) fills `state`, starts
//                  the watchdog and, if asked for, a thread for progress, and makes what calls need before they are
//                  protected
//   MPI_Finalize   shut_down() (calls/init.cpp), in its order: operations under way end, the watchdog is
//                  joined, the phase becomes `ended`; then request handles, workers, keys of peers, same-node
//                  records, the job secret, communicators, the node's memory and pooled buffers are given
//                  back. The members that say what to refuse stay, because the program may still make calls.
//   forked child   only the phase changes (gate.cpp), which ends the child at its next call of MPI
//   exit           nothing is destroyed: a destructor that calls MPI would, in a forked child that calls
//                  exit(), use connections that are its parent's, and in a program that leaves without
//                  MPI_Finalize, an MPI library that may be gone. Only workers are joined (process.cpp).
//
// The object is at a constant address, and the members that each message touches come first.
#pragma once

#include <link.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "coll/selection/message_rules.hpp"
#include "config/settings.hpp"
#include "engine/engine.hpp"
#include "shim/process/first_use.hpp"
#include "shim/process/mpi_library.hpp"
#include "shim/process/recursive_mutex.hpp"
#include "shim/process/system_calls.hpp"
#include "shim/process/world.hpp"
#include "transport/recently_sealed.hpp"

namespace mpisec::wire {
struct CallNotice;
}

namespace mpisec::shim {

/// Settings, the job, and what follows from them. From start() on.
struct State {
    config::Settings settings;
    coll::MessageRules messages;  ///< from MPISEC_TUNING's table
    World world;
    std::unique_ptr<engine::Engine> engine;  ///< made with the first large message
    std::atomic<bool> thread_multiple{false};
    std::atomic<bool> yield_while_waiting{false};  ///< a waiting rank gives its core to others: MPISEC_YIELD
    bool fault_tolerant = false;  ///< the job goes on when a process has died (p2p/failures.hpp)
    bool ready = false;           ///< this process has all that protection needs
    /// In MPI_Finalize, once the communicators that all ranks free in one order are freed.
    bool ending = false;
    int tag_upper_bound = 32767;
    bool timed = false;       ///< sealing and opening are timed: MPISEC_STATS, MPISEC_TRACE
    MPI_Comm private_self{};  ///< on which MPIsec sends to itself (probe.cpp)
    MPI_Request never{};      ///< a receive that nothing matches: testing it lets MPI make progress
};

/// See runtime/threads.hpp.
struct SealingLock {
    const char* owner = nullptr;            ///< mark of the thread that the lock is biased towards
    std::atomic<bool> owner_inside{false};  ///< written by that thread alone
    std::atomic<bool> bias_revoked{false};  ///< the owner must take the lock like any thread
    std::atomic<bool> bias_gone{false};     ///< and the owner has been seen outside since
    std::atomic<bool> locked{false};
    int granted = MPI_THREAD_SINGLE;  ///< by MPI_Init
};

/// The calls that sealed messages serve. `own`: messages of MPIsec's own, by which ranks learn what they must know of each
/// other: constructors of communicators, barriers before calls that wait inside the MPI library, MPI_Finalize.
enum class Traffic : std::uint8_t { point_to_point, partitioned, collective, one_sided, file, own };
inline constexpr std::size_t traffics = 6;

/// See runtime/stats.hpp.
struct Stats {
    enum Kind { seal_small, open_small, seal_large, open_large, seal_collective, open_collective, kinds };
    /// One thread at a time writes (under the Guard); with MPISEC_STATS_INTERVAL another thread reads.
    struct Row {
        std::atomic<std::uint64_t> messages{0}, bytes{0}, nanoseconds{0};
    };
    std::array<std::array<Row, kinds>, traffics> rows{};
    std::uint64_t startup_nanoseconds = 0;  ///< MPIsec's own part of MPI_Init
    std::uint64_t began = 0;                ///< steady clock's nanoseconds, when MPI_Init ended
    bool failure_reported = false;          ///< of writing MPISEC_STATS=json:PATH; once is enough
};

/// Unused buffers of the pool (runtime/pool.hpp), by size class, and their numbers.
struct FreeBuffers {
    struct Free {
        Free* next;
    };
    static constexpr std::size_t size_classes = 65;  ///< of any std::size_t
    Free* lists[size_classes]{};
    std::size_t kept[size_classes]{};
};

/// The memory that the program has attached by MPI_Buffer_attach, by MPI_Session_attach_buffer, or by MPI_Comm_attach_buffer to a
/// communicator that crosses nodes (p2p/buffered.cpp), as sizes only.
struct AttachedBuffer {
    std::size_t attached = 0;
    std::size_t used = 0;
    int automatic = 0;             ///< MPI_BUFFER_AUTOMATIC (MPI-4.1), so many times: as much as is needed
    void* address = nullptr;       ///< of a communicator's buffer: what detaching returns
    std::size_t generation = 0;    ///< of messages; a flush begins the next one
    std::size_t messages[2] = {};  ///< in the buffer: of the generations with even and with odd numbers
};

/// An end of a list that never gets a successor.
inline constexpr link_map nothing_follows{};

/// See runtime/device.hpp.
struct DeviceWatch {
    std::atomic<const link_map*> marker{&nothing_follows};  ///< has a successor once something was loaded
    std::atomic<bool> driver{false};                        ///< a CUDA driver was found
};

/// Procedures of the program's that handle errors (runtime/handlers.cpp); null from the first slot on that is unused.
struct HandlerFunctions {
    using Any = void();
    static constexpr std::size_t slots = 32;
    using OfOneKind = std::array<std::atomic<Any*>, slots>;
    std::mutex lock;  ///< for writing
    OfOneKind of_communicators{}, of_windows{}, of_files{};
};

struct Connection;

/// The authenticated connections by file descriptor (sockets/connections.hpp): pages that are made when they are first needed.
struct SocketTable {
    static constexpr std::size_t page_size = 1024;
    std::array<std::atomic<std::atomic<Connection*>*>, 1024> pages{};
};

// State of the modules, defined in their sources.
struct CollectiveContexts;
struct CommunicatorRegistry;
struct ConnectionCredentials;
struct ConnectionSettings;
struct DeviceMemory;
struct Duplications;
struct FaultTolerance;
struct IoFiles;
struct LargeBuffers;
struct LateFrees;
struct LoadedSettings;
struct LocalReductions;
struct MatchedMessages;
struct ProgressThread;
class NodePeers;
struct Notices;
struct OpenFiles;
struct OwnSession;
struct OperationsInUse;
struct PartitionedMessages;
struct PeerFacts;
struct PeerNumbers;
struct PeerReceiveState;
struct PeerSendState;
struct RefusedCalls;
struct RejectedMessages;
struct Realms;
struct Rosters;
struct RmaWindows;
struct SameNodeRecords;
struct Selections;
struct SentToSelf;
struct StatsWriter;
struct TagReserve;
struct Trace;
struct TypeCache;
struct TypeLayouts;
struct UserRequests;
struct WaitSlots;
struct Watchdog;
struct WatchedConnections;
struct Windows;
struct WorkList;

struct Process {
    // What each message touches.
    Gate gate;                                          ///< real.cpp, gate.cpp
    State state;                                        ///< calls/init.cpp
    SealingLock sealing_lock;                           ///< threads.cpp
    std::atomic<std::size_t> work_count{0};             ///< operation.cpp; operations on the work list
    std::atomic<bool> notices_untold{false};            ///< notices.cpp
    PeerSendState** peer_send_states = nullptr;         ///< peer_state.cpp; by number, null until first used
    PeerReceiveState** peer_receive_states = nullptr;   ///< the same
    PeerFacts* peer_facts = nullptr;                    ///< realms.hpp; of further realms, by number
    std::uint64_t clock_of_use = 0;                     ///< peer_state.cpp
    std::size_t ready_keys = 0;                         ///< the same
    std::atomic<std::uint64_t> registry_generation{1};  ///< communicator.cpp; communicators made and freed
    std::atomic<std::uint64_t> type_generation{1};      ///< datatype.cpp; types freed
    std::atomic<std::size_t> requests_in_use{0};        ///< requests.cpp
    DeviceWatch device_watch;                           ///< device.cpp; whether there is a CUDA driver
    Stats stats;                                        ///< stats.hpp
    FreeBuffers free_buffers;                           ///< pool.cpp
    Constants constants{};                              ///< constants.cpp

    // The MPI library below.
    Real real{};              ///< real.cpp
    void* library = nullptr;  ///< real.cpp; where symbols are looked up; null: in all objects behind the shim
    std::once_flag resolved;  ///< real.cpp

    // This process.
    FirstUse<PeerNumbers> peer_numbers;        ///< peer_state.cpp
    FirstUse<FaultTolerance> fault_tolerance;  ///< p2p/failures.cpp; the library's extensions
    FirstUse<Realms> realms;                   ///< p2p/realms.cpp; all but MPI_COMM_WORLD's
    std::once_flag fork_handlers;              ///< gate.cpp
    pid_t initialized_by = 0;                  ///< gate.cpp; the process that called MPI_Init
    int exit_status = 0;                       ///< early_exit.cpp; what the process exits with
    std::atomic<bool> world_begun{false};      ///< gate.cpp; MPI_Init was called
    /// Makes threads that start up or end at the same time take turns at changing what exists only once: settings,
    /// the crypto library, `ready`, the number of sessions, the phase. No thread waits for other processes while it holds
    /// this lock, except the one that ends protection. Taken before the Guard.
    RecursiveMutex life;
    RecursiveMutex guard;                     ///< state.cpp; taken in MPI_THREAD_MULTIPLE programs only
    FirstUse<LateFrees> late_frees;           ///< state.cpp; under the Guard
    std::atomic<bool> has_late_frees{false};  ///< the same
    FirstUse<WaitSlots> wait_slots;           ///< watchdog.cpp; of all threads that have waited
    void (*move_all)() = nullptr;  ///< operation.hpp: progress(), for start-ups after that of MPI_Init
    Watchdog* watchdog = nullptr;  ///< watchdog.cpp; from MPI_Init to MPI_Finalize
    Trace* trace = nullptr;        ///< trace.cpp; from MPI_Init on, with MPISEC_TRACE
    ProgressThread* progress_thread = nullptr;  ///< progress_thread.cpp; MPISEC_PROGRESS=thread
    StatsWriter* stats_writer = nullptr;        ///< stats_writer.cpp; MPISEC_STATS_INTERVAL
    HandlerFunctions handler_functions;         ///< handlers.cpp
    FirstUse<LargeBuffers> large_buffers;       ///< pool.cpp
    FirstUse<NodePeers> node_peers;             ///< from MPI_Init to MPI_Finalize
    FirstUse<DeviceMemory> device_memory;       ///< device.cpp; the driver, and what copies go through

    // Connections of the MPI library.
    FirstUse<ConnectionSettings> connection_settings;        ///< sockets/connections.cpp
    FirstUse<ConnectionCredentials> connection_credentials;  ///< the same
    std::atomic<bool> system_calls_found{false};             ///< sockets/interposed.cpp
    SystemCalls system_calls{};                              ///< the same
    std::atomic<bool> connections_begun{false};              ///< sockets/connections.cpp
    transport::RecentlySealed recently_sealed;               ///< sockets/handed_over.hpp
    std::atomic<int> connections_expecting{0};               ///< the same; expects_more()
    FirstUse<WatchedConnections> watched_connections;        ///< the same
    std::atomic<Connection*> closed_connections{nullptr};    ///< the same; which others may use
    std::atomic<int> unanswered{0};  ///< sockets/failed_connections.cpp; closed before the first word
    std::atomic<int> strangers{0};   ///< the same; refused
    SocketTable sockets;             ///< sockets/connections.cpp
    /// sockets/callers.cpp; whether the program has a sanitizer's runtime; -1: not looked for yet
    std::atomic<int> sanitized{-1};

    // One message.
    FirstUse<CommunicatorRegistry> communicators;  ///< communicator.cpp
    FirstUse<Rosters> rosters;                     ///< roster.cpp
    FirstUse<TypeCache> types;                     ///< datatype.cpp
    FirstUse<WorkList> work;                       ///< operation.cpp
    FirstUse<UserRequests> requests;               ///< requests.cpp
    FirstUse<Notices> notices;                     ///< notices.cpp
    /// Set by collective/call_comparison.cpp from the first communicator on. call_heard: a notice of a call has arrived from the
    /// sender with this world rank; waited_long: a thread has waited long.
    std::atomic<void (*)(std::int32_t, const wire::CallNotice&)> call_heard{nullptr};
    std::atomic<void (*)()> waited_long{nullptr};
    FirstUse<RejectedMessages> rejected_messages;  ///< rejected_messages.cpp
    FirstUse<RefusedCalls> refused_calls;          ///< unsupported.cpp
    FirstUse<SameNodeRecords> same_node_records;   ///< same_node.cpp; MPISEC_SAME_NODE=verify
    FirstUse<SentToSelf> sent_to_self;             ///< same_node_messages.cpp
    AttachedBuffer attached_buffer;                ///< buffered.cpp
    /// The same of all sessions, because MPI does not say which of them a communicator belongs to.
    AttachedBuffer session_buffers;
    std::array<int, 6> violation_codes{};  ///< violations.cpp

    FirstUse<PartitionedMessages> partitioned;  ///< partitioned/messages.cpp

    // Collectives.
    FirstUse<CollectiveContexts> collective_contexts;  ///< call_comparison.cpp
    FirstUse<Selections> selections;                   ///< collective_choice.cpp
    FirstUse<TagReserve> tag_reserve;                  ///< tag_reserve.cpp
    FirstUse<OperationsInUse> operations;              ///< reduction.cpp
    FirstUse<LocalReductions> local_reductions;        ///< local_reduction.cpp

    // One-sided communication across nodes.
    std::atomic<std::size_t> rma_window_count{0};  ///< rma/windows.cpp; windows that cross nodes
    FirstUse<TypeLayouts> type_layouts;            ///< layout.cpp
    FirstUse<RmaWindows> rma_windows;              ///< rma/windows.cpp

    // Files across nodes.
    std::atomic<std::size_t> io_file_count{0};  ///< io/files.cpp; files that cross nodes
    FirstUse<IoFiles> io_files;                 ///< io/files.cpp

    // Communicators and calls.
    FirstUse<LoadedSettings> loaded_settings;   ///< sessions/life.cpp
    FirstUse<OwnSession> own_session;           ///< the same
    std::atomic<int> open_sessions{0};          ///< session_calls.cpp; of the program
    std::atomic<bool> finalize_put_off{false};  ///< calls/init.cpp; until the last session has ended
    std::atomic<bool> world_is_over{false};     ///< sessions/life.cpp; a session has begun after MPI_Finalize
    std::atomic<bool> session_with_threads{false};  ///< the same; the library has granted MPI_THREAD_MULTIPLE
    FirstUse<Duplications> duplications;            ///< communicator_calls.cpp
    FirstUse<MatchedMessages> matched_messages;     ///< probe.cpp
    FirstUse<OpenFiles> files;                      ///< calls/files.cpp; inside a node
    FirstUse<Windows> windows;                      ///< calls/windows.cpp
};

/// Holds the object and does not destroy it.
union NeverDestroyed {
    Process process;
    constexpr NeverDestroyed() : process{} {}
    ~NeverDestroyed() {}
};
[[gnu::visibility("hidden")]] extern NeverDestroyed never_destroyed;
inline constexpr Process& process = never_destroyed.process;

}  // namespace mpisec::shim
