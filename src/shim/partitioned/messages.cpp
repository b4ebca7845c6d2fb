#include "shim/partitioned/messages.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "keys/hkdf.hpp"
#include "keys/schedule.hpp"
#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/notice_receive.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {
namespace {

constexpr std::uint64_t automatic_piece_bytes = 512 * 1024, largest_piece_bytes = 1u << 30;
constexpr std::uint64_t bytes_in_flight = 8u << 20, fewest_in_flight = 16, most_in_flight = 256;

/// Which end a notice is for: message, kind and the world rank that sends it.
using Address = std::tuple<wire::ContextId, wire::PartitionNotice::Kind, std::int32_t>;

}  // namespace

/// Under the Guard.
struct PartitionedMessages {
    /// initializations per communicator, and there per ranks and tag
    std::map<wire::ContextId, std::map<std::string, std::uint64_t>> made;
    std::map<Address, PartitionedEnd*> ends;
    std::map<Address, wire::PartitionNotice> early;  ///< arrived before this rank's initialization
    std::unordered_map<std::int32_t, int> lost;      ///< by world rank: MPI error codes
    std::unordered_map<std::int32_t, std::vector<bool>> tags;
    std::unordered_map<std::int32_t, unsigned> early_pieces;
    std::unordered_map<MPI_Request, std::weak_ptr<PartitionedEnd>> requests;
    std::vector<Buffer> abandoned;
    NoticeReceive<wire::PartitionNoticeBytes> hearing;
};

namespace {

template <class T>
void append(std::string& bytes, const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The name of the n-th message of these ranks with this tag on this communicator. The number is never used again, so no other message has
/// the same name.
wire::ContextId name_message(const PartitionedEnd& end) {
    const bool sends = end.direction == PartitionedEnd::sending;
    std::string bytes = "mpisec partitioned";
    append(bytes, end.comm->context);
    const std::int32_t own = realm_of(end.world_peer).rank, peer = rank_in_realm(end.world_peer);
    append(bytes, sends ? own : peer);
    append(bytes, sends ? peer : own);
    append(bytes, static_cast<std::int32_t>(end.spec.tag));
    std::string counted = bytes;
    counted += sends ? 's' : 'r';  // a rank may send to itself
    append(bytes, process.partitioned->made[end.comm->context][counted]++);
    const keys::Digest digest = keys::sha256(keys::as_bytes(bytes));
    wire::ContextId name;
    std::copy_n(digest.begin(), name.size(), name.begin());
    return name;
}

Address address_of(const PartitionedEnd& end) {
    using Kind = wire::PartitionNotice::Kind;
    return {end.name, end.direction == PartitionedEnd::sending ? Kind::ready : Kind::layout, end.world_peer};
}

void deliver(std::int32_t source, const wire::PartitionNotice& notice) {
    PartitionedMessages& all = *process.partitioned;
    const Address address{notice.message, notice.kind, source};
    const auto end = all.ends.find(address);
    if (end != all.ends.end())
        end->second->heard(notice);
    else
        all.early[address] = notice;
}

void tell_rank(std::int32_t world_peer, const wire::PartitionNotice& notice, const char* call) {
    // MPIsec seals the notice at once; inside a node MPI may go on reading it.
    struct Telling final : Operation {
        explicit Telling(const wire::PartitionNoticeBytes& told) : Operation(nullptr), bytes(told) {}
        ~Telling() override { leave_work_list(*this); }
        bool needs_progress() const override { return true; }
        void step() override {
            if (sending->advance()) finish(sending->outcome().error);
        }
        wire::PartitionNoticeBytes bytes;
        std::unique_ptr<Operation> sending;
    };
    auto telling = std::make_unique<Telling>(wire::encode(notice));
    telling->sending =
        begin_send({SendSpec::Mode::standard, telling->bytes.data(),
                    static_cast<MPI_Count>(telling->bytes.size()), constants.byte, rank_in_realm(world_peer),
                    partition_notice_tag(), realm_of(world_peer).channel, call});
    detach(std::move(telling));
}

/// A notice from this rank was not accepted: tells that rank, so that it does not wait for what this rank will not send.
void lose(std::int32_t world_source, int error) {
    if (!process.partitioned->lost.emplace(world_source, error).second) return;
    tell_rank(world_source, {{}, wire::PartitionNotice::Kind::failed, 0, 0, wire::PartitionLayout{}},
              "a partitioned message");
}

int report(Violation violation, std::int32_t world_source, const char* detail) {
    return report_violation(violation, *find_communicator(realm_of(world_source).channel),
                            rank_in_realm(world_source), partition_notice_tag(), detail);
}

/// That rank has not accepted a notice of this process.
void hear_failure(std::int32_t world_source) {
    auto& lost = process.partitioned->lost;
    if (lost.contains(world_source)) return;
    lost[world_source] = report(Violation::reported, world_source, "in partitioned messages of both");
}

/// Takes one notice that has arrived completely, if any has.
bool hear_one() {
    constexpr const char* call = "a partitioned message";
    auto& hearing = process.partitioned->hearing;
    if (!hearing.begun()) {
        const std::vector<Realm*> realms = protected_realms();
        if (std::ranges::none_of(realms, [&](const Realm* realm) {
                return hearing.begin(*realm, MPI_ANY_SOURCE, partition_notice_tag(), call);
            }))
            return false;
    }
    using State = NoticeReceive<wire::PartitionNoticeBytes>::State;
    const State state = hearing.advance();
    if (state == State::under_way) return false;
    int error = state == State::overdue
                    ? report(Violation::malformed, hearing.source,
                             "a message about partitions was announced and did not arrive")
                    : hearing.outcome.error;
    if (error == MPI_SUCCESS && hearing.outcome.bytes != hearing.bytes.size())
        error = report_length_violation(call, hearing.bytes.size());
    wire::PartitionNotice notice;
    if (error == MPI_SUCCESS && !wire::decode(hearing.bytes, most_piece_bytes(), notice))
        error = report_length_violation(call, hearing.bytes.size());
    if (error != MPI_SUCCESS)
        lose(hearing.source, error);
    else if (notice.kind == wire::PartitionNotice::Kind::failed)
        hear_failure(hearing.source);
    else
        deliver(hearing.source, notice);
    return true;
}

}  // namespace

std::uint64_t most_piece_bytes() {
    return state.settings.segment ? std::min<std::uint64_t>(state.settings.segment, largest_piece_bytes)
                                  : automatic_piece_bytes;
}

std::uint64_t pieces_in_flight(const wire::PartitionLayout& layout) {
    return std::clamp(bytes_in_flight / (layout.largest() + 1), fewest_in_flight, most_in_flight);
}

PartitionedEnd::PartitionedEnd(const PartitionedSpec& given, Communicator* known, const TypeFacts& type_facts,
                               bool is_sealed, Direction to_or_from)
    : spec(given),
      comm(known),
      facts(type_facts),
      sealed(is_sealed),
      direction(to_or_from),
      world_peer(known ? known->peer(given.peer) : MPI_PROC_NULL),
      partition_bytes_(static_cast<std::uint64_t>(given.count) * type_facts.size) {
    MPI_Aint lower_bound = 0, extent = 0;
    real.Type_get_extent(spec.type, &lower_bound, &extent);
    partition_extent_ = static_cast<std::ptrdiff_t>(spec.count) * extent;
    if (!comm) return;
    hold_for_persistent(*comm);
    name = name_message(*this);
    process.partitioned->ends[address_of(*this)] = this;
}

PartitionedEnd::~PartitionedEnd() {
    Guard guard;
    release_type(spec.type);
    PartitionedMessages& all = *process.partitioned;
    const auto mine = all.requests.find(request);
    if (mine != all.requests.end() && mine->second.expired()) all.requests.erase(mine);
    if (!comm) return;
    all.ends.erase(address_of(*this));
    release_from_persistent(*comm);
}

void PartitionedEnd::tell(const wire::PartitionNotice& notice) const {
    tell_rank(world_peer, notice, spec.call);
}

int PartitionedEnd::lost() const {
    const auto& lost = process.partitioned->lost;
    if (lost.empty()) return MPI_SUCCESS;
    const auto found = lost.find(world_peer);
    return found == lost.end() ? MPI_SUCCESS : found->second;
}

std::uint8_t* PartitionedEnd::partition(std::uint64_t partition) const {
    return static_cast<std::uint8_t*>(spec.buf) + static_cast<std::ptrdiff_t>(partition) * partition_extent_;
}

StartKeys::StartKeys(const PartitionedEnd& end) {
    keys::partitioned_key(*realm_of(end.world_peer).job_secret, end.name, end.start, key_.data());
}

aead::KeySet StartKeys::take() {
    if (unused_.empty()) return {state.world.selection, key_.data()};
    aead::KeySet keys = std::move(unused_.back());
    unused_.pop_back();
    return keys;
}

void hear_partition_notices() {
    while (hear_one()) {
    }
}

int take_piece_tag(std::int32_t world_source) {
    std::vector<bool>& used = process.partitioned->tags[world_source];
    auto unused = std::find(used.begin(), used.end(), false);
    if (unused == used.end()) {
        if (static_cast<int>(used.size()) == piece_tags()) return -1;
        unused = used.insert(used.end(), false);
    }
    *unused = true;
    return static_cast<int>(unused - used.begin());
}

void give_back_piece_tag(std::int32_t world_source, int tag) {
    process.partitioned->tags[world_source][static_cast<std::size_t>(tag)] = false;
}

unsigned& early_pieces_to(std::int32_t world_peer) {
    return process.partitioned->early_pieces[world_peer];
}

void abandon(std::vector<Buffer> buffers) {
    auto& abandoned = process.partitioned->abandoned;
    std::ranges::move(buffers, std::back_inserter(abandoned));
}

void forget_partitioned(const Communicator& comm) {
    Guard guard;
    process.partitioned->made.erase(comm.context);
}

void forget_partitioned_messages() {
    Guard guard;
    PartitionedMessages& all = *process.partitioned;
    all.hearing.forget();
    std::vector<Buffer> abandoned = std::move(all.abandoned);  // which MPI may still use
    all = {};
    all.abandoned = std::move(abandoned);
}

std::shared_ptr<PartitionedEnd> find_partitioned(MPI_Request request) {
    Guard guard;
    const auto& requests = process.partitioned->requests;
    const auto found = requests.find(request);
    return found == requests.end() ? nullptr : found->second.lock();
}

void enter_partitioned(MPI_Request request, const std::shared_ptr<PartitionedEnd>& end) {
    PartitionedMessages& all = *process.partitioned;
    all.requests[request] = end;
    end->request = request;
    const auto early = end->comm ? all.early.find(address_of(*end)) : all.early.end();
    if (early == all.early.end()) return;
    end->heard(early->second);
    all.early.erase(early);
}

}  // namespace mpisec::shim
