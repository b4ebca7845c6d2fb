// Sending:     seal in order  ->  send in order  ->  retire in order
// Receiving:   post receives  ->  open in order  ->  retire in order, post the next
//
// The thread that calls MPI does everything except sealing and opening.
//
// With engine workers, sealing and opening run on the workers, up to pipeline_slots segments at a time; without workers, in submit().
#include "shim/p2p/segments.hpp"

#include <algorithm>
#include <cstring>

#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/device_copies.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/stats.hpp"
#include "shim/runtime/threads.hpp"
#include "shim/sockets/handed_over.hpp"

namespace mpisec::shim {

using engine::SegmentTask;

namespace {

// MPI libraries send messages of this length and more only when their receive is posted.
constexpr std::uint64_t shortest_rendezvous = 128 * 1024;

}  // namespace

Pipeline::Pipeline(const std::uint8_t* message_key, const wire::SegmentPlan& plan, int world_peer,
                   int channel_tag)
    : plan_(plan),
      key_(state.world.selection, message_key, engine_of_process().workers() + 1),
      world_peer_(world_peer),
      channel_(realm_of(world_peer).channel),
      channel_rank_(rank_in_realm(world_peer)),
      channel_tag_(channel_tag),
      slots_(new Slot[std::min(pipeline_slots, plan.count())]) {}

Pipeline::~Pipeline() = default;

void Pipeline::fill_task(SegmentTask& task, SegmentTask::Direction direction, std::uint64_t segment,
                         std::uint8_t* to, const std::uint8_t* from) {
    task.key = &key_;
    task.direction = direction;
    task.to = to;
    task.from = from;
    task.n = plan_.size(segment);
    task.nonce = wire::segment_nonce(segment, plan_.is_last(segment));
    task.timed = state.timed;
    task.state.store(SegmentTask::State::idle, std::memory_order_relaxed);
}

TraceFacts Pipeline::facts(std::uint64_t segment) const {
    return {static_cast<std::int64_t>(plan_.size(segment)), world_peer_, message_,
            static_cast<std::int64_t>(segment)};
}

void Pipeline::account(const SegmentTask& task, std::uint64_t segment) const {
    if (!task.timed) return;
    const bool seals = task.direction == SegmentTask::Direction::seal;
    add(stats_row(traffic_, seals ? Stats::seal_large : Stats::open_large).nanoseconds,
        task.ended - task.began);
    if (tracing())
        record({seals ? "seal segment" : "open segment", task.began, task.ended, facts(segment),
                TraceTrack::worker, task.thread});
}

namespace {

/// The task that this thread gets may use the key of the thread that calls MPI.
void help_engine() {
    SealingScope alone("a large message");
    engine_of_process().help();
}

}  // namespace

SendPipeline::SendPipeline(const std::uint8_t* message_key, const wire::SegmentPlan& plan, int world_peer,
                           int channel_tag, const std::uint8_t* plaintext, bool synchronous)
    : Pipeline(message_key, plan, world_peer, channel_tag),
      plaintext_(plaintext),
      synchronous_(synchronous) {}

SendPipeline::~SendPipeline() {
    abandon();
}

void SendPipeline::abandon() {
    for (std::uint64_t segment = done_; segment < sealed_;
         ++segment)  // a worker may still read the user's buffer
        while (!slot(segment).task.finished()) help_engine();
    if (limited_) outgoing(world_peer_).sends_in_flight -= static_cast<unsigned>(sealed_ - done_);
}

bool SendPipeline::seal_first(std::uint8_t* to) {
    StatsTimer timer(traffic_, Stats::seal_large, plan_.size(0));
    TraceScope traced("seal segment", facts(0));
    const wire::Nonce nonce = wire::segment_nonce(0, plan_.is_last(0));
    return key_.for_thread(0).seal(to, plaintext_, plan_.size(0), nonce.data(), nullptr, 0);
}

bool SendPipeline::may_start_segment() {
    PeerSendState& pair = outgoing(world_peer_);
    if (pair.sends_in_flight >= most_sends_in_flight) {
        if (sealed_ > done_) return false;
        goes_alone_ = goes_alone_ || ++pair.held_back >= stall_limit;
        if (!goes_alone_) return false;
    }
    ++pair.sends_in_flight;
    return true;
}

bool SendPipeline::has_arrived(std::uint64_t segment) {
    if (copies_->has(plan_.offset(segment) + plan_.size(segment))) return true;
    // The receiver already has parts of the message, which must not be completed.
    if (copies_->failed())
        abort_job(
            "a part of a message could not be copied from a GPU's memory when earlier parts had been sent");
    return false;
}

void SendPipeline::start_workers() {
    if (copies_ || engine_of_process().workers() == 0) return;
    while (submit_next()) {
    }
}

bool SendPipeline::start_sealing() {
    SealingScope alone("a send of a large message");  // covers the choice of the segment too
    return submit_next();
}

bool SendPipeline::submit_next() {
    if (sealed_ == plan_.count() || sealed_ - done_ >= pipeline_slots) return false;
    if (copies_ && !has_arrived(sealed_)) return false;
    if (limited_ && !may_start_segment()) return false;
    Slot& mine = slot(sealed_);
    mine.wire = Buffer(plan_.size(sealed_) + aead::tag_bytes);
    fill_task(mine.task, SegmentTask::Direction::seal, sealed_, mine.wire.data(),
              plaintext_ + plan_.offset(sealed_));
    count(traffic_, Stats::seal_large, plan_.size(sealed_));
    engine_of_process().submit(mine.task);
    ++sealed_;
    return true;
}

bool SendPipeline::start_sending(int& error) {
    if (sent_ == sealed_ || !slot(sent_).task.finished()) return false;
    Slot& mine = slot(sent_);
    if (mine.task.state.load() == SegmentTask::State::failed)
        abort_job("the crypto library failed to seal a segment; nothing was sent");
    account(mine.task, sent_);
    const int bytes = static_cast<int>(plan_.size(sent_) + aead::tag_bytes);
    // MPI may take shorter messages before their receive is posted; then nothing would bound how many wait unexpected at the receiver.
    const bool until_matched =
        limited_ || plan_.segment_bytes < shortest_rendezvous || (synchronous_ && plan_.is_last(sent_));
    auto* start = until_matched ? real.Issend : real.Isend;
    if (tracing()) [[unlikely]]
        mine.handed_over = trace_clock();
    TraceScope traced("hand over", facts(sent_));
    note_sealed(mine.wire.data(), plan_.size(sent_) + aead::tag_bytes);
    const int code =
        start(mine.wire.data(), bytes, constants.byte, channel_rank_, channel_tag_, channel_, &mine.request);
    if (code != MPI_SUCCESS) {
        error = code;
        mine.request = constants.request_null;
    }
    ++sent_;
    return true;
}

bool SendPipeline::retire(int& error) {
    if (done_ == sent_) return false;
    int flag = 0;
    const int code = test_request(slot(done_).request, flag, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
        error = code;
        flag = 1;
    }
    if (!flag) return false;
    if (tracing()) [[unlikely]]
        record({"sending", slot(done_).handed_over, trace_clock(), facts(done_), TraceTrack::beside});
    // Back to the pool, where the next segment finds it while caches still hold it.
    if (code == MPI_SUCCESS) slot(done_).wire = Buffer();
    ++done_;
    if (!limited_) return true;
    --outgoing(world_peer_).sends_in_flight;
    if (!goes_alone_) outgoing(world_peer_).held_back = 0;
    return true;
}

/// MPI has nothing to do until the next segment is sealed. The first time this happens in a message, a worker that is sealing that segment
/// gets no help: no worker can be ahead of MPI from the start.
void SendPipeline::help_to_seal() {
    if (waited_for_ != sent_) {
        waited_for_ = sent_;
        ++waits_;
    }
    if (waits_ > 1 || slot(sent_).task.state.load() == SegmentTask::State::queued) help_engine();
}

bool SendPipeline::advance(int& error) {
    bool moved = true;
    // Bounded, so that other messages, and threads that wait for the Guard, get their turns.
    for (std::uint64_t handed = 0; moved && handed < pipeline_slots; ++handed) {
        // Retires each time, so that workers do not run out of slots while the other segments are handed over.
        while (retire(error)) {
        }
        moved = start_sealing();
        moved = start_sending(error) || moved;
    }
    while (retire(error)) {
    }
    if (done_ == sent_ && sent_ < sealed_) help_to_seal();
    return done_ == plan_.count();
}

ReceivePipeline::ReceivePipeline(const std::uint8_t* message_key, const wire::SegmentPlan& plan,
                                 int world_peer, int channel_tag, std::uint8_t* plaintext)
    : Pipeline(message_key, plan, world_peer, channel_tag), plaintext_(plaintext) {
    start_receiving();
}

ReceivePipeline::~ReceivePipeline() {
    wait_for_workers();
    incoming(world_peer_).receives_posted -= static_cast<unsigned>(posted_ - done_);
}

/// The workers may still write to the user's buffer.
void ReceivePipeline::wait_for_workers() {
    while (first_submitted_ && !first_.finished()) help_engine();
    for (std::uint64_t segment = done_; segment < opening_; ++segment)
        while (!slot(segment).task.finished()) help_engine();
}

void ReceivePipeline::abandon() {
    wait_for_workers();
    for (std::uint64_t segment = opening_; segment < posted_; ++segment)
        if (slot(segment).request != constants.request_null) real.Cancel(&slot(segment).request);
    incoming(world_peer_).receives_posted -= static_cast<unsigned>(posted_ - done_);
}

void ReceivePipeline::start_receiving() {
    unsigned& receives_posted = incoming(world_peer_).receives_posted;
    // One receive is always posted: a sender does not know which messages have more.
    while (posted_ < plan_.count() && posted_ - done_ < pipeline_slots &&
           (posted_ == done_ || receives_posted < most_receives_posted)) {
        ++receives_posted;
        Slot& mine = slot(posted_);
        const std::size_t room = plan_.size(posted_) + aead::tag_bytes;
        mine.wire = Buffer(room);
        if (tracing()) [[unlikely]]
            mine.handed_over = trace_clock();
        if (real.Irecv(mine.wire.data(), static_cast<int>(room), constants.byte, channel_rank_, channel_tag_,
                       channel_, &mine.request) != MPI_SUCCESS) {
            mine.request = constants.request_null;
            failed_ = true;
        }
        ++posted_;
    }
}

void ReceivePipeline::open_first(const std::uint8_t* wire) {
    if (!plaintext_) return;
    fill_task(first_, SegmentTask::Direction::open, 0, plaintext_, wire);
    first_submitted_ = true;
    count(traffic_, Stats::open_large, first_.n);
    engine_of_process().submit(first_);
}

bool ReceivePipeline::start_opening() {
    if (opening_ == posted_) return false;
    Slot& mine = slot(opening_);
    MPI_Status status;
    int flag = 0;
    const int code = test_request(mine.request, flag, &status);
    if (code == MPI_SUCCESS && !flag) return false;
    if (tracing()) [[unlikely]]
        record({"receiving", mine.handed_over, trace_clock(), facts(opening_), TraceTrack::beside});
    MPI_Count bytes = -1;
    if (code == MPI_SUCCESS) real.Get_elements_x(&status, constants.byte, &bytes);
    const bool fits = bytes == static_cast<MPI_Count>(plan_.size(opening_) + aead::tag_bytes);
    if (!fits && plaintext_)
        failed_ = true;  // cut or extended; without plaintext_ nothing is delivered anyway
    if (failed_ || !plaintext_) {
        mine.task.timed = false;
        mine.task.state.store(SegmentTask::State::done);
    } else {
        fill_task(mine.task, SegmentTask::Direction::open, opening_, plaintext_ + plan_.offset(opening_),
                  mine.wire.data());
        count(traffic_, Stats::open_large, mine.task.n);
        engine_of_process().submit(mine.task);
    }
    ++opening_;
    return true;
}

bool ReceivePipeline::retire() {
    if (done_ == opening_ || !slot(done_).task.finished()) return false;
    if (slot(done_).task.state.load() == SegmentTask::State::failed) failed_ = true;
    if (slot(done_).task.direction == SegmentTask::Direction::open) account(slot(done_).task, done_);
    slot(done_).wire = Buffer();
    ++done_;
    --incoming(world_peer_).receives_posted;
    // The bytes reported have no gaps: segments end in order, except for the first, which may not have been opened yet.
    if (copies_ && !failed_ && first_.state.load(std::memory_order_acquire) == SegmentTask::State::done)
        copies_->verified(plan_.offset(done_ - 1) + plan_.size(done_ - 1));
    return true;
}

/// While something is on its way from the peer, MPI needs this thread more than the engine does, unless nothing of this message can arrive
/// before a segment is opened.
void ReceivePipeline::help_to_open() {
    const bool all_has_come =
        opening_ == plan_.count() && incoming(world_peer_).receives_posted == posted_ - done_;
    if (all_has_come)
        help_engine();
    else if (engine_of_process().waiting() > 1 && !engine_of_process().wake_another() && opening_ == posted_)
        help_engine();
}

bool ReceivePipeline::advance() {
    bool moved = true;
    while (moved) {
        moved = start_opening();
        while (retire()) {
        }
        start_receiving();
    }
    if (first_submitted_ && first_.finished()) {
        first_submitted_ = false;
        account(first_, 0);
        if (first_.state.load() == SegmentTask::State::failed) failed_ = true;
    }
    const bool complete = done_ == plan_.count() && !first_submitted_;
    if (!complete) help_to_open();
    return complete;
}

}  // namespace mpisec::shim
