#include "fabric/sent_records.hpp"

#include <algorithm>
#include <utility>

#include "fabric/pages.hpp"

namespace mpisec::fabric {
namespace {

constexpr std::size_t chunk_bytes = page;
constexpr std::uint32_t chunks_populated_at_once = 16;

}  // namespace

std::size_t SentRecords::front_bytes(unsigned node_peers) {
    return pages(agreement_bytes + node_peers * (counts_per_sender(node_peers) + node_peers) *
                                       sizeof(std::atomic<std::uint32_t>));
}

Result<SentRecords> SentRecords::attach(const std::string& name, unsigned node_peers, unsigned self,
                                        std::size_t region) {
    region = std::max(pages(region), chunk_bytes);
    // One page more, because the segment's own first bytes are in front.
    auto memory =
        SharedSegment::attach(name, page + front_bytes(node_peers) + node_peers * region, node_peers, true);
    if (!memory) return tl::unexpected(memory.error());
    SentRecords records(std::move(*memory), node_peers, self, region);
    if (!SharedSegment::populate({records.begin_, front_bytes(node_peers)}))
        return fail("there is no memory in /dev/shm for the records that the ranks of this node share");
    return records;
}

SentRecords::SentRecords(SharedSegment memory, unsigned node_peers, unsigned self, std::size_t region)
    : memory_(std::move(memory)), region_(region), self_(self), sending_(node_peers), receiving_(node_peers) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.bytes().data());
    begin_ = memory_.bytes().data() + (pages(address) - address);
    announced_ = reinterpret_cast<std::atomic<std::uint32_t>*>(begin_ + agreement_bytes);
    first_chunks_ = announced_ + node_peers * counts_per_sender(node_peers);
    regions_ = begin_ + front_bytes(node_peers);
}

std::span<std::uint8_t> SentRecords::agreement() const {
    return {begin_, agreement_bytes};
}

std::uint32_t SentRecords::new_chunk() {
    const auto limit = static_cast<std::uint32_t>(region_ / chunk_bytes);
    if (chunks_ == limit) return 0;
    if (chunks_ == populated_) {
        const std::uint32_t more = std::min(chunks_populated_at_once, limit - chunks_);
        if (!SharedSegment::populate(
                {regions_ + self_ * region_ + std::size_t{chunks_} * chunk_bytes, more * chunk_bytes}))
            return 0;
        populated_ += more;
    }
    return ++chunks_;
}

std::uint32_t SentRecords::oldest_read_chunk(Sending& queue) {
    if (queue.full.empty()) return 0;
    const std::uint32_t number = queue.full.front();
    if (!link(self_, number).read.load(std::memory_order_acquire)) return 0;
    queue.full.pop_front();
    link(self_, number).next.store(0, std::memory_order_relaxed);
    link(self_, number).read.store(0, std::memory_order_relaxed);
    return number;
}

std::uint32_t SentRecords::chunk_of_another_queue() {
    for (Sending& queue : sending_) {
        const std::uint32_t number = oldest_read_chunk(queue);
        if (number == 0) continue;
        return number;
    }
    return 0;
}

bool SentRecords::extend(Sending& queue, unsigned node_peer) {
    // The records in a chunk of this queue have older numbers than any that the node peer still waits for.
    std::uint32_t number = oldest_read_chunk(queue);
    if (number == 0) {
        number = new_chunk();
        if (number == 0) number = chunk_of_another_queue();
        if (number == 0) return false;
        // Zero, or a number of another queue, may be one that the node peer waits for.
        SentRecord* records = chunk(self_, number) + 1;
        for (std::uint32_t i = 0; i < records_per_chunk; ++i)
            records[i].number.store(queue.number, std::memory_order_relaxed);
    }
    if (queue.chunk == 0) {
        first_chunk(self_, node_peer).store(number, std::memory_order_release);
    } else {
        link(self_, queue.chunk).next.store(number, std::memory_order_release);
        queue.full.push_back(queue.chunk);
    }
    queue.chunk = number;
    queue.used = 0;
    return true;
}

void SentRecords::withdraw(unsigned node_peer, SentRecord& record, std::uint32_t number) {
    const Receiving& own = receiving_[self_];
    const bool read = node_peer == self_ && ((own.number - number) & record_number) < record_number / 2;
    if (!read) record.number.fetch_or(withdrawn_record, std::memory_order_release);
}

bool SentRecords::go_on(Receiving& queue, unsigned node_peer) {
    const std::uint32_t next = queue.chunk == 0
                                   ? first_chunk(node_peer, self_).load(std::memory_order_acquire)
                                   : link(node_peer, queue.chunk).next.load(std::memory_order_acquire);
    if (next == 0) return false;
    if (queue.chunk != 0) link(node_peer, queue.chunk).read.store(1, std::memory_order_release);
    queue.chunk = next;
    queue.read = 0;
    return true;
}

}  // namespace mpisec::fabric
