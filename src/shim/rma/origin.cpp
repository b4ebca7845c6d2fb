// One-sided operations as their origin starts them: its data is sent along with the request. Operations on memory that this process can
// reach are done at once.
#include <cstring>
#include <memory>
#include <utility>

#include "shim/p2p/requests.hpp"
#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/staged.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/rma/access.hpp"
#include "shim/rma/entry.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim::rma {
namespace {

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
