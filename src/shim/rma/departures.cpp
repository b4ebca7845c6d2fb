// What leaves for a target: requests in batches, and behind them, in order, data that travels apart. At most so many messages to a target are
// on their way; the others wait here.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include "shim/p2p/staged.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/rma/window.hpp"

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

}  // namespace mpisec::shim::rma
