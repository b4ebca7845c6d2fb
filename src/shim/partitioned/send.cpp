#include "shim/partitioned/send.hpp"

#include <algorithm>
#include <cstring>

#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/stats.hpp"
#include "shim/runtime/threads.hpp"
#include "shim/sockets/handed_over.hpp"

namespace mpisec::shim {

SendEnd::SendEnd(const PartitionedSpec& given, Communicator* known, const TypeFacts& type_facts,
                 bool is_sealed)
    : PartitionedEnd(given, known, type_facts, is_sealed, sending),
      layout{partitions(), partition_bytes(), most_piece_bytes()} {}

void SendEnd::heard(const wire::PartitionNotice& notice) {
    piece_tag = notice.tag;
    receiver_start = notice.start;
    if (active) active->receiver_is_ready();
}

PartitionedSend::PartitionedSend(std::shared_ptr<SendEnd> end)
    : Operation(end->comm), end_(std::move(end)), start_(++end_->start), marked_(end_->partitions(), false) {
    end_->active = this;
    if (!end_->comm) {
        outcome_ = {MPI_PROC_NULL, MPI_ANY_TAG, 0, false, MPI_SUCCESS, false};
        return;
    }
    if (end_->sealed) keys_ = std::make_unique<StartKeys>(*end_);
    if (start_ == 1) end_->tell({end_->name, wire::PartitionNotice::Kind::layout, 0, 0, end_->layout});
}

PartitionedSend::~PartitionedSend() {
    receiver_is_ready();
    if (end_->active == this) end_->active = nullptr;
    leave_work_list(*this);
    drop_comm();
}

void PartitionedSend::receiver_is_ready() {
    if (early_ == 0) return;
    early_pieces_to(end_->world_peer) -= early_;
    early_ = 0;
}

int PartitionedSend::mark_ready(const std::vector<int>& partitions) {
    {
        Guard guard;
        SealingScope alone("MPI_Pready");
        for (std::size_t i = 0; i < partitions.size(); ++i) {
            const auto partition = static_cast<std::size_t>(partitions[i]);
            if (marked_[partition]) {
                for (std::size_t k = 0; k < i; ++k) marked_[static_cast<std::size_t>(partitions[k])] = false;
                return MPI_ERR_ARG;
            }
            marked_[partition] = true;
        }
        marked_count_ += partitions.size();
    }
    if (!end_->comm) return MPI_SUCCESS;
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        const int code = enqueue(static_cast<std::uint64_t>(partitions[i]));
        if (code == MPI_SUCCESS) continue;
        Guard guard;  // what could not be packed, and what follows it, may be made ready once more
        for (std::size_t k = i; k < partitions.size(); ++k, --marked_count_)
            marked_[static_cast<std::size_t>(partitions[k])] = false;
        return code;
    }
    return MPI_SUCCESS;
}

int PartitionedSend::enqueue(std::uint64_t partition) {
    const wire::PartitionLayout& layout = end_->layout;
    const std::uint8_t* from = end_->partition(partition);
    std::shared_ptr<Buffer> packed;
    if (!end_->facts.contiguous && layout.partition_bytes > 0) {
        packed = std::make_shared<Buffer>(layout.partition_bytes);
        if (int code = pack(from, end_->spec.count, end_->spec.type, end_->facts, packed->data());
            code != MPI_SUCCESS)
            return code;
        from = packed->data();
    }
    Guard guard;
    SealingScope alone("MPI_Pready");
    const std::uint64_t pieces = layout.pieces_of_partition();
    for (std::uint64_t piece = partition * pieces; piece < (partition + 1) * pieces; ++piece)
        ready_.push_back({piece, from + layout.offset_in_partition(piece), packed});
    return MPI_SUCCESS;
}

bool PartitionedSend::may_start() {
    if (receiver_ready()) return sealing_ + requests_.size() < pieces_in_flight(end_->layout);
    if (end_->piece_tag < 0) return false;
    unsigned& early = early_pieces_to(end_->world_peer);
    if (early >= most_early_pieces) return false;
    ++early;
    ++early_;
    return true;
}

bool PartitionedSend::take(Sealing& sealing) {
    Guard guard;
    SealingScope alone("MPI_Pready");
    if (ready_.empty() || complete() || error_ != MPI_SUCCESS || !may_start()) return false;
    sealing.ready = std::move(ready_.front());
    ready_.pop_front();
    ++sealing_;
    sealing.wire_bytes = wire::piece_index_bytes + end_->layout.size(sealing.ready.piece) +
                         (end_->sealed ? aead::tag_bytes : 0);
    sealing.wire = Buffer(sealing.wire_bytes);
    if (end_->sealed) sealing.keys = keys_->take();
    return true;
}

void PartitionedSend::seal(Sealing& sealing) {
    const std::uint64_t piece = sealing.ready.piece;
    const std::size_t n = end_->layout.size(piece);
    std::uint8_t* wire = sealing.wire.data();
    store_le(wire, piece);
    if (!end_->sealed) {
        if (n > 0) std::memcpy(wire + wire::piece_index_bytes, sealing.ready.from, n);
        return;
    }
    const wire::Nonce nonce = wire::piece_nonce(piece);
    const wire::PieceAssociatedData ad = wire::piece_associated_data(end_->layout, piece);
    if (!sealing.keys.seal(wire + wire::piece_index_bytes, sealing.ready.from, n, nonce.data(), ad.data(),
                           ad.size()))
        abort_job("the crypto library failed to seal a partition; nothing was sent");
}

void PartitionedSend::hand_over(Sealing& sealing) {
    // Where the receiver does not have a receive for each piece from the start, the matched ones are counted.
    const bool until_matched = end_->layout.count() > pieces_in_flight(end_->layout) && receiver_ready();
    auto* send = until_matched ? real.Issend : real.Isend;
    if (end_->sealed) note_sealed(sealing.wire.data(), sealing.wire_bytes);
    MPI_Request request = constants.request_null;
    const int code = send(sealing.wire.data(), static_cast<int>(sealing.wire_bytes), constants.byte,
                          rank_in_realm(end_->world_peer), first_piece_tag() + end_->piece_tag,
                          realm_of(end_->world_peer).channel, &request);
    {
        SealingScope alone("MPI_Pready");
        --sealing_;
        if (end_->sealed) keys_->give(std::move(sealing.keys));
    }
    if (code != MPI_SUCCESS) {
        error_ = code;
        return;
    }
    if (end_->sealed) ++outgoing(end_->world_peer).sent;
    wires_.push_back(std::move(sealing.wire));
    requests_.push_back(request);
}

void PartitionedSend::send_ready() {
    Sealing sealing;
    while (take(sealing)) {
        const std::uint64_t start = steady_nanoseconds();
        seal(sealing);
        Guard guard;
        if (end_->sealed) {
            count(Traffic::partitioned, Stats::seal_large, end_->layout.size(sealing.ready.piece));
            add(stats_row(Traffic::partitioned, Stats::seal_large).nanoseconds, steady_nanoseconds() - start);
        }
        hand_over(sealing);
    }
}

void PartitionedSend::retire() {
    if (requests_.empty()) return;
    finished_.resize(requests_.size());
    int count = 0;
    const int code = real.Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                   finished_.data(), MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) error_ = code;
    if (count == MPI_UNDEFINED || count <= 0) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (requests_[i] == constants.request_null) {
            ++sent_;
            continue;
        }
        if (kept != i) {
            requests_[kept] = requests_[i];
            std::swap(wires_[kept], wires_[i]);
        }
        ++kept;
    }
    requests_.resize(kept);
    wires_.erase(wires_.begin() + static_cast<std::ptrdiff_t>(kept), wires_.end());
}

void PartitionedSend::step() {
    if (!end_->comm) {
        if (inside_ == 0 && marked_count_ == end_->partitions()) finish();
        return;
    }
    receiver_ready() ? notices_.hear_now_and_then() : hear_partition_notices();
    if (error_ == MPI_SUCCESS) error_ = end_->lost();
    retire();
    send_ready();
    if (inside_ > 0 || sealing_ > 0) return;
    if (error_ != MPI_SUCCESS) {
        abandon(std::move(wires_));
        return finish(error_);
    }
    if (receiver_ready() && sent_ == end_->layout.count()) finish();
}

}  // namespace mpisec::shim
