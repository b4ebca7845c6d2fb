// The segments of one large message on their way: a ring of slots in which segment i+1 is sealed while
// segment i is sent, or received while segment i is opened (docs/protocol.md, "Large message").
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "engine/engine.hpp"
#include "shim/process/process.hpp"
#include "shim/runtime/pool.hpp"
#include "shim/runtime/trace.hpp"
#include "wire/stream.hpp"

namespace mpisec::shim {

class CopiesFromDevice;
class CopiesToDevice;

/// Segments of one message in flight at once; more of them hide more latency and hold more memory (slots * (segment + 16) bytes).
inline constexpr std::uint64_t pipeline_slots = 8;
/// Segments of all large messages to one rank in flight at once, and receives posted for those from one rank. A link carries one after the
/// other, so more in flight adds cold buffers, not throughput. Older messages go first; but the program may receive them later than others
/// (a probe has matched them, or a receive for which it does not wait). So after `stall_limit` passes in which nothing has left, messages
/// that have nothing in flight send one segment at a time: their receiver may be the one that waits.
inline constexpr unsigned most_sends_in_flight = 16, most_receives_posted = 24, stall_limit = 256;

class Pipeline {
  public:
    /// `message_key`: key_bytes bytes. The peer is a world rank: segments travel on the private channel.
    Pipeline(const std::uint8_t* message_key, const wire::SegmentPlan& plan, int world_peer, int channel_tag);
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;
    ~Pipeline();
    const wire::SegmentPlan& plan() const { return plan_; }
    engine::MessageKey& key() { return key_; }
    void count_as(Traffic traffic) { traffic_ = traffic; }
    /// The message's counter between the two ranks, for the trace.
    void name_message(std::uint64_t counter) { message_ = static_cast<std::int64_t>(counter); }

  protected:
    struct Slot {
        Buffer wire;
        MPI_Request request;
        std::uint64_t handed_over = 0;  ///< to MPI: traced
        engine::SegmentTask task;
    };
    Slot& slot(std::uint64_t segment) { return slots_[segment % pipeline_slots]; }
    /// What a span of the trace says of a segment.
    TraceFacts facts(std::uint64_t segment) const;
    void fill_task(engine::SegmentTask& task, engine::SegmentTask::Direction direction, std::uint64_t segment,
                   std::uint8_t* to, const std::uint8_t* from);
    /// The time that a finished task took, wherever it ran: for the statistics and the trace.
    void account(const engine::SegmentTask& task, std::uint64_t segment) const;

    wire::SegmentPlan plan_;
    engine::MessageKey key_;
    Traffic traffic_ = Traffic::point_to_point;
    int world_peer_;
    MPI_Comm channel_;  ///< of the peer's realm
    int channel_rank_;
    int channel_tag_;
    std::unique_ptr<Slot[]> slots_;
    std::int64_t message_ = -1;  ///< counter, for the trace
};

/// Segments 1… of a message being sent from `plaintext`.
class SendPipeline : public Pipeline {
  public:
    SendPipeline(const std::uint8_t* message_key, const wire::SegmentPlan& plan, int world_peer,
                 int channel_tag, const std::uint8_t* plaintext, bool synchronous);
    ~SendPipeline();
    /// The receiver has matched the message: from now on its segments count against the limit, and wait for those of older messages. Before
    /// that they do not, because there may be nobody to take them.
    void limit_in_flight() { limited_ = true; }
    /// The plaintext is still being copied from a GPU's memory, unless this is null. Segment 0 is already there.
    void copied_by(CopiesFromDevice* copies) { copies_ = copies; }
    /// Lets workers, if there are any, seal what they can while the calling thread seals header and segment 0.
    /// Within a SealingScope.
    void start_workers();
    /// Seals segment 0 into `to` (first_bytes + 16 bytes).
    bool seal_first(std::uint8_t* to);
    /// True when every segment was sent. `error` gets an MPI error code when a send fails.
    bool advance(int& error);
    /// Nobody receives the rest. Nothing reads the plaintext any more, but MPI still has some of the slots, so the object must stay.
    void abandon();

  private:
    bool may_start_segment();
    bool start_sealing();
    bool has_arrived(std::uint64_t segment);
    bool submit_next();
    bool start_sending(int& error);
    bool retire(int& error);
    void help_to_seal();

    const std::uint8_t* plaintext_;
    CopiesFromDevice* copies_ = nullptr;
    bool synchronous_;  ///< MPI_Ssend: the last segment's match tells that the receive has started (M9)
    bool limited_ = false;
    bool goes_alone_ = false;       ///< was held back too often: one segment at a time, whatever others do
    std::uint64_t sealed_ = 1;      ///< segments below were given to the engine
    std::uint64_t sent_ = 1;        ///< segments below were given to MPI
    std::uint64_t done_ = 1;        ///< segments below have left
    std::uint64_t waited_for_ = 0;  ///< the last segment that MPI had to wait for
    unsigned waits_ = 0;            ///< how many it had to wait for
};

/// Segments 0… of a message being received into `plaintext`; null when it is thrown away (truncation), so
/// that the sender is not left waiting.
class ReceivePipeline : public Pipeline {
  public:
    ReceivePipeline(const std::uint8_t* message_key, const wire::SegmentPlan& plan, int world_peer,
                    int channel_tag, std::uint8_t* plaintext);
    ~ReceivePipeline();
    /// Verified bytes are reported to `copies`, unless that is null.
    void copied_on_by(CopiesToDevice* copies) { copies_ = copies; }
    /// Opens segment 0 from `wire` (first_bytes + 16 bytes), which must stay until complete.
    void open_first(const std::uint8_t* wire);
    /// True when every segment was received and opened, or thrown away.
    bool advance();
    /// Nobody sends the rest. Nothing writes to the user's buffer any more, but MPI may still have some of the slots, so the object must
    /// stay.
    void abandon();
    /// A segment did not authenticate: it leaves zeros, no later one is opened any more (except those that workers had already begun), and
    /// the rest is received and thrown away.
    bool failed() const { return failed_; }

  private:
    void wait_for_workers();
    void start_receiving();
    bool start_opening();
    bool retire();
    void help_to_open();

    std::uint8_t* plaintext_;
    CopiesToDevice* copies_ = nullptr;
    engine::SegmentTask first_;
    bool first_submitted_ = false;
    bool failed_ = false;
    std::uint64_t posted_ = 1;   ///< segments below have a posted receive
    std::uint64_t opening_ = 1;  ///< segments below were given to the engine
    std::uint64_t done_ = 1;     ///< segments below are in place
};

}  // namespace mpisec::shim
