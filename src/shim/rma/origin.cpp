// One-sided operations as their origin starts them: arguments are checked, the target's data is described,
// the origin's sent along. Operations on this process's own memory are done at once.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "shim/collective/reduction.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/entry.hpp"
#include "shim/rma/layout.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim::rma {

void Window::send_part(Transfer& transfer, const void* data, std::uint64_t bytes, int to, int tag) {
    transfer.parts.push_back(begin_send({SendSpec::Mode::standard, data, static_cast<MPI_Count>(bytes),
                                         constants.byte, to, tag, comm, "one-sided communication"}));
}

void Window::receive_part(Transfer& transfer, void* room, std::uint64_t bytes, int from, int tag) {
    transfer.parts.push_back(begin_receive(
        {room, static_cast<MPI_Count>(bytes), constants.byte, from, tag, comm, "one-sided communication"}));
}

void Window::send_request(int to, Header& header, Transfer& transfer, std::size_t bytes) {
    header.sequence = target(to).sequence++;
    write(header, transfer.message.data());
    send_part(transfer, transfer.message.data(), bytes, to, request_tag);
}

namespace {

/// A one-sided operation, as the program's arguments describe it.
struct Access {
    Kind kind{};
    Elements origin{};  ///< read, or written by a get
    Elements result{};  ///< what is fetched, where that goes elsewhere
    const void* compare = nullptr;
    int target = 0;
    MPI_Aint displacement = 0;
    MPI_Count count = 0;
    MPI_Datatype type{};
    MPI_Op op{};
    bool accumulates = false;
    bool for_request = false;
};

/// What follows from the arguments.
struct Prepared {
    Header header;
    Layout layout;
    Elements result;  ///< where what is fetched goes
    bool fetches = false;
};

std::uint64_t bytes_of(const Elements& elements, int& error) {
    TypeFacts facts;
    if (elements.count < 0) error = MPI_ERR_COUNT;
    if (!type_facts(elements.type, facts)) error = MPI_ERR_TYPE;
    return error == MPI_SUCCESS ? static_cast<std::uint64_t>(elements.count) * facts.size : 0;
}

bool is_no_op(const Access& access) {
    constexpr std::size_t index_of_no_op = 13;
    return access.accumulates && access.op == constants.predefined_operations[index_of_no_op];
}

/// An MPI error class.
int check_accumulation(const Access& access, const TypeLayout& described, Header& header) {
    constexpr std::size_t index_of_replace = 12;
    if (!is_predefined(access.op)) return MPI_ERR_OP;
    if (header.bytes == 0) return MPI_SUCCESS;  // MPI libraries let any operation on nothing pass
    const MPI_Datatype element = described.element;
    if (element == constants.datatype_null) return MPI_ERR_TYPE;
    header.element = shared_handle(element);
    header.op = shared_handle_of_op(access.op);
    if (type_of_handle(header.element) == constants.datatype_null) return MPI_ERR_TYPE;
    if (is_no_op(access) || access.op == constants.predefined_operations[index_of_replace])
        return MPI_SUCCESS;
    return check_operation(element, access.op, true) == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_OP;
}

/// Arguments but for the target's data: an MPI error class.
int check_arguments(Window& window, const Access& access) {
    if (access.target < 0 || access.target >= window.size()) return MPI_ERR_RANK;
    if (access.count < 0) return MPI_ERR_COUNT;
    if (!window.may_access(access.target)) return MPI_ERR_RMA_SYNC;
    if (access.for_request && !window.holds(access.target)) return MPI_ERR_RMA_SYNC;
    return !window.dynamic && access.displacement < 0 ? MPI_ERR_DISP : MPI_SUCCESS;
}

/// Describes the target's data and holds it against the window: an MPI error class.
int prepare(Window& window, const Access& access, Prepared& prepared) {
    if (int error = check_arguments(window, access); error != MPI_SUCCESS) return error;
    const auto described = layout_of(access.type);
    if (!described) return MPI_ERR_TYPE;
    prepared.layout = elements_of(*described, access.count);
    const Wide bytes = prepared.layout.bytes();
    if (bytes > (Wide{1} << 62)) return MPI_ERR_COUNT;
    Header& header = prepared.header;
    header.kind = access.kind;
    header.displacement = access.displacement;
    header.count = prepared.layout.count;
    header.extent = prepared.layout.extent;
    header.runs = static_cast<std::uint32_t>(prepared.layout.runs.size());
    header.bytes = static_cast<std::uint64_t>(bytes);
    if (access.accumulates)
        if (int error = check_accumulation(access, *described, header); error != MPI_SUCCESS) return error;
    prepared.fetches = access.kind != Kind::put && access.kind != Kind::accumulate;
    prepared.result = access.kind == Kind::get ? access.origin : access.result;
    int error = MPI_SUCCESS;
    if (prepared.fetches && bytes_of(prepared.result, error) != header.bytes && error == MPI_SUCCESS)
        error = MPI_ERR_TRUNCATE;
    if (access.kind != Kind::get && !is_no_op(access) && error == MPI_SUCCESS &&
        bytes_of(access.origin, error) != header.bytes && error == MPI_SUCCESS)
        error = MPI_ERR_TRUNCATE;
    const Target& target = window.target(access.target);
    if (error == MPI_SUCCESS && !window.dynamic && header.bytes > 0 &&
        !fits(access.displacement, target.unit, target.size, prepared.layout))
        error = MPI_ERR_RMA_RANGE;
    return error;
}

/// The origin's data as it travels: `bytes` bytes. An MPI error code.
int copy_payload(const Access& access, std::uint64_t bytes, std::uint8_t* to) {
    if (access.kind == Kind::compare_and_swap) {
        std::memcpy(to, access.compare, bytes / 2);
        std::memcpy(to + bytes / 2, access.origin.buf, bytes / 2);
        return MPI_SUCCESS;
    }
    TypeFacts facts;
    type_facts(access.origin.type, facts);
    if (!facts.contiguous) return pack(access.origin.buf, access.origin.count, access.origin.type, facts, to);
    if (bytes > 0) std::memcpy(to, access.origin.buf, bytes);
    return MPI_SUCCESS;
}

/// What needs no exclusion from others that do the same: the others are done by the target alone.
bool is_plain(Kind kind) {
    return kind == Kind::put || kind == Kind::get;
}

/// In memory that this process can reach: its own, or that of a rank of its node.
int access_memory(const WindowMemory& memory, const Access& access, Prepared& prepared) {
    const Header& header = prepared.header;
    TypeFacts of_origin;
    type_facts(access.origin.type, of_origin);
    if (is_plain(access.kind) && of_origin.contiguous) {
        const auto [at, inside] = memory.locate(header.displacement, prepared.layout);
        auto* mine = static_cast<std::uint8_t*>(access.origin.buf);
        if (!inside) return MPI_ERR_RMA_RANGE;
        access.kind == Kind::put ? prepared.layout.scatter(mine, at) : prepared.layout.gather(at, mine);
        return MPI_SUCCESS;
    }
    const std::uint64_t payload = payload_of(header);
    Buffer data(std::max<std::uint64_t>(payload, 1)), fetched;
    if (int code = copy_payload(access, payload, data.data()); code != MPI_SUCCESS) return code;
    if (prepared.fetches) fetched = Buffer(header.bytes);
    if (int code = memory.perform(header, prepared.layout, data.data(), fetched.data());
        code != MPI_SUCCESS || !prepared.fetches)
        return code;
    const Elements& result = prepared.result;
    TypeFacts facts;
    type_facts(result.type, facts);
    if (!facts.contiguous)
        return unpack(fetched.data(), header.bytes, result.buf, result.count, result.type, facts);
    std::memcpy(result.buf, fetched.data(), header.bytes);
    return MPI_SUCCESS;
}

/// Data that does not fit behind the header: sent from the program's memory where it is one run.
int send_bulk(Window& window, const Access& access, std::uint64_t bytes, Transfer& transfer) {
    TypeFacts facts;
    type_facts(access.origin.type, facts);
    const void* data = access.origin.buf;
    if (!facts.contiguous) {
        transfer.bulk = Buffer(bytes);
        if (int code = copy_payload(access, bytes, transfer.bulk.data()); code != MPI_SUCCESS) return code;
        data = transfer.bulk.data();
    }
    window.send_part(transfer, data, bytes, access.target, bulk_tag);
    return MPI_SUCCESS;
}

int access_other(Window& window, const Access& access, Prepared& prepared, Transfer& transfer) {
    Header& header = prepared.header;
    const std::uint64_t runs = std::uint64_t{header.runs} * run_bytes, payload = payload_of(header);
    header.bulk_runs = header_bytes + runs > most_inline;
    header.bulk_data = header_bytes + (header.bulk_runs ? 0 : runs) + payload > most_inline;
    const std::size_t with_runs = header_bytes + (header.bulk_runs ? 0 : runs);
    const std::size_t bytes = with_runs + (header.bulk_data ? 0 : payload);
    transfer.message = Buffer(bytes + (header.bulk_runs ? runs : 0));
    std::uint8_t* message = transfer.message.data();
    std::uint8_t* where_runs = message + (header.bulk_runs ? bytes : header_bytes);
    write(prepared.layout.runs, where_runs);
    if (!header.bulk_data)
        if (int code = copy_payload(access, payload, message + with_runs); code != MPI_SUCCESS) return code;
    window.send_request(access.target, header, transfer, bytes);
    if (header.bulk_runs) window.send_part(transfer, where_runs, runs, access.target, bulk_tag);
    if (header.bulk_data)
        if (int code = send_bulk(window, access, payload, transfer); code != MPI_SUCCESS) return code;
    if (prepared.fetches) {
        transfer.expect(prepared.result, header.bytes);
        window.receive_part(transfer, transfer.room(), header.bytes, access.target, answer_tag);
    }
    return MPI_SUCCESS;
}

/// A request of the program for one operation.
class AccessRequest final : public Operation {
  public:
    AccessRequest(std::shared_ptr<Window> window, std::shared_ptr<Transfer> transfer)
        : Operation(nullptr), window_(std::move(window)), transfer_(std::move(transfer)) {}
    ~AccessRequest() override { leave_work_list(*this); }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return {"a one-sided operation", MPI_ANY_SOURCE, MPI_ANY_TAG}; }

  private:
    void step() override {
        int code = window_->failure();
        if (code == MPI_SUCCESS && !transfer_->advance()) return;
        if (code == MPI_SUCCESS) code = transfer_->error();
        finish(raise_on_window(window_->handle, code), code != MPI_SUCCESS);
    }
    std::shared_ptr<Window> window_;
    std::shared_ptr<Transfer> transfer_;
};

void give(MPI_Request* request, std::unique_ptr<Operation> operation) {
    enlist(*operation);
    *request = give_request(std::move(operation));
}

/// Starts it. The transfer is what is under way afterwards.
int begin(Window& window, const Access& access, const std::shared_ptr<Transfer>& transfer) {
    Prepared prepared;
    int code = prepare(window, access, prepared);
    if (code != MPI_SUCCESS) return code;
    window.operations_since = true;
    Target& target = window.target(access.target);
    if (prepared.header.bytes > 0 && access.target == window.rank) {
        code = access_memory(window.memory, access, prepared);
    } else if (prepared.header.bytes > 0 && target.near && is_plain(access.kind)) {
        code = access_memory({target.near, target.size, target.unit}, access, prepared);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    } else if (prepared.header.bytes > 0) {
        window.settle(target);
        code = access_other(window, access, prepared, *transfer);
        target.outstanding |= !prepared.fetches;  // an answer says itself that the target has done it
        target.transfers.push_back(transfer);
    }
    return code;
}

/// `request`: of the R-forms.
int start(const Access& access, MPI_Win win, MPI_Request* request = nullptr) {
    const std::shared_ptr<Window> window = find(win);
    Guard guard;
    if (window->failure() != MPI_SUCCESS) return raise_on_window(win, window->failure());
    if (access.target == MPI_PROC_NULL) {
        if (request) give(request, std::make_unique<DoneOperation>(nullptr));
        return MPI_SUCCESS;
    }
    auto transfer = std::make_shared<Transfer>();
    if (int code = begin(*window, access, transfer); code != MPI_SUCCESS) return raise_on_window(win, code);
    if (request) give(request, std::make_unique<AccessRequest>(window, std::move(transfer)));
    return MPI_SUCCESS;
}

Elements elements(const void* buf, MPI_Count count, MPI_Datatype type) {
    return {const_cast<void*>(buf), count, type};
}

Access put(const Elements& origin, int target, MPI_Aint disp, MPI_Count count, MPI_Datatype type) {
    return {.kind = Kind::put,
            .origin = origin,
            .target = target,
            .displacement = disp,
            .count = count,
            .type = type};
}

}  // namespace

int Put(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
        MPI_Count count, MPI_Datatype type, MPI_Win win) {
    return start(put(elements(origin, origin_count, origin_type), target, disp, count, type), win);
}

int Rput(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
         MPI_Count count, MPI_Datatype type, MPI_Win win, MPI_Request* request) {
    Access access = put(elements(origin, origin_count, origin_type), target, disp, count, type);
    access.for_request = true;
    return start(access, win, request);
}

int Get(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
        MPI_Count count, MPI_Datatype type, MPI_Win win) {
    Access access = put(elements(origin, origin_count, origin_type), target, disp, count, type);
    access.kind = Kind::get;
    return start(access, win);
}

int Rget(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
         MPI_Count count, MPI_Datatype type, MPI_Win win, MPI_Request* request) {
    Access access = put(elements(origin, origin_count, origin_type), target, disp, count, type);
    access.kind = Kind::get;
    access.for_request = true;
    return start(access, win, request);
}

namespace {

Access accumulation(const Elements& origin, int target, MPI_Aint disp, MPI_Count count, MPI_Datatype type,
                    MPI_Op op) {
    Access access = put(origin, target, disp, count, type);
    access.kind = Kind::accumulate;
    access.op = op;
    access.accumulates = true;
    return access;
}

Access fetching(Access access, const Elements& result) {
    access.kind = Kind::get_accumulate;
    access.result = result;
    return access;
}

}  // namespace

int Accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
               MPI_Aint disp, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win) {
    return start(accumulation(elements(origin, origin_count, origin_type), target, disp, count, type, op),
                 win);
}

int Raccumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                MPI_Aint disp, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win,
                MPI_Request* request) {
    Access access = accumulation(elements(origin, origin_count, origin_type), target, disp, count, type, op);
    access.for_request = true;
    return start(access, win, request);
}

int Get_accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, void* result,
                   MPI_Count result_count, MPI_Datatype result_type, int target, MPI_Aint disp,
                   MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win) {
    const Access access =
        accumulation(elements(origin, origin_count, origin_type), target, disp, count, type, op);
    return start(fetching(access, {result, result_count, result_type}), win);
}

int Rget_accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, void* result,
                    MPI_Count result_count, MPI_Datatype result_type, int target, MPI_Aint disp,
                    MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win, MPI_Request* request) {
    Access access = accumulation(elements(origin, origin_count, origin_type), target, disp, count, type, op);
    access.for_request = true;
    return start(fetching(access, {result, result_count, result_type}), win, request);
}

int Fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint disp, MPI_Op op,
                 MPI_Win win) {
    const Access access = accumulation(elements(origin, 1, type), target, disp, 1, type, op);
    return start(fetching(access, {result, 1, type}), win);
}

int Compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type, int target,
                     MPI_Aint disp, MPI_Win win) {
    Access access = put(elements(origin, 1, type), target, disp, 1, type);
    access.kind = Kind::compare_and_swap;
    access.compare = compare;
    access.result = {result, 1, type};
    return start(access, win);
}

int start_fetch_and_add(const std::shared_ptr<Window>& window, int target, const std::int64_t* added,
                        std::int64_t* before, std::shared_ptr<Transfer>& transfer) {
    Guard guard;
    if (window->failure() != MPI_SUCCESS) return window->failure();
    transfer = std::make_shared<Transfer>();
    const Access access =
        accumulation(elements(added, 1, constants.int64), target, 0, 1, constants.int64, constants.sum);
    return begin(*window, fetching(access, {before, 1, constants.int64}), transfer);
}

}  // namespace mpisec::shim::rma
