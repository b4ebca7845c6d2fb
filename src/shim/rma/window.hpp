// A window whose ranks are on several nodes. To the MPI library it is only a window of this process alone. The program
// holds the handle of that window, which also has the name, the attributes, the error handler and the info. Operations
// on another rank's memory travel in sealed messages and are carried out by the process that owns the memory, whichever
// MPI call that process is in (docs/protocol.md, "One-sided communication").
//
//   memory.hpp        what operations do to the memory; node_lock.hpp: its lock where ranks of a node share it
//   serving.cpp       the target: receives requests, does them in their order, answers
//   access.hpp        what an operation is to do
//   origin.cpp        the operations as their origin starts them
//   departures.cpp    what leaves for a target, in order
//   synchronization.cpp  fence, locks, flush, post-start-complete-wait
//   constructors.cpp  how all ranks make a window together
//   windows.cpp       which windows there are, freeing, and queries
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/node_memory.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/rma/lock_queue.hpp"
#include "shim/rma/memory.hpp"
#include "shim/rma/message.hpp"
#include "shim/rma/transfer.hpp"
#include "shim/runtime/pool.hpp"

namespace mpisec::shim {

class CollectivePlan;

}  // namespace mpisec::shim

namespace mpisec::shim::rma {

class Window;

/// The name that errors in a window's messages give as their call, because they can be found in any call.
inline constexpr const char* call_in_a_window = "one-sided communication";

/// A request that has arrived, until what it asks for is done.
struct Request {
    Header header;
    Layout layout;
    std::shared_ptr<const Buffer> message;  ///< the message it arrived in, perhaps with other requests
    const std::uint8_t* behind = nullptr;   ///< what follows the header in that message
    Buffer runs;                            ///< runs that arrived in a message of their own
    Buffer data;                            ///< data, likewise
    const std::uint8_t* payload = nullptr;
    bool in_place = false;  ///< the data is received directly into the window's memory
    std::unique_ptr<Operation> runs_coming, data_coming;
};

/// An answer, or another message that the window itself sends or receives.
struct UnderWay {
    std::unique_ptr<Operation> operation;
    Buffer buffer;
    bool from_memory = false;  ///< it is sent directly from the window's memory
};

/// What this process knows of another process that accesses its memory.
struct Origin {
    std::uint64_t sequence = 0;    ///< number of its next request
    std::deque<Request> requests;  ///< under way: the first waits for its data, the others wait for the first
    std::deque<UnderWay> answers;
    int error = MPI_SUCCESS;  ///< the first error since the last answer that carried one
    Held holds = Held::no;
    std::uint64_t completes = 0;  ///< MPI_Win_complete calls that MPI_Win_wait has not seen
};

/// A message that must wait until the requests that announce it are sent, or until fewer messages to the same rank are on their way.
struct Departure {
    std::shared_ptr<Transfer> transfer;
    const void* data;
    std::uint64_t bytes;
    int tag;
};

/// Requests to one target that have not been sent yet: short ones travel together, with the flush that ends them.
struct Batch {
    std::shared_ptr<Transfer> transfer;  ///< null when there are none
    std::size_t bytes = 0, room = 0;
    std::vector<Departure> bulk;   ///< messages to send after them
    std::uint8_t* last = nullptr;  ///< header of the last request, if a flush can go along with it
};
/// A batch with this many bulk messages is sent without waiting for more: one message announces them all.
inline constexpr std::size_t most_bulk_in_batch = 8;

/// The most messages to one rank that are on their way at once, in each direction of a window. MPI libraries cope with only few
/// messages that nobody receives yet (MPICH 5.0 over OFI's tcp;ofi_rxm hangs at 65 from one sender), and polling many costs time.
inline constexpr std::size_t most_on_their_way = 16;

/// Operations that fetch data and are under way in a window. Each has a receive posted; Intel MPI blocks in MPI_Irecv beyond some 2000.
inline constexpr std::size_t most_fetches = 1024;

/// What this process knows of another process whose memory it accesses.
struct Target {
    MPI_Aint size = 0, unit = 1;
    std::uint8_t* near = nullptr;  ///< its memory, which follows its lock; null: out of this process's reach
    std::uint64_t sequence = 0;    ///< number of the next request to it
    Batch batch;
    std::deque<std::shared_ptr<Transfer>> transfers;
    std::deque<std::shared_ptr<Transfer>> on_their_way;  ///< one entry for each message
    std::deque<Departure> waiting;
    /// A message of `waiting` is being started: while that waits for room, progress() must not start the next one before it.
    bool starting = false;
    bool outstanding = false;  ///< since the last flush, operations were started that get no answer
    Held held = Held::no;
    bool unchecked = false;  ///< MPI_MODE_NOCHECK: the target has granted no lock
    bool started = false;    ///< MPI_Win_start
};

/// A displacement unit as the program's procedure gives it. MPI_Win_create_c takes units that an int cannot show.
template <class Unit>
Unit unit_as(MPI_Aint unit) {
    return std::in_range<Unit>(unit) ? static_cast<Unit>(unit) : Unit{MPI_UNDEFINED};
}

/// What the other ranks must know of one rank's part of a window; the ranks exchange it when the window is made.
struct Part {
    std::int64_t size, unit;
    std::int32_t code;    ///< MPI error class
    std::int32_t shared;  ///< the part lies in memory that ranks of its node share
};

/// An operation as the program describes it, except for the buffers and the displacement at the target.
struct AccessShape {
    Kind kind{};
    bool accumulates = false;
    bool of_one_element = false;  ///< one element of a predefined type
    MPI_Op op{};
    MPI_Count origin_count = 0, result_count = 0, count = 0;
    MPI_Datatype origin_type{}, result_type{}, type{};
    std::uint64_t types_freed = 0;  ///< type_generation: once it changes, the handles may be of other types
    bool operator==(const AccessShape&) const = default;
};

/// What follows from a shape; kept because programs repeat shapes.
struct DescribedAccess {
    AccessShape shape;  ///< has no kind while nothing is described
    Header header;      ///< without displacement
    Layout layout;      ///< of the target's data; its memory is reused
    Arithmetic arithmetic;
    bool fetches = false;
    bool origin_is_one_run = false, result_is_one_run = false;
};

/// Receives and serves requests as long as the window lives; it is on the work list.
class Service final : public Operation {
  public:
    explicit Service(Window& window) : Operation(nullptr), window_(window) {}
    ~Service() override { leave_work_list(*this); }
    bool needs_progress() const override { return true; }

  private:
    void step() override;
    Window& window_;
};

struct FreeMemory {
    void operator()(void* base) const { std::free(base); }
};
using AllocatedMemory = std::unique_ptr<void, FreeMemory>;

/// Everything is called under the Guard, except for what waits.
class Window {
  public:
    Window(MPI_Win handle, MPI_Comm comm, const Communicator& known, WindowMemory memory,
           const std::vector<Part>& parts);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    const MPI_Win handle;
    const MPI_Comm comm;  ///< private to the window
    const int rank;
    const bool dynamic;
    int flavor = MPI_WIN_FLAVOR_CREATE, model = MPI_WIN_UNIFIED, unit = 1;  ///< attributes point to these
    WindowMemory memory;
    std::optional<fabric::SharedSegment> segment;  ///< memory that MPI_Win_allocate shared on this node
    AllocatedMemory allocated;                     ///< or else allocated
    std::vector<Target> targets;                   ///< by rank
    std::vector<Origin> origins;                   ///< likewise

    int size() const { return static_cast<int>(targets.size()); }
    Target& target(int of) { return targets[static_cast<std::size_t>(of)]; }
    Origin& origin(int of) { return origins[static_cast<std::size_t>(of)]; }

    // Epochs of this process.
    bool fence_open = false;        ///< set by an MPI_Win_fence that operations may follow
    bool operations_since = false;  ///< since that fence
    bool all_held = false;          ///< MPI_Win_lock_all
    std::vector<int> started;       ///< MPI_Win_start
    bool access_started = false;
    std::vector<int> exposed_to;  ///< MPI_Win_post
    bool exposed = false;
    std::uint64_t own_exposures = 0;  ///< of this process to itself, for which MPI_Win_start is yet to come
    /// Whether an epoch lets this process access the target's memory; holds(): whether a passive target epoch does.
    bool may_access(int rank_of_target) const;
    bool holds(int rank_of_target) const;

    // The target's side (serving.cpp).
    void serve();
    /// The lock of this process's own part.
    void ask_for_own_lock(Held kind);
    void give_back_own_lock(Held kind);
    bool own_lock_granted = false;
    /// From now on no message is trusted: tells the other ranks, and every call on the window ends in this error.
    void fail(int code);
    int failure() const { return failure_.load(std::memory_order_relaxed); }

    // The origin's side.
    DescribedAccess described;  ///< the operation that was started last
    /// Where to write a request of `bytes` bytes before calling add_request().
    std::uint8_t* room_for_request(int to, std::size_t bytes);
    /// Numbers that request, writes its header and returns the transfer that it travels in.
    std::shared_ptr<Transfer> add_request(int to, Header& header, std::size_t bytes);
    /// Sends the waiting requests to this target; send_batches(), called in every pass of the progress loop, those to all targets.
    void send_batch(int to);
    void send_batches();
    /// Messages are sent in the order of these calls, each as soon as few enough are on their way.
    void send_part(const std::shared_ptr<Transfer>& transfer, const void* data, std::uint64_t bytes, int to,
                   int tag);
    void start_waiting(int to);
    void start_all_waiting();
    /// Whether no message to this rank waits or is on its way.
    bool all_have_left(int to);
    /// Sends `part` after the waiting requests.
    void send_after_batch(int to, Departure part);
    std::size_t fetches = 0;  ///< under way, up to most_fetches
    void receive_answer(Transfer& transfer, void* room, std::uint64_t bytes, int from, int tag);
    /// Sends a request without data. If `answered`, the target answers with the first error of this process's operations.
    void send_control(int to, Kind kind, bool answered);
    /// Drops the completed transfers to the target; true when none is left. Errors are kept for take_error().
    bool settle(Target& target);
    /// Whether a call that has nothing to wait for should look for messages all the same: true once in a few microseconds.
    bool progress_is_due();
    int take_error();
    void note_error(int code) {
        if (error_ == MPI_SUCCESS) error_ = code;
    }

    /// Makes progress until `done()`, which is called under the Guard, is true or the window fails. Returns
    /// the failure's code.
    template <class Done>
    int wait(const char* call, Done done);
    /// Runs a collective of the window's ranks. It is abandoned when the window fails, because a rank that has met an integrity error
    /// takes no part in it; MPI may still use the plan's memory then. The caller must raise the error code.
    int run_together(std::unique_ptr<CollectivePlan> plan);

    /// Whether nothing that this process sends is on its way any more; advances what is.
    bool all_sent();
    bool closed() const { return closed_; }
    /// Ends the window's own messages. Unless the window has failed, all ranks have met, so nothing is on its way.
    void close();

  private:
    struct Slot {
        Buffer room;
        std::unique_ptr<Operation> receiving;
    };
    static constexpr std::size_t slots = 4;  ///< receives for requests that are always posted

    void post(Slot& slot);
    void take(Slot& slot);
    void check(int from, const Header& header);
    void discard(int from, const Header& header);
    void enter(int from, Request request);
    /// Whether messages between this process and the other one are compared with a record (p2p/same_node.hpp). The record is taken at
    /// another moment than MPI reads the data, so memory that others may change in between is then neither sent nor received in place.
    bool is_compared(int with) const;
    void expect_bulk(int from, Request& request);
    static bool prepare(Request& request);
    bool is_ready(int from, Request& request);
    bool has_come(int from, Request& request);
    void lose(int code);
    void drain(int from);
    void give_back_lock(int from, std::uint64_t sequence);
    void carry_out(int from, Request& request);
    void answer_data(int from, Request& request);
    void answer_status(int from, std::uint64_t sequence);
    void answer(int to, const void* data, std::uint64_t bytes, Buffer keep, int tag);
    bool settle_answers(Origin& to);
    void grant(const std::vector<int>& granted);
    void violation(int from, const char* detail);

    std::array<Slot, slots> ring_;
    LockQueue locks_;
    std::size_t next_ = 0;  ///< slot that receives the next request
    std::deque<UnderWay> discarded_;
    std::vector<int> busy_;      ///< origins with requests under way
    std::vector<int> answered_;  ///< ranks with answers under way
    std::vector<int> held_up_;   ///< targets with messages that wait until earlier ones have left
    std::vector<int> batched_;   ///< targets with requests that wait to be sent
    std::unique_ptr<Service> service_;
    std::chrono::steady_clock::time_point looked_{};  ///< when progress_is_due() was last true
    bool serving_ = false;
    bool closed_ = false;
    std::atomic<int> failure_ = MPI_SUCCESS;  ///< written under the Guard
    int error_ = MPI_SUCCESS;
};

/// Null for a window that does not cross nodes.
std::shared_ptr<Window> find(MPI_Win win);
/// The same without the cost of a copy; points to what find() copies, which stays until the window is freed.
const std::shared_ptr<Window>* look_up(MPI_Win win);
void remember(std::shared_ptr<Window> window);
void forget(const Window& window);
/// The library's window around no memory, of which only the handle, name, info, attributes and error handler are used: the library may
/// open memory that is in its own windows to the network.
int make_handle(MPI_Info info, MPI_Win* made);
/// Frees a window's private communicator.
void free_private(MPI_Comm comm);

// Windows that the program does not see, with MPI_WIN_NULL as their handle, for memory that MPIsec itself shares among
// ranks (src/shim/io). The caller must raise the error codes that these functions return.

/// `base`: `size` bytes that this process exposes to all other ranks, which may access them from now on until all of
/// them leave. All ranks of `parent` call this.
int make_hidden(const char* call, Communicator& parent, void* base, MPI_Aint size,
                std::shared_ptr<Window>& window);
/// Waits until all ranks have met: none accesses the window any more.
int leave_hidden(const char* call, Window& window);
/// `all_met`: leave_hidden() returned MPI_SUCCESS.
void free_hidden(Window& window, bool all_met);
/// Starts to add `*added` to the integer at the beginning of a rank's memory. `*before` holds the old value when the
/// transfer is complete (null: at once). What both point to must stay valid until then.
int start_fetch_and_add(const std::shared_ptr<Window>& window, int target, const std::int64_t* added,
                        std::int64_t* before, std::shared_ptr<Transfer>& transfer);

}  // namespace mpisec::shim::rma

#include "shim/rma/wait.hpp"
