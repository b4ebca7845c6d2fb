#include "coll/patterns/segments.hpp"

#include <algorithm>

namespace mpisec::coll {

using fabric::Plaintext;
using fabric::PlaintextBuffer;

namespace {

/// Ranges of `first`, then of `middle` bytes while more than `last` are left, then the rest.
std::vector<Range> cut(std::size_t bytes, std::size_t element, std::size_t first, std::size_t middle,
                       std::size_t last) {
    std::vector<Range> all;
    for (std::size_t at = 0, wanted = first; at < bytes; at = all.back().end(), wanted = middle) {
        const std::size_t left = bytes - at, whole = std::max<std::size_t>(wanted / element, 1) * element;
        all.push_back({at, at > 0 && left <= last ? left : std::min(whole, left)});
    }
    return all;
}

}  // namespace

std::vector<Range> segments(std::size_t bytes, std::size_t element, bool few_parts) {
    constexpr std::size_t first = segment_bytes, last = 2 * segment_bytes, longest = 5 * segment_bytes;
    constexpr std::size_t page = std::max<std::size_t>(segment_bytes / 32, 1);
    const auto up = [](std::size_t n, std::size_t unit) { return (n + unit - 1) / unit; };
    const auto share = [&](std::size_t of, std::size_t parts) { return up(up(of, parts), page) * page; };
    if (!few_parts) return cut(bytes, element, segment_bytes, segment_bytes, 0);
    if (bytes <= whole_block) return cut(bytes, element, bytes, bytes, 0);
    const std::size_t between = bytes - first - last;
    return cut(bytes, element, first, share(between, (between + longest - 1) / longest), last);
}

std::vector<Edges::Sending> send_segments(Edges& edges, int to, Plaintext out, std::size_t element) {
    std::vector<Edges::Sending> sending;
    for (const Range& part : segments(out.size(), element, edges.few_parts()))
        sending.push_back(edges.send(to, part.of(out)));
    return sending;
}

std::vector<Edges::Receiving> receive_segments(Edges& edges, int from, PlaintextBuffer in,
                                               std::size_t element) {
    std::vector<Edges::Receiving> receiving;
    for (const Range& part : segments(in.size(), element, edges.few_parts()))
        receiving.push_back(edges.receive(from, part.of(in)));
    return receiving;
}

std::vector<Range> block_segments(const Edges& edges, int peer, std::size_t bytes) {
    if (bytes == 0 || !edges.leaves_node(peer)) return {{0, bytes}};
    return segments(bytes, 1, edges.few_parts());
}

void ReceivingBlocks::add(int from, PlaintextBuffer block) {
    const auto [place, is_new] = queue_of_.try_emplace(from, static_cast<int>(queues_.size()));
    if (is_new) queues_.push_back({from});
    Queue& queue = queues_[static_cast<std::size_t>(place->second)];
    for (const Range& part : block_segments(edges_, from, block.size()))
        queue.parts.push_back(part.of(block));
    while (queue.posted.size() < std::min(few_segments, queue.parts.size())) post_next(queue);
}

void ReceivingBlocks::post_next(Queue& queue) {
    if (queue.posted.size() < queue.parts.size())
        queue.posted.push_back(edges_.receive(queue.from, queue.parts[queue.posted.size()]));
}

fabric::Task ReceivingBlocks::finish(std::function<void()> arrived) {
    bool more = true;
    for (std::size_t turn = 0; more; ++turn) {
        more = false;
        for (Queue& queue : queues_) {
            if (turn >= queue.parts.size()) continue;
            more = true;
            co_await edges_.finish(queue.posted[turn]);
            post_next(queue);
            arrived();
        }
    }
}

void SendingBlocks::add(int to, Plaintext block) {
    const std::vector<Range> parts = block_segments(edges_, to, block.size());
    if (parts.size() == 1 && !queues_.contains(to)) {
        sent_.push_back({to, edges_.send(to, block)});
        return;
    }
    Queue& queue = queues_[to];
    for (const Range& part : parts) queue.parts.push_back(part.of(block));
    while (queue.sent < std::min(few_segments, queue.parts.size())) send_next(to, queue);
}

void SendingBlocks::send_next(int to, Queue& queue) {
    if (queue.sent < queue.parts.size()) sent_.push_back({to, edges_.send(to, queue.parts[queue.sent++])});
}

void SendingBlocks::next() {
    for (auto& [to, queue] : queues_) send_next(to, queue);
}

fabric::Task SendingBlocks::finish() {
    for (std::size_t i = 0; i < sent_.size(); ++i) {
        next();
        co_await edges_.finish(sent_[i].sending);
    }
}

fabric::Task SendingBlocks::finish_few() {
    for (std::size_t i = 0; i < sent_.size(); ++i) {
        const int to = sent_[i].to;
        co_await edges_.finish(sent_[i].sending);
        if (const auto queue = queues_.find(to); queue != queues_.end()) send_next(to, queue->second);
    }
}

Passing::Passing(Edges& edges, const Exchange& exchange, std::size_t element, std::size_t ahead)
    : Passing(edges, exchange,
              {segments(exchange.out.size(), element, edges.few_parts()),
               segments(exchange.in.size(), element, edges.few_parts())},
              ahead) {}

Passing::Passing(Edges& edges, const Exchange& exchange, Parts parts, std::size_t ahead)
    : edges_(edges), exchange_(exchange), parts_(std::move(parts)) {
    while (receiving_.size() < parts_.in.size() && receiving_.size() <= ahead) receive_next();
    while (sending_.size() < parts_.out.size() && sending_.size() < ahead) send_next();
}

void Passing::receive_next() {
    if (receiving_.size() < parts_.in.size())
        receiving_.push_back(edges_.receive(exchange_.from, parts_.in[receiving_.size()].of(exchange_.in)));
}

void Passing::send_next() {
    if (sending_.size() < parts_.out.size())
        sending_.push_back(edges_.send(exchange_.to, parts_.out[sending_.size()].of(exchange_.out)));
}

fabric::Task Passing::finish(std::function<void(Range)> arrived) {
    for (std::size_t i = 0; i < parts_.in.size(); ++i) {
        co_await edges_.finish(receiving_[i]);
        receive_next();
        send_next();
        if (i < sending_.size()) co_await edges_.finish(sending_[i]);
        arrived(parts_.in[i]);
    }
    for (std::size_t i = parts_.in.size(); i < parts_.out.size(); ++i) {
        send_next();
        co_await edges_.finish(sending_[i]);
    }
}

fabric::Task exchange_segments(Edges& edges, int to, Plaintext out, int from, PlaintextBuffer in) {
    Passing::Parts parts{block_segments(edges, to, out.size()), block_segments(edges, from, in.size())};
    Passing passing(edges, {to, out, from, in}, std::move(parts), few_segments);
    co_await passing.finish([](Range) {});
}

}  // namespace mpisec::coll
