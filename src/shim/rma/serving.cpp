// The target's side of a window: the requests of each origin are done in the order in which it sent them.
#include <algorithm>
#include <cstring>

#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/device.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim::rma {
namespace {

std::unique_ptr<Operation> receive(MPI_Comm comm, void* room, std::uint64_t bytes, int from, int tag) {
    return begin_receive({room, static_cast<MPI_Count>(bytes), constants.byte, from, tag, comm,
                          call_in_a_window, nullptr, true});
}

/// Bytes that a request takes of its message, of which `rest` bytes are left; 0 when it does not fit.
std::size_t bytes_in_message(const Header& header, std::size_t rest) {
    const std::uint64_t runs = header.bulk_runs ? 0 : std::uint64_t{header.runs} * run_bytes;
    const std::uint64_t data = header.bulk_data ? 0 : payload_of(header);
    const std::size_t left = rest - header_bytes;
    if (runs > left || data > left - runs) return 0;
    const std::size_t bytes = padded(header_bytes + runs + data);
    return bytes <= rest ? bytes : 0;
}

}  // namespace

void Service::step() {
    window_.send_batches();
    window_.start_all_waiting();
    window_.serve();
}

Window::Window(MPI_Win win, MPI_Comm private_comm, const Communicator& known, WindowMemory exposed_memory,
               const std::vector<Part>& parts)
    : handle(win),
      comm(private_comm),
      rank(known.rank),
      dynamic(exposed_memory.is_dynamic()),
      memory(std::move(exposed_memory)),
      targets(parts.size()),
      origins(parts.size()) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        targets[i].size = static_cast<MPI_Aint>(parts[i].size);
        targets[i].unit = static_cast<MPI_Aint>(parts[i].unit);
    }
    unit = unit_as<int>(target(rank).unit);
    Guard guard;
    for (Slot& slot : ring_) post(slot);
    service_ = std::make_unique<Service>(*this);
    enlist(*service_);
}

Window::~Window() {
    close();
}

void Window::close() {
    if (closed_) return;
    closed_ = true;
    Guard guard;
    service_.reset();
    for (Slot& slot : ring_) {
        abandon(std::move(slot.receiving));
        if (failure() != MPI_SUCCESS) (void)new Buffer(std::move(slot.room));
    }
    for (Origin& each : origins) {
        for (Request& request : each.requests) {
            abandon(std::move(request.runs_coming));
            abandon(std::move(request.data_coming));
            (void)new Request(std::move(request));
        }
        for (UnderWay& answer : each.answers) {
            if (answer.operation->advance()) continue;
            leave_work_list(*answer.operation);
            answer.operation->stop_workers();
            (void)new UnderWay(std::move(answer));
        }
        each.answers.clear();
    }
    for (Target& each : targets)
        for (auto& transfer : each.transfers) transfer->abandon();
    for (UnderWay& each : discarded_) {
        abandon(std::move(each.operation));
        (void)new Buffer(std::move(each.buffer));
    }
    discarded_.clear();
}

bool Window::all_sent() {
    send_batches();
    bool all = answered_.empty();
    for (Target& each : targets) all = settle(each) && all;
    return all;
}

void Window::post(Slot& slot) {
    slot.room = Buffer(most_inline_alone);
    slot.receiving = receive(comm, slot.room.data(), most_inline_alone, MPI_ANY_SOURCE, request_tag);
}

void Window::violation(int from, const char* detail) {
    if (failure() != MPI_SUCCESS) return;
    fail(report_violation(Violation::malformed, *find_communicator(comm), from, request_tag, detail));
}

void Window::fail(int code) {
    if (failure() != MPI_SUCCESS || closed_) return;
    lose(code);
    for (int to = 0; to < size(); ++to) {
        if (to == rank) continue;
        Buffer message(header_bytes);
        Header header;
        header.kind = Kind::failed;
        write(header, message.data());
        const std::uint8_t* data = message.data();
        answer(to, data, header_bytes, std::move(message), request_tag);
    }
}

/// Abandons what this process has under way: once a call has ended in the error, the program may do as it likes with
/// its memory.
void Window::lose(int code) {
    failure_ = code;
    for (Target& each : targets) {
        each.batch = {};
        for (auto& transfer : each.transfers) transfer->abandon();
        each.waiting.clear();
        each.on_their_way.clear();
    }
    batched_.clear();
    held_up_.clear();
}

void Window::serve() {
    if (serving_ || closed_) return;
    serving_ = true;
    constexpr int most_at_once = 64;  // other operations of this process, and other threads, want to go on
    for (int taken = 0; taken < most_at_once && ring_[next_].receiving->advance(); ++taken) {
        Slot& slot = ring_[next_];
        next_ = (next_ + 1) % slots;
        take(slot);
        post(slot);
    }
    for (std::size_t i = 0; i < busy_.size() && failure() == MPI_SUCCESS;) {
        const int from = busy_[i];
        drain(from);
        if (origin(from).requests.empty())
            busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(i));
        else
            ++i;
    }
    std::erase_if(answered_, [&](int to) { return settle_answers(origin(to)); });
    while (!discarded_.empty() && discarded_.front().operation->advance()) {
        leave_work_list(*discarded_.front().operation);
        discarded_.pop_front();
    }
    serving_ = false;
}

/// Requests have arrived, or something that is not a request.
void Window::take(Slot& slot) {
    const Outcome outcome = slot.receiving->outcome();
    const int from = outcome.source;
    slot.receiving.reset();
    if (outcome.error != MPI_SUCCESS) return fail(outcome.error);
    if (from < 0 || from >= size() || outcome.bytes == 0)
        return violation(from, "it is no request of a window");
    const auto message = std::make_shared<const Buffer>(std::move(slot.room));
    std::size_t next = 0;
    while (next < outcome.bytes) {
        const std::uint8_t* at = message->data() + next;
        const std::size_t rest = outcome.bytes - next;
        Request request;
        const std::size_t bytes = read(request.header, at, rest) ? bytes_in_message(request.header, rest) : 0;
        if (bytes == 0) return violation(from, "it is no request of a window");
        next += bytes;
        if (failure() == MPI_SUCCESS) check(from, request.header);
        if (failure() != MPI_SUCCESS) {
            discard(from, request.header);
            continue;
        }
        request.message = message;
        request.behind = at + header_bytes;
        enter(from, std::move(request));
    }
}

void Window::check(int from, const Header& header) {
    if (header.kind == Kind::failed) {
        // That rank has told all others.
        return lose(report_violation(Violation::reported, *find_communicator(comm), from, request_tag,
                                     "in a window or a file of both"));
    }
    if (header.sequence != origin(from).sequence++)
        violation(from, "a request before it in the same window is missing");
}

/// Receives and throws away what arrives in messages of its own, so that the sender can complete its sends.
void Window::discard(int from, const Header& header) {
    auto receive_and_forget = [&](Piece piece, std::uint64_t bytes) {
        Buffer room(bytes);
        auto receiving = receive(comm, room.data(), bytes, from, tag_of(piece, header.sequence));
        discarded_.push_back({std::move(receiving), std::move(room)});
    };
    if (header.bulk_runs) receive_and_forget(Piece::runs, std::uint64_t{header.runs} * run_bytes);
    if (header.bulk_data) receive_and_forget(Piece::data, payload_of(header));
}

void Window::enter(int from, Request request) {
    const std::uint8_t* behind = request.behind;
    if (!request.header.bulk_runs) {
        if (!read(request.layout.runs, request.header.runs, behind) || !prepare(request))
            return failure() == MPI_SUCCESS ? violation(from, "a request of a window describes no data")
                                            : static_cast<void>(0);
        behind += std::size_t{request.header.runs} * run_bytes;
    }
    if (!request.header.bulk_data) request.payload = behind;
    expect_bulk(from, request);
    Origin& sender = origin(from);
    if (sender.requests.empty() && is_ready(from, request)) return carry_out(from, request);
    if (sender.requests.empty()) busy_.push_back(from);
    sender.requests.push_back(std::move(request));
}

/// The runs are known now: they must add up to the number of bytes that the header states.
bool Window::prepare(Request& request) {
    const Header& header = request.header;
    Layout& layout = request.layout;
    layout.count = header.count;
    layout.extent = header.extent;
    if (!moves_data(header.kind)) return layout.runs.empty() && header.bytes == 0;
    // With these limits everything that is computed from the values fits; MPI would not produce more than 2^62.
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    Wide bytes_of_one = 0;
    for (const Run& run : layout.runs) bytes_of_one += run.bytes;
    return header.count <= most && bytes_of_one <= static_cast<Wide>(most) &&
           layout.bytes() == static_cast<Wide>(header.bytes);
}

bool Window::is_compared(int with) const {
    const Communicator* known = find_communicator(comm);
    return known->verifies && known->is_local(with);
}

/// Starts to receive what arrives in messages of its own. Data of a put that is one run is received directly where it belongs.
void Window::expect_bulk(int from, Request& request) {
    const Header& header = request.header;
    if (header.bulk_runs) {
        const std::uint64_t bytes = std::uint64_t{header.runs} * run_bytes;
        request.runs = Buffer(bytes);
        request.runs_coming =
            receive(comm, request.runs.data(), bytes, from, tag_of(Piece::runs, header.sequence));
    }
    if (!header.bulk_data) return;
    std::uint8_t* room = nullptr;
    if (header.kind == Kind::put && !header.bulk_runs && request.layout.one_run() && !is_compared(from)) {
        const auto [at, inside] = memory.locate(header.displacement, request.layout);
        if (inside) room = at + request.layout.runs[0].offset;
        if (on_device(room)) room = nullptr;  // nothing is copied there when the window has failed
        request.in_place = room != nullptr;
    }
    if (!room) {
        request.data = Buffer(payload_of(header));
        room = request.data.data();
    }
    request.payload = room;
    request.data_coming = receive(comm, room, payload_of(header), from, tag_of(Piece::data, header.sequence));
}

bool Window::is_ready(int from, Request& request) {
    if (!has_come(from, request)) return false;
    Origin& sender = origin(from);
    if (answer_of(request.header) > 0 && sender.answers.size() >= most_on_their_way) settle_answers(sender);
    if (answer_of(request.header) > 0 && sender.answers.size() >= most_on_their_way) return false;
    // The next holder of the lock may change memory from which an answer to this origin is still being read.
    const bool unlocks = request.header.kind == Kind::unlock || request.header.ending == Ending::unlock;
    return !unlocks || std::ranges::none_of(sender.answers, [](UnderWay& each) {
        return each.from_memory && !each.operation->advance();
    });
}

/// Drops the answers that have been sent; true when none remains.
bool Window::settle_answers(Origin& to) {
    while (!to.answers.empty() && to.answers.front().operation->advance()) {
        leave_work_list(*to.answers.front().operation);
        to.answers.pop_front();
    }
    return to.answers.empty();
}

bool Window::has_come(int from, Request& request) {
    for (auto* coming : {&request.runs_coming, &request.data_coming}) {
        if (!*coming) continue;
        if (!(*coming)->advance()) return false;
        const Outcome outcome = (*coming)->outcome();
        const bool runs = coming == &request.runs_coming;
        coming->reset();
        if (outcome.error != MPI_SUCCESS) {
            fail(outcome.error);
            return false;
        }
        const std::uint64_t expected =
            runs ? std::uint64_t{request.header.runs} * run_bytes : payload_of(request.header);
        if (outcome.bytes != expected) {
            violation(from, "data of a request of a window has another length");
            return false;
        }
        if (runs &&
            (!read(request.layout.runs, request.header.runs, request.runs.data()) || !prepare(request))) {
            violation(from, "a request of a window describes no data");
            return false;
        }
    }
    return true;
}

void Window::drain(int from) {
    auto& requests = origin(from).requests;
    while (!requests.empty() && is_ready(from, requests.front())) {
        carry_out(from, requests.front());
        requests.pop_front();
    }
}

void Window::carry_out(int from, Request& request) {
    Origin& sender = origin(from);
    const Header& header = request.header;
    switch (header.kind) {
        case Kind::flush:
            return answer_status(from, header.sequence);
        case Kind::lock_shared:
        case Kind::lock_exclusive: {
            if (sender.holds != Held::no) return violation(from, "it locks what it has locked");
            sender.holds = header.kind == Kind::lock_shared ? Held::shared : Held::exclusive;
            return grant(locks_.ask(from, sender.holds));
        }
        case Kind::unlock:
            return give_back_lock(from, header.sequence);
        case Kind::complete:
            ++sender.completes;
            return;
        default:
            answer_data(from, request);
    }
    if (header.ending == Ending::flush) answer_status(from, header.sequence);
    if (header.ending == Ending::unlock) give_back_lock(from, header.sequence);
}

void Window::give_back_lock(int from, std::uint64_t sequence) {
    std::vector<int> granted;
    const Held held = std::exchange(origin(from).holds, Held::no);
    if (held == Held::no || !locks_.give_back(held, granted))
        return violation(from, "it unlocks what it has not locked");
    answer_status(from, sequence);
    grant(granted);
}

void Window::answer_data(int from, Request& request) {
    const std::uint64_t fetched = answer_of(request.header);
    Origin& sender = origin(from);
    const int tag = tag_of(Piece::answer, request.header.sequence);
    if (request.in_place) return;
    if (request.header.kind == Kind::get && fetched > 0) {
        const auto [at, inside] = memory.locate(request.header.displacement, request.layout);
        if (!inside) return answer(from, nullptr, 0, Buffer(), tag);
        const bool in_place = request.layout.one_run() && !is_compared(from);
        if (in_place && !on_device(at + request.layout.runs[0].offset)) {
            answer(from, at + request.layout.runs[0].offset, fetched, Buffer(), tag);
            sender.answers.back().from_memory = true;
            return;
        }
    }
    Buffer data = fetched > 0 ? Buffer(fetched) : Buffer();
    const int code = memory.perform(request.header, request.layout, arithmetic_of(request.header),
                                    request.payload, data.data());
    if (fetched == 0) {
        if (sender.error == MPI_SUCCESS) sender.error = code;
        return;
    }
    const std::uint8_t* bytes = data.data();
    answer(from, bytes, code == MPI_SUCCESS ? fetched : 0, std::move(data), tag);
}

void Window::answer_status(int from, std::uint64_t sequence) {
    Buffer data(sizeof(std::int32_t));
    store_le(data.data(), static_cast<std::int32_t>(std::exchange(origin(from).error, MPI_SUCCESS)));
    const std::uint8_t* bytes = data.data();
    answer(from, bytes, sizeof(std::int32_t), std::move(data), tag_of(Piece::answer, sequence));
}

void Window::answer(int to, const void* data, std::uint64_t bytes, Buffer keep, int tag) {
    auto sending = begin_send({SendSpec::Mode::standard, data, static_cast<MPI_Count>(bytes), constants.byte,
                               to, tag, comm, call_in_a_window});
    if (origin(to).answers.empty()) answered_.push_back(to);
    origin(to).answers.push_back({std::move(sending), std::move(keep)});
}

void Window::grant(const std::vector<int>& granted) {
    for (int to : granted) {
        if (to == rank)
            own_lock_granted = true;
        else
            answer(to, nullptr, 0, Buffer(), grant_tag);
    }
}

void Window::ask_for_own_lock(Held kind) {
    own_lock_granted = false;
    grant(locks_.ask(rank, kind));
}

void Window::give_back_own_lock(Held kind) {
    std::vector<int> granted;
    locks_.give_back(kind, granted);
    grant(granted);
}

}  // namespace mpisec::shim::rma
