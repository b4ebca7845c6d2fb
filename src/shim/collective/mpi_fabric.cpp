#include "shim/collective/mpi_fabric.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "keys/schedule.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/stats.hpp"
#include "shim/runtime/threads.hpp"

namespace mpisec::shim {
namespace {

constexpr std::size_t longest_message = std::size_t{1} << 30;  ///< MPI counts bytes in an int
constexpr unsigned polls_between_progress = 16;

/// As if each rank were on a node of its own: everything between them is sealed.
fabric::Topology apart(std::size_t ranks) {
    std::vector<int> node(ranks);
    std::iota(node.begin(), node.end(), 0);
    return fabric::Topology(node);
}

CollectiveSequence without_slot(CollectiveSequence sequence) {
    sequence.slot = nullptr;
    return sequence;
}

bool cuts_into_few_parts(const CollectiveContext& collective_context) {
    return realm_of(collective_context.members()).cipher_speed >= aead::Speed::medium;
}

int place_of(int rank, const std::vector<int>& participants) {
    return static_cast<int>(std::find(participants.begin(), participants.end(), rank) - participants.begin());
}

}  // namespace

void drive_progress() {
    int flag = 0;
    real.Test(&state.never, &flag, MPI_STATUS_IGNORE);
}

std::size_t MpiFabric::Step::part_bytes(std::size_t part) const {
    return std::min(bytes - part * longest_message, longest_message);
}

MpiFabric::MpiFabric(const CollectiveContext& collective_context, CollectiveSequence sequence,
                     const char* procedure)
    : Fabric(collective_context.rank(), collective_context.topology(),
             cuts_into_few_parts(collective_context)),
      collective_context_(collective_context),
      sequence_(std::move(sequence)),
      turn_(sequence_.slot ? sequence_.slot->take_turn() : 0),
      procedure_(procedure),
      traffic_(traffic_of_collective(procedure)),
      own_topology_(apart(0)) {}

MpiFabric::MpiFabric(const CollectiveContext& collective_context, CollectiveSequence sequence,
                     const char* procedure, std::vector<int> participants)
    : Fabric(place_of(collective_context.rank(), participants), own_topology_,
             cuts_into_few_parts(collective_context)),
      collective_context_(collective_context),
      sequence_(without_slot(std::move(sequence))),
      procedure_(procedure),
      traffic_(traffic_of_collective(procedure)),
      participants_(std::move(participants)),
      own_topology_(apart(participants_.size())) {}

MpiFabric::~MpiFabric() = default;

bool MpiFabric::ready() {
    if (entered_ || !sequence_.slot) return true;
    if (!sequence_.slot->free(turn_)) {
        if (++polls_ % polls_between_progress == 0) drive_progress();
        return false;
    }
    sequence_.slot->enter();
    return entered_ = true;
}

void MpiFabric::leave() {
    spread_failure();
    if (entered_) sequence_.slot->leave();
    entered_ = false;
}

void MpiFabric::cancel() {
    for (Step& step : steps_) {
        if (!step.receives) continue;
        if (step.request != constants.request_null) real.Cancel(&step.request);
        for (MPI_Request& part : step.more)
            if (part != constants.request_null) real.Cancel(&part);
    }
}

void MpiFabric::advance() {
    while (waiter_ && finished(awaited_) && !lost_) std::exchange(waiter_, nullptr).resume();
}

void MpiFabric::copy(fabric::PlaintextBuffer to, fabric::Plaintext from) {
    if (to.size() != from.size()) {
        if (!failed())
            say(std::string(procedure_) + ": this rank gave blocks of different sizes for the same data.");
        return note(MPI_ERR_TRUNCATE);
    }
    if (!from.empty() && to.data() != from.data()) std::memcpy(to.data(), from.data(), from.size());
}

void MpiFabric::combine(const fabric::Reduction& reduction, fabric::PlaintextBuffer inout,
                        fabric::Plaintext in) {
    if (in.empty() || reduction.combine(inout, in)) return;
    note(MPI_ERR_OP);
}

void MpiFabric::note(int code) {
    if (error_ == MPI_SUCCESS) error_ = code;
    lost_ = lost_ || is_failure(code);
    fail();
}

/// Tells the node's ranks that what this rank sends them in plaintext is worthless from now on.
void MpiFabric::spread_failure() {
    if (failed() && entered_ && !lost_) sequence_.slot->fail();
}

unsigned MpiFabric::take_step() {
    if (free_steps_.empty()) {
        free_steps_.push_back(static_cast<unsigned>(steps_.size()));
        steps_.emplace_back();
    }
    const unsigned number = free_steps_.back();
    free_steps_.pop_back();
    steps_[number] = Step{};
    steps_[number].request = constants.request_null;
    return number;
}

unsigned MpiFabric::start_send(int to, std::span<std::uint8_t> bytes, bool sealed) {
    const unsigned number = take_step();
    Step& step = steps_[number];
    if (!sealed && !topology().same_node(rank(), to))
        abort_job("a collective was about to send plaintext to another node; this is a fault of MPIsec");
    if (lost_) return number;
    const std::uint8_t* from = bytes.data();
    spread_failure();
    if (sealed && failed()) {
        step.zeros = Buffer(bytes.size() + 1);
        std::memset(step.zeros.data(), 0, bytes.size());
        from = step.zeros.data();
    }
    step.sealed = sealed;
    step.bytes = bytes.size();
    const std::int32_t peer = collective_context_.members()[static_cast<std::size_t>(rank_in_context(to))];
    start_parts(step, [&](std::size_t at, int part, MPI_Request* request) {
        if (!sealed && verifies_same_node())
            announce_part(collective_context_.context(), peer, sequence_.tag,
                          {from + at, static_cast<std::size_t>(part)});
        return real.Isend(from + at, part, constants.byte,
                          collective_context_.shadow_rank(rank_in_context(to)), sequence_.tag,
                          collective_context_.shadow(), request);
    });
    return number;
}

unsigned MpiFabric::start_receive(int from, std::span<std::uint8_t> room, bool sealed) {
    const unsigned number = take_step();
    if (lost_) return number;
    Step& step = steps_[number];
    step.receives = true;
    step.sealed = sealed;
    step.bytes = room.size();
    if (!sealed && verifies_same_node()) {
        step.data = room.data();
        step.peer = collective_context_.members()[static_cast<std::size_t>(rank_in_context(from))];
        step.parts_open = std::max<std::size_t>(1, (step.bytes + longest_message - 1) / longest_message);
        step.position = next_position_;
        next_position_ += step.parts_open;
    }
    start_parts(step, [&](std::size_t at, int part, MPI_Request* request) {
        return real.Irecv(room.data() + at, part, constants.byte,
                          collective_context_.shadow_rank(rank_in_context(from)), sequence_.tag,
                          collective_context_.shadow(), request);
    });
    return number;
}

template <class Start>
void MpiFabric::start_parts(Step& step, Start start) {
    const std::size_t parts = std::max<std::size_t>(1, (step.bytes + longest_message - 1) / longest_message);
    step.more.assign(parts - 1, constants.request_null);
    for (std::size_t part = 0; part < parts; ++part) {
        MPI_Request& request = part == 0 ? step.request : step.more[part - 1];
        const int code = start(part * longest_message, static_cast<int>(step.part_bytes(part)), &request);
        if (code != MPI_SUCCESS) note(code);
    }
}

unsigned MpiFabric::start_barrier() {
    const unsigned number = take_step();
    if (!entered_ || lost_) return number;  // alone on the node
    spread_failure();
    steps_[number].barrier = sequence_.slot->come();
    return number;
}

bool MpiFabric::done(Step& step, MPI_Request& request, std::size_t part) {
    if (request == constants.request_null) return true;
    int flag = 0;
    MPI_Status status;
    const int code = real.Test(&request, &flag, &status);
    if (code == MPI_SUCCESS && !flag) return false;
    request = constants.request_null;
    conclude(step, code, status, part);
    return true;
}

/// Whether a rank of this node sent what has arrived; otherwise wipes it.
bool MpiFabric::verified(Step& step, std::size_t part) {
    --step.parts_open;
    std::uint64_t oldest = next_position_;
    for (const Step& other : steps_)
        if (other.data && other.parts_open > 0 && other.peer == step.peer)
            oldest = std::min(oldest, other.position);
    const std::span<std::uint8_t> bytes{step.data + part * longest_message, step.part_bytes(part)};
    if (part_was_sent(collective_context_.context(), step.peer, sequence_.tag, bytes,
                      {step.position + part, oldest}))
        return true;
    wipe(step, part);
    return false;
}

void MpiFabric::wipe(const Step& step, std::size_t part) {
    std::memset(step.data + part * longest_message, 0, step.part_bytes(part));
}

/// One MPI message has been received or sent.
void MpiFabric::conclude(Step& step, int code, const MPI_Status& status, std::size_t part) {
    const std::size_t bytes = step.part_bytes(part);
    if (code == MPI_SUCCESS && step.receives) {
        int count = 0;
        real.Get_count(&status, constants.byte, &count);
        if (count >= 0 && static_cast<std::size_t>(count) == bytes) {
            if (!step.data || verified(step, part)) return;
            if (failed()) return;
            return note(report_sealed_block_violation(procedure_, step.peer));
        }
        code = MPI_ERR_TRUNCATE;
    }
    if (code != MPI_SUCCESS && step.data) {  // not compared with the sender's record
        --step.parts_open;
        wipe(step, part);
    }
    if (code == MPI_SUCCESS || failed()) return;
    if (is_failure(code)) return note(code);
    if (step.receives && step.sealed)
        code = report_length_violation(procedure_, bytes);
    else
        say(std::string(procedure_) + ": a message of " + std::to_string(bytes) +
            " bytes inside the node was not sent or received as expected: the ranks called with different "
            "counts, or MPI failed");
    note(code);
}

bool MpiFabric::finished(unsigned number) {
    Step& step = steps_[number];
    if (step.barrier != 0) {
        if (sequence_.slot->met(step.barrier)) return true;
        if (++polls_ % polls_between_progress == 0) drive_progress();
        return false;
    }
    if (!done(step, step.request, 0)) return false;
    for (std::size_t i = 0; i < step.more.size(); ++i)
        if (!done(step, step.more[i], i + 1)) return false;
    return true;
}

void MpiFabric::when_finished(unsigned number, std::coroutine_handle<> waiter) {
    awaited_ = number;
    waiter_ = waiter;
}

void MpiFabric::finish(unsigned number) {
    const Step& step = steps_[number];
    // Plaintext from a node peer, or from the node's memory, can be used only as long as no rank of the node has failed.
    if ((step.barrier != 0 || (step.receives && !step.sealed)) && entered_ && sequence_.slot->failed() &&
        !failed()) {
        say(std::string(procedure_) +
            " fails here because it failed on another rank of this node, which says why.");
        note(MPI_ERR_OTHER);
    }
    free_steps_.push_back(number);
}

void MpiFabric::violation(int sealer) {
    if (!failed())
        error_ = report_sealed_block_violation(
            procedure_, collective_context_.members()[static_cast<std::size_t>(rank_in_context(sealer))]);
}

namespace {

/// Seals or opens (`use`) with the key that a sealed block has.
template <class Use>
bool with_key(const CollectiveSequence& sequence, bool own_key, const wire::Nonce& nonce, Use use) {
    if (!own_key) return use(sequence.keys->aead);
    std::uint8_t bytes[aead::max_key_bytes];
    keys::sealed_block_key(sequence.keys->sealed_block, nonce, bytes);
    aead::KeySet own(state.world.selection, bytes);
    keys::wipe(bytes, sizeof bytes);
    return use(own);
}

}  // namespace

bool MpiFabric::has_own_key(std::size_t bytes, fabric::SealedBlock sealed_block) const {
    return wire::has_own_key(bytes, sealed_block.index, collective_context_.members().size());
}

/// The index as it goes into the nonce, where it has 32 bits. A larger index ends the job before anything is sealed with
/// it.
std::uint32_t MpiFabric::index_of(fabric::SealedBlock sealed_block) const {
    if (sealed_block.index > std::numeric_limits<std::uint32_t>::max())
        abort_job(
            std::string(procedure_) +
            ": so much data takes more sealed blocks than one collective can have; call it for parts of "
            "the data");
    return static_cast<std::uint32_t>(sealed_block.index);
}

/// The sealer as nonces and associated data have it: its rank in the context, which no other process has. Its rank in this fabric is a
/// role in the rooted collectives of an inter-communicator, and two processes may believe that they are the root.
int MpiFabric::sealer_of(fabric::SealedBlock sealed_block) const {
    return rank_in_context(sealed_block.sealer);
}

void MpiFabric::do_seal(std::span<std::uint8_t> to, fabric::Plaintext from,
                        fabric::SealedBlock sealed_block) {
    const wire::Nonce nonce =
        wire::sealed_block_nonce(sequence_.number_in_epoch, sealer_of(sealed_block), index_of(sealed_block));
    const wire::SealedBlockAssociatedData ad = wire::sealed_block_associated_data(
        collective_context_.context(), {sequence_.number, sealer_of(sealed_block), index_of(sealed_block)},
        from.size());
    StatsTimer timer(traffic_, Stats::seal_collective, from.size());
    SealingScope alone(procedure_);
    if (!with_key(sequence_, has_own_key(from.size(), sealed_block), nonce, [&](aead::KeySet& key) {
            return key.seal(to.data(), from.data(), from.size(), nonce.data(), ad.data(), ad.size());
        }))
        abort_job("the crypto library failed to seal " + std::to_string(from.size()) +
                  " bytes of a collective; nothing was sent");
}

void MpiFabric::misused(fabric::SealedBlock sealed_block) {
    const std::string what =
        sealed_block.sealer != rank()
            ? "a sealed block of another rank was about to be sealed"
            : "sealed block " + std::to_string(sealed_block.index) + " was about to be sealed a second time";
    abort_job(
        std::string(procedure_) + ": " + what +
        " in one collective, which would use a nonce twice; nothing was sent. This is a fault of MPIsec: "
        "report it, and choose another algorithm for this collective meanwhile (docs/collectives.md)");
}

bool MpiFabric::do_open(fabric::PlaintextBuffer to, fabric::Plaintext from,
                        fabric::SealedBlock sealed_block) {
    const wire::Nonce nonce =
        wire::sealed_block_nonce(sequence_.number_in_epoch, sealer_of(sealed_block), index_of(sealed_block));
    const wire::SealedBlockAssociatedData ad = wire::sealed_block_associated_data(
        collective_context_.context(), {sequence_.number, sealer_of(sealed_block), index_of(sealed_block)},
        to.size());
    StatsTimer timer(traffic_, Stats::open_collective, to.size());
    SealingScope alone(procedure_);  // the key that opens is the key that seals
    const bool good =
        with_key(sequence_, has_own_key(to.size(), sealed_block), nonce, [&](aead::KeySet& key) {
            return key.open(to.data(), from.data(), to.size(), nonce.data(), ad.data(), ad.size());
        });
    if (!good) violation(sealed_block.sealer);
    return good;
}

std::span<std::uint8_t> MpiFabric::room(std::size_t bytes) {
    rooms_.emplace_back(bytes + 1);
    return {rooms_.back().data(), bytes};
}

std::span<std::uint8_t> MpiFabric::shared_room(std::size_t bytes) {
    if (!entered_) return room(bytes);
    auto shared = sequence_.slot->room(bytes);
    if (shared) return *shared;
    say(std::string(procedure_) + ": " + shared.error().message);
    note(MPI_ERR_NO_MEM);
    return room(bytes);
}

}  // namespace mpisec::shim
