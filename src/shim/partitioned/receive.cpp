#include "shim/partitioned/receive.hpp"

#include <algorithm>
#include <cstring>

#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/pmpi/status.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/stats.hpp"

namespace mpisec::shim {
namespace {

// Tells a message that was extended a little from one that MPI cuts.
constexpr std::size_t room_to_spare = 64;
constexpr const char* in_a_partition = "in a partitioned message";

}  // namespace

ReceiveEnd::ReceiveEnd(const PartitionedSpec& given, Communicator* known, const TypeFacts& type_facts,
                       bool is_sealed)
    : PartitionedEnd(given, known, type_facts, is_sealed, receiving),
      piece_tag(known ? take_piece_tag(world_peer) : -1) {}

ReceiveEnd::~ReceiveEnd() {
    Guard guard;
    if (piece_tag >= 0 && !attacked) give_back_piece_tag(world_peer, piece_tag);
}

PartitionedReceive::PartitionedReceive(std::shared_ptr<ReceiveEnd> end)
    : Operation(end->comm), end_(std::move(end)), start_(++end_->start), in_place_(end_->partitions(), 0) {
    end_->active = this;
    if (!end_->comm) {
        outcome_ = {MPI_PROC_NULL, MPI_ANY_TAG, 0, false, MPI_SUCCESS, false};
        finish();
        return;
    }
    outcome_.source = end_->spec.peer;
    outcome_.tag = end_->spec.tag;
    if (end_->sealed) keys_ = std::make_unique<StartKeys>(*end_);
    begin();
    end_->tell(
        {end_->name, wire::PartitionNotice::Kind::ready, end_->piece_tag, start_, wire::PartitionLayout{}});
}

PartitionedReceive::~PartitionedReceive() {
    if (end_->active == this) end_->active = nullptr;
    leave_work_list(*this);
    drop_comm();
}

bool PartitionedReceive::arrived(int partition) const {
    if (complete()) return outcome().error == MPI_SUCCESS;
    // Nothing has to arrive for an empty partition. It waits for no MPI_Pready: the sender may cut the message into another
    // number of partitions (MPI standard section 4.2), so none of these need belong to it.
    return in_place_[static_cast<std::size_t>(partition)] == end_->partition_bytes();
}

/// Posts the first receives, once it is known how the message is cut.
void PartitionedReceive::begin() {
    if (begun_ || !end_->layout) return;
    begun_ = true;
    const wire::PartitionLayout& layout = *end_->layout;
    pieces_.assign(layout.count(), false);
    if (layout.total() > end_->capacity())
        error_ = MPI_ERR_TRUNCATE;  // received to its end all the same: its sender must not wait for ever
    else if (!end_->facts.contiguous && layout.total() > 0)
        packed_ = Buffer(layout.total());
    const std::size_t slots = std::min(layout.count(), pieces_in_flight(layout));
    wires_.resize(slots);
    requests_.assign(slots, constants.request_null);
    finished_.resize(slots);
    statuses_.resize(slots);
    for (std::size_t slot = 0; slot < slots; ++slot) post(slot);
}

void PartitionedReceive::post(std::size_t slot) {
    const std::size_t room =
        wire::piece_index_bytes + end_->layout->largest() + aead::tag_bytes + room_to_spare;
    if (!wires_[slot]) wires_[slot] = Buffer(room);
    const int code = real.Irecv(wires_[slot].data(), static_cast<int>(room), constants.byte,
                                rank_in_realm(end_->world_peer), first_piece_tag() + end_->piece_tag,
                                realm_of(end_->world_peer).channel, &requests_[slot]);
    ++posted_;
    if (code == MPI_SUCCESS) return;
    requests_[slot] = constants.request_null;
    ++matched_;
    if (error_ == MPI_SUCCESS) error_ = code;
}

void PartitionedReceive::receive() {
    if (matched_ == posted_) return;
    int count = 0;
    const int code = real.Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                   finished_.data(), statuses_.data());
    if (count == MPI_UNDEFINED) return;
    for (int i = 0; i < count; ++i) {
        const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
        const auto slot = static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)]);
        ++matched_;
        requests_[slot] = constants.request_null;
        check(slot, code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : code, status);
        if (posted_ < end_->layout->count())
            post(slot);
        else
            wires_[slot] = Buffer();
    }
}

void PartitionedReceive::check(std::size_t slot, int code, const MPI_Status& status) {
    if (error_ != MPI_SUCCESS) return;  // thrown away
    auto refuse = [&](Violation violation) {
        end_->attacked = true;
        error_ = report_violation(violation, *comm_, end_->spec.peer, end_->spec.tag, in_a_partition);
    };
    if (code != MPI_SUCCESS) {
        int error_class = MPI_SUCCESS;
        real.Error_class(code, &error_class);
        if (error_class == MPI_ERR_TRUNCATE) return refuse(Violation::malformed);
        error_ = code;
        return;
    }
    const std::size_t bytes = wire_bytes_of(status), tag = end_->sealed ? aead::tag_bytes : 0;
    if (bytes < wire::piece_index_bytes + tag) return refuse(Violation::malformed);
    const wire::PartitionLayout& layout = *end_->layout;
    const auto piece = load_le<std::uint64_t>(wires_[slot].data());
    if (piece >= layout.count() || bytes != wire::piece_index_bytes + layout.size(piece) + tag)
        return refuse(Violation::malformed);
    // Not opened, so that what is already there stays.
    if (pieces_[piece]) return refuse(Violation::replayed);
    open(piece, wires_[slot].data() + wire::piece_index_bytes);
    if (!pieces_[piece]) return refuse(Violation::forged);
    if (end_->sealed) ++incoming(end_->world_peer).opened;
    place(layout.offset(piece), layout.size(piece));
}

void PartitionedReceive::open(std::uint64_t piece, const std::uint8_t* wire) {
    const wire::PartitionLayout& layout = *end_->layout;
    const std::size_t n = layout.size(piece);
    std::uint8_t none = 0;
    std::uint8_t* to = n == 0    ? &none
                       : packed_ ? packed_.data() + layout.offset(piece)
                                 : static_cast<std::uint8_t*>(end_->spec.buf) + layout.offset(piece);
    if (!end_->sealed) {
        if (n > 0) std::memcpy(to, wire, n);
        pieces_[piece] = true;
        return;
    }
    const wire::Nonce nonce = wire::piece_nonce(piece);
    const wire::PieceAssociatedData ad = wire::piece_associated_data(layout, piece);
    StatsTimer timer(Traffic::partitioned, Stats::open_large, n);
    aead::KeySet keys = keys_->take();
    pieces_[piece] = keys.open(to, wire, n, nonce.data(), ad.data(), ad.size());
    keys_->give(std::move(keys));
}

/// `bytes` bytes at `offset` of the message are verified: the receiver's partitions that they complete have arrived.
void PartitionedReceive::place(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t each = end_->partition_bytes();
    while (bytes > 0) {
        const std::uint64_t partition = offset / each;
        const std::uint64_t part = std::min(bytes, each - offset % each);
        int code = MPI_SUCCESS;
        if (packed_ && in_place_[partition] + part == each)
            code = unpack(packed_.data() + partition * each, each, end_->partition(partition),
                          end_->spec.count, end_->spec.type, end_->facts);
        if (code == MPI_SUCCESS)
            in_place_[partition] += part;
        else if (error_ == MPI_SUCCESS)
            error_ = code;
        offset += part;
        bytes -= part;
    }
}

/// Unpacks the end of a message that is shorter than the buffer and ends within a partition.
void PartitionedReceive::deliver_rest() {
    const std::uint64_t each = end_->partition_bytes(), total = end_->layout->total();
    if (!packed_ || total % each == 0) return;
    const std::uint64_t partition = total / each;
    const int code = unpack(packed_.data() + partition * each, total % each, end_->partition(partition),
                            end_->spec.count, end_->spec.type, end_->facts);
    if (code != MPI_SUCCESS) error_ = code;
}

void PartitionedReceive::step() {
    begun_ ? notices_.hear_now_and_then() : hear_partition_notices();
    begin();
    if (const int lost = end_->lost(); lost != MPI_SUCCESS) {
        abandon(std::move(wires_));
        return finish(lost);
    }
    if (!begun_) return;
    receive();
    if (matched_ < end_->layout->count()) return;
    outcome_.bytes = error_ == MPI_SUCCESS        ? end_->layout->total()
                     : error_ == MPI_ERR_TRUNCATE ? end_->capacity()
                                                  : 0;
    if (error_ == MPI_SUCCESS) deliver_rest();
    packed_ = Buffer();
    finish(error_);
}

}  // namespace mpisec::shim
