// One-sided operations as their origin starts them: the arguments are checked, the target's data is described, and the
// origin's data is sent along. Operations on this process's own memory are done at once.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "shim/collective/reduction.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/staged.hpp"
#include "shim/p2p/type_contents.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/entry.hpp"
#include "shim/rma/layout.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim::rma {
namespace {

void let_go_of_sent(std::deque<std::shared_ptr<Transfer>>& on_their_way) {
    while (!on_their_way.empty() && on_their_way.front()->sent()) on_their_way.pop_front();
}

}  // namespace

bool Window::all_have_left(int to) {
    Target& other = target(to);
    let_go_of_sent(other.on_their_way);
    return !other.batch.transfer && other.waiting.empty() && other.on_their_way.empty();
}

void Window::send_part(const std::shared_ptr<Transfer>& transfer, const void* data, std::uint64_t bytes,
                       int to, int tag) {
    Target& other = target(to);
    ++transfer->unstarted;
    if (other.waiting.empty()) held_up_.push_back(to);
    other.waiting.push_back({transfer, data, bytes, tag});
    start_waiting(to);
    if (other.waiting.empty()) std::erase(held_up_, to);
}

void Window::start_waiting(int to) {
    Target& other = target(to);
    auto& on_their_way = other.on_their_way;
    while (!other.waiting.empty() && !other.starting) {
        let_go_of_sent(on_their_way);
        if (on_their_way.size() >= most_on_their_way) return;
        const Departure next = std::move(other.waiting.front());
        other.waiting.pop_front();
        --next.transfer->unstarted;
        other.starting = true;
        next.transfer->sends.push_back(
            begin_send({SendSpec::Mode::standard, next.data, static_cast<MPI_Count>(next.bytes),
                        constants.byte, to, next.tag, comm, call_in_a_window}));
        other.starting = false;
        on_their_way.push_back(next.transfer);
    }
}

void Window::start_all_waiting() {
    if (held_up_.empty()) return;
    const auto held_up = held_up_;  // starting a message may make progress and come here again
    for (int to : held_up) start_waiting(to);
    std::erase_if(held_up_, [&](int to) { return target(to).waiting.empty(); });
}

void Window::receive_answer(Transfer& transfer, void* room, std::uint64_t bytes, int from, int tag) {
    transfer.answer = begin_receive({room, static_cast<MPI_Count>(bytes), constants.byte, from, tag, comm,
                                     call_in_a_window, nullptr, true});
}

std::uint8_t* Window::room_for_request(int to, std::size_t bytes) {
    Batch& batch = target(to).batch;
    if (batch.transfer && batch.bytes + padded(bytes) > batch.room) send_batch(to);
    if (!batch.transfer) {
        batch.transfer = std::make_shared<Transfer>();
        batch.transfer->unsent = true;
        batch.room = std::max(batch_bytes, padded(bytes));
        batch.transfer->message = Buffer(batch.room);
        target(to).transfers.push_back(batch.transfer);
        batched_.push_back(to);
    }
    return batch.transfer->message.data() + batch.bytes;
}

std::shared_ptr<Transfer> Window::add_request(int to, Header& header, std::size_t bytes) {
    Batch& batch = target(to).batch;
    std::uint8_t* request = batch.transfer->message.data() + batch.bytes;
    header.sequence = target(to).sequence++;
    write(header, request);
    std::memset(request + bytes, 0, padded(bytes) - bytes);
    batch.bytes += padded(bytes);
    batch.last = may_end(header.kind) ? request : nullptr;
    return batch.transfer;
}

void Window::send_after_batch(int to, Departure part) {
    ++part.transfer->unstarted;
    target(to).batch.bulk.push_back(std::move(part));
}

void Window::send_batch(int to) {
    const Batch batch = std::exchange(target(to).batch, {});
    if (!batch.transfer) return;
    std::erase(batched_, to);
    batch.transfer->unsent = false;
    if (batch.bytes > 0)
        send_part(batch.transfer, batch.transfer->message.data(), batch.bytes, to, request_tag);
    for (const Departure& part : batch.bulk) {
        --part.transfer->unstarted;
        send_part(part.transfer, part.data, part.bytes, to, part.tag);
    }
}

void Window::send_batches() {
    while (!batched_.empty()) send_batch(batched_.back());
}

namespace {

/// A one-sided operation, as the program's arguments describe it.
struct Access {
    Kind kind{};
    Elements origin{};  ///< read, or written by a get
    Elements result{};  ///< where fetched data goes, if not to `origin`
    const void* compare = nullptr;
    int target = 0;
    MPI_Aint displacement = 0;
    MPI_Count count = 0;
    MPI_Datatype type{};
    MPI_Op op{};
    bool accumulates = false;
    bool of_one_element = false;  ///< one element of a predefined type
    bool for_request = false;
};

AccessShape shape_of(const Access& access) {
    return {.kind = access.kind,
            .accumulates = access.accumulates,
            .of_one_element = access.of_one_element,
            .op = access.op,
            .origin_count = access.origin.count,
            .result_count = access.result.count,
            .count = access.count,
            .origin_type = access.origin.type,
            .result_type = access.result.type,
            .type = access.type,
            .types_freed = type_generation.load(std::memory_order_relaxed)};
}

/// Where the fetched data goes.
const Elements& result_of(const Access& access) {
    return access.kind == Kind::get ? access.origin : access.result;
}

std::uint64_t bytes_of(const Elements& elements, int& error) {
    TypeFacts facts;
    if (elements.count < 0) error = MPI_ERR_COUNT;
    if (!type_facts(elements.type, facts)) error = MPI_ERR_TYPE;
    return error == MPI_SUCCESS ? static_cast<std::uint64_t>(elements.count) * facts.size : 0;
}

bool is_no_op(const Access& access) {
    return access.accumulates && access.op == constants.no_op;
}

/// Returns an MPI error class.
int describe_arithmetic(const Access& access, const TypeLayout& type, DescribedAccess& described) {
    Header& header = described.header;
    if (!is_predefined(access.op)) return MPI_ERR_OP;
    if (header.bytes == 0) return MPI_SUCCESS;  // MPI libraries accept any operation on no data
    if (type.element == constants.datatype_null) return MPI_ERR_TYPE;
    header.element = shared_handle(type.element);
    header.op = shared_handle_of_op(access.op);
    if (TypeFacts facts; !type_facts(type.element, facts) || header.bytes % facts.size != 0)
        return MPI_ERR_TYPE;
    described.arithmetic = arithmetic_of(header);
    return described.arithmetic.error;
}

/// Checks the arguments, except for the target's data; returns an MPI error class.
int check_arguments(Window& window, const Access& access) {
    if (access.target < 0 || access.target >= window.size()) return MPI_ERR_RANK;
    if (access.count < 0) return MPI_ERR_COUNT;
    if (!window.may_access(access.target)) return MPI_ERR_RMA_SYNC;
    if (access.for_request && !window.holds(access.target)) return MPI_ERR_RMA_SYNC;
    return !window.dynamic && access.displacement < 0 ? MPI_ERR_DISP : MPI_SUCCESS;
}

/// Describes what follows from the arguments, except for the buffers and the displacement; returns an MPI error class.
int describe(const Access& access, DescribedAccess& described) {
    const auto type = layout_of(access.type);
    if (!type) return MPI_ERR_TYPE;
    if (access.of_one_element &&
        (type->element == constants.datatype_null || !is_predefined_type(access.type)))
        return MPI_ERR_TYPE;
    describe_elements(*type, access.count, described.layout);
    Wide bytes = described.layout.bytes();
    if (bytes > (Wide{1} << 62)) return MPI_ERR_COUNT;
    // As in messages, what is sent may be shorter than the room for it (MPI standard section 12.3).
    if (access.kind == Kind::put || access.kind == Kind::accumulate) {
        int error = MPI_SUCCESS;
        const Wide given = bytes_of(access.origin, error);
        if (error != MPI_SUCCESS) return error;
        if (given > bytes) return MPI_ERR_TRUNCATE;
        if (given < bytes) error = shorten(described.layout, static_cast<std::uint64_t>(given));
        if (error != MPI_SUCCESS) return error;
        bytes = given;
    }
    described.header = {};
    described.arithmetic = {};
    Header& header = described.header;
    header.kind = access.kind;
    header.count = described.layout.count;
    header.extent = described.layout.extent;
    header.runs = static_cast<std::uint32_t>(described.layout.runs.size());
    header.bytes = static_cast<std::uint64_t>(bytes);
    if (access.accumulates)
        if (int error = describe_arithmetic(access, *type, described); error != MPI_SUCCESS) return error;
    described.fetches = access.kind != Kind::put && access.kind != Kind::accumulate;
    const Elements& result = result_of(access);
    int error = MPI_SUCCESS;
    if (described.fetches && bytes_of(result, error) < header.bytes && error == MPI_SUCCESS)
        error = MPI_ERR_TRUNCATE;
    if (access.kind != Kind::get && !is_no_op(access) && error == MPI_SUCCESS &&
        bytes_of(access.origin, error) != header.bytes && error == MPI_SUCCESS)
        error = MPI_ERR_TRUNCATE;
    TypeFacts facts;
    described.origin_is_one_run = type_facts(access.origin.type, facts) && facts.contiguous;
    described.result_is_one_run = described.fetches && type_facts(result.type, facts) && facts.contiguous;
    return error;
}

/// Describes the operation in window.described and checks it against the window; returns an MPI error class.
int prepare(Window& window, const Access& access) {
    if (int error = check_arguments(window, access); error != MPI_SUCCESS) return error;
    DescribedAccess& described = window.described;
    if (const AccessShape shape = shape_of(access); described.shape != shape) {
        described.shape = {};
        if (int error = describe(access, described); error != MPI_SUCCESS) return error;
        described.shape = shape;
        // Describing may itself free types, which are not the program's.
        described.shape.types_freed = type_generation.load(std::memory_order_relaxed);
    }
    const Target& target = window.target(access.target);
    const bool inside = window.dynamic || described.header.bytes == 0 ||
                        fits(access.displacement, target.unit, target.size, described.layout);
    return inside ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
}

/// Writes the origin's data as it travels: `bytes` bytes, none where the origin only fetches. Returns an MPI error code.
int copy_payload(const Access& access, std::uint64_t bytes, std::uint8_t* to) {
    if (bytes == 0) return MPI_SUCCESS;
    if (access.kind == Kind::compare_and_swap) {
        const bool good = copy_from_either(to, access.compare, bytes / 2) &&
                          copy_from_either(to + bytes / 2, access.origin.buf, bytes / 2);
        return good ? MPI_SUCCESS : MPI_ERR_OTHER;
    }
    TypeFacts facts;
    buffer_facts(access.origin.buf, access.origin.type, facts);
    if (!facts.contiguous) return pack(access.origin.buf, access.origin.count, access.origin.type, facts, to);
    std::memcpy(to, access.origin.buf, bytes);
    return MPI_SUCCESS;
}

bool in_device(const Elements& elements) {
    return is_in_device(elements.buf, elements.count, elements.type);
}

/// Carries out an operation in memory that this process can reach: its own, or that of a rank of its node.
int access_memory(const WindowMemory& memory, const Access& access, const DescribedAccess& described,
                  const Header& header) {
    const Elements &origin = access.origin, &result = result_of(access);
    Buffer packed, fetched;
    auto* data = static_cast<std::uint8_t*>(origin.buf);
    const std::uint64_t payload = payload_of(header);
    const bool device = device_is_possible();
    const bool origin_in_place =
        described.origin_is_one_run && !access.compare && !(device && in_device(origin));
    if (payload > 0 && !origin_in_place) {
        packed = Buffer(payload);
        data = packed.data();
        if (int code = copy_payload(access, payload, data); code != MPI_SUCCESS) return code;
    }
    auto* to = described.fetches ? static_cast<std::uint8_t*>(result.buf) : nullptr;
    if (described.fetches && (!described.result_is_one_run || (device && in_device(result)))) {
        fetched = Buffer(header.bytes);
        to = fetched.data();
    }
    const int code = memory.perform(header, described.layout, described.arithmetic, data, to);
    if (code != MPI_SUCCESS || !fetched) return code;
    TypeFacts facts;
    buffer_facts(result.buf, result.type, facts);
    return unpack(to, header.bytes, result.buf, result.count, result.type, facts);
}

/// Finds data that does not fit behind the header, as one run: in the program's memory where it is one run of the host's memory, else
/// in a packed copy. From a GPU's memory all is copied before the target hears of the operation, so that a failure of the driver is an
/// error of this call alone.
int bulk_data(const Access& access, std::uint64_t bytes, Transfer& transfer, const void*& data) {
    TypeFacts facts;
    buffer_facts(access.origin.buf, access.origin.type, facts);
    data = access.origin.buf;
    if (facts.contiguous) return MPI_SUCCESS;
    transfer.bulk = Buffer(bytes);
    data = transfer.bulk.data();
    return copy_payload(access, bytes, transfer.bulk.data());
}

/// Longer bulk data is sent at once, without waiting for further requests.
constexpr std::uint64_t longest_in_batch = 128 * 1024;

/// `transfer`: set to the transfer that is complete when the operation is.
int access_other(Window& window, const Access& access, Header& header, std::shared_ptr<Transfer>& transfer) {
    const DescribedAccess& described = window.described;
    const bool fetches = described.fetches;
    const int to = access.target;
    const std::uint64_t runs = std::uint64_t{header.runs} * run_bytes, payload = payload_of(header);
    header.bulk_runs = header_bytes + runs > most_inline;
    const std::size_t with_runs = header_bytes + (header.bulk_runs ? 0 : runs);
    header.bulk_data = with_runs + payload > most_inline &&
                       (with_runs + payload > most_inline_alone || !window.all_have_left(to));
    const std::size_t bytes = with_runs + (header.bulk_data ? 0 : payload);
    std::shared_ptr<Transfer> apart;  // for what does not travel in the request's message
    if (header.bulk_runs || header.bulk_data || fetches) apart = std::make_shared<Transfer>();
    const void* data = nullptr;
    if (header.bulk_data)
        if (int code = bulk_data(access, payload, *apart, data); code != MPI_SUCCESS) return code;
    std::uint8_t* request = window.room_for_request(to, bytes);
    if (!header.bulk_runs) write(described.layout.runs, request + header_bytes);
    if (!header.bulk_data)
        if (int code = copy_payload(access, payload, request + with_runs); code != MPI_SUCCESS) return code;
    transfer = window.add_request(to, header, bytes);
    if (!apart) return MPI_SUCCESS;
    if (header.bulk_runs) {
        apart->runs = Buffer(runs);
        write(described.layout.runs, apart->runs.data());
        window.send_after_batch(to, {apart, apart->runs.data(), runs, tag_of(Piece::runs, header.sequence)});
    }
    if (header.bulk_data)
        window.send_after_batch(to, {apart, data, payload, tag_of(Piece::data, header.sequence)});
    // Long messages do not wait for more requests: the network can already carry them.
    if (payload > longest_in_batch || window.target(to).batch.bulk.size() >= most_bulk_in_batch)
        window.send_batch(to);
    if (fetches) {
        apart->fetches = true;
        ++window.fetches;
        apart->expect(result_of(access), header.bytes);
        window.receive_answer(*apart, apart->room(), header.bytes, to,
                              tag_of(Piece::answer, header.sequence));
    }
    window.target(to).transfers.push_back(apart);
    transfer = std::move(apart);
    return MPI_SUCCESS;
}

/// The program's MPI request for one operation.
class AccessRequest final : public Operation {
  public:
    AccessRequest(std::shared_ptr<Window> window, std::shared_ptr<Transfer> transfer)
        : Operation(nullptr), window_(std::move(window)), transfer_(std::move(transfer)) {}
    ~AccessRequest() override { leave_work_list(*this); }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return {"a one-sided operation", MPI_ANY_SOURCE, MPI_ANY_TAG}; }
    /// A window that has failed may be freed before the request is completed: then the error has no owner, and its code is just returned.
    ErrorOwner error_owner() const override {
        if (window_->closed() || find(window_->handle) != window_) return {};
        return {{}, window_->handle};
    }

  private:
    void step() override {
        int code = window_->failure();
        if (code == MPI_SUCCESS && transfer_ && !transfer_->advance()) return;
        if (code == MPI_SUCCESS && transfer_) {
            code = transfer_->take_error();
            if (transfer_->broken()) window_->fail(code);
        }
        finish(code);
    }
    std::shared_ptr<Window> window_;
    std::shared_ptr<Transfer> transfer_;  ///< null when the operation was done at once
};

void give(MPI_Request* request, std::unique_ptr<Operation> operation) {
    enlist(*operation);
    *request = give_request(std::move(operation));
}

/// Starts the operation. `transfer`: set to the transfer that is complete when the operation is; null when it was done at once.
int begin(Window& window, const Access& access, std::shared_ptr<Transfer>& transfer) {
    if (int code = prepare(window, access); code != MPI_SUCCESS) return code;
    window.operations_since = true;
    const DescribedAccess& described = window.described;
    Header header = described.header;
    header.displacement = access.displacement;
    if (header.bytes == 0) return MPI_SUCCESS;
    Target& target = window.target(access.target);
    if (access.target == window.rank) return access_memory(window.memory, access, described, header);
    if (target.near) {
        const WindowMemory theirs(target.near, target.size, target.unit,
                                  NodeLock::at(target.near - NodeLock::bytes));
        return access_memory(theirs, access, described, header);
    }
    const bool answers = described.fetches;
    window.settle(target);
    if (window.failure() != MPI_SUCCESS) return window.failure();
    const int code = access_other(window, access, header, transfer);
    target.outstanding |= !answers;  // an answer itself shows that the target has done it
    return code;
}

/// `request`: the request that the R-forms (MPI_Rput) return. The caller must raise the error that is returned.
int start_access(const std::shared_ptr<Window>& window, const Access& access, MPI_Request* request) {
    Guard guard;
    if (window->failure() != MPI_SUCCESS) return window->failure();
    if (access.target == MPI_PROC_NULL) {
        if (request) give(request, std::make_unique<DoneOperation>(nullptr));
        return MPI_SUCCESS;
    }
    std::shared_ptr<Transfer> transfer;
    const int code = begin(*window, access, transfer);
    if (code == MPI_SUCCESS && request)
        give(request, std::make_unique<AccessRequest>(window, std::move(transfer)));
    return code;
}

/// Waits until there is room for more operations that fetch data: for many, so that requests still travel together.
int wait_for_fetches(const char* call, Window& window) {
    {
        Guard guard;
        if (window.fetches < most_fetches) return MPI_SUCCESS;
    }
    return window.wait(call, [&] {
        window.all_sent();
        return window.fetches <= most_fetches / 2;
    });
}

/// The program's error handler may wait for a thread that is inside MPI: it runs without the Guard.
int start(const char* call, const Access& access, MPI_Win win, MPI_Request* request = nullptr) {
    const std::shared_ptr<Window>& window = *look_up(win);
    int code = wait_for_fetches(call, *window);
    if (code == MPI_SUCCESS) code = start_access(window, access, request);
    return code == MPI_SUCCESS ? code : raise_on_window(win, code, call);
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
    return start("MPI_Put", put(elements(origin, origin_count, origin_type), target, disp, count, type), win);
}

int Rput(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
         MPI_Count count, MPI_Datatype type, MPI_Win win, MPI_Request* request) {
    Access access = put(elements(origin, origin_count, origin_type), target, disp, count, type);
    access.for_request = true;
    return start("MPI_Rput", access, win, request);
}

int Get(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
        MPI_Count count, MPI_Datatype type, MPI_Win win) {
    Access access = put(elements(origin, origin_count, origin_type), target, disp, count, type);
    access.kind = Kind::get;
    return start("MPI_Get", access, win);
}

int Rget(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
         MPI_Count count, MPI_Datatype type, MPI_Win win, MPI_Request* request) {
    Access access = put(elements(origin, origin_count, origin_type), target, disp, count, type);
    access.kind = Kind::get;
    access.for_request = true;
    return start("MPI_Rget", access, win, request);
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
    return start("MPI_Accumulate",
                 accumulation(elements(origin, origin_count, origin_type), target, disp, count, type, op),
                 win);
}

int Raccumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                MPI_Aint disp, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win,
                MPI_Request* request) {
    Access access = accumulation(elements(origin, origin_count, origin_type), target, disp, count, type, op);
    access.for_request = true;
    return start("MPI_Raccumulate", access, win, request);
}

int Get_accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, void* result,
                   MPI_Count result_count, MPI_Datatype result_type, int target, MPI_Aint disp,
                   MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win) {
    const Access access =
        accumulation(elements(origin, origin_count, origin_type), target, disp, count, type, op);
    return start("MPI_Get_accumulate", fetching(access, {result, result_count, result_type}), win);
}

int Rget_accumulate(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, void* result,
                    MPI_Count result_count, MPI_Datatype result_type, int target, MPI_Aint disp,
                    MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Win win, MPI_Request* request) {
    Access access = accumulation(elements(origin, origin_count, origin_type), target, disp, count, type, op);
    access.for_request = true;
    return start("MPI_Rget_accumulate", fetching(access, {result, result_count, result_type}), win, request);
}

int Fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint disp, MPI_Op op,
                 MPI_Win win) {
    Access access = accumulation(elements(origin, 1, type), target, disp, 1, type, op);
    access.of_one_element = true;
    return start("MPI_Fetch_and_op", fetching(access, {result, 1, type}), win);
}

int Compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type, int target,
                     MPI_Aint disp, MPI_Win win) {
    Access access = put(elements(origin, 1, type), target, disp, 1, type);
    access.kind = Kind::compare_and_swap;
    access.of_one_element = true;
    access.compare = compare;
    access.result = {result, 1, type};
    return start("MPI_Compare_and_swap", access, win);
}

int start_fetch_and_add(const std::shared_ptr<Window>& window, int target, const std::int64_t* added,
                        std::int64_t* before, std::shared_ptr<Transfer>& transfer) {
    Guard guard;
    if (window->failure() != MPI_SUCCESS) return window->failure();
    const Access access =
        accumulation(elements(added, 1, constants.int64), target, 0, 1, constants.int64, constants.sum);
    return begin(*window, fetching(access, {before, 1, constants.int64}), transfer);
}

}  // namespace mpisec::shim::rma
