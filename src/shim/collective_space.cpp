#include "shim/collective_space.hpp"

#include <openssl/sha.h>

#include <algorithm>

#include "keys/schedule.hpp"
#include "shim/communicator.hpp"
#include "shim/constants.hpp"
#include "shim/errors.hpp"
#include "shim/real.hpp"
#include "shim/state.hpp"

namespace mpisec::shim {
namespace {

// Collectives under way at one time on a twin are told apart by tag; persistent ones have the upper half.
constexpr int half_of_tags = 16 * 1024;
// Blocking collectives, of which there is one at a time, take turns in slots of their own: their memory stays
// in the caches.
constexpr unsigned blocking_slots = 2;

std::vector<std::int32_t> people_of(MPI_Comm twin) {
    MPI_Group group;
    real.Comm_group(twin, &group);
    std::vector<std::int32_t> people = world_ranks(group);
    real.Group_free(&group);
    return people;
}

/// With MPISEC_SAME_NODE=seal every rank is a node of its own.
fabric::Topology topology_of(const std::vector<std::int32_t>& people) {
    std::vector<int> node;
    for (std::int32_t world : people)
        node.push_back(state.settings.same_node_sealed ? world
                                                       : state.world.node[static_cast<std::size_t>(world)]);
    return fabric::Topology(node);
}

/// So few that the boxes under one key, of all ranks together, stay below its limits (S6; wire::has_own_key).
std::uint64_t collectives_per_epoch(std::size_t ranks) {
    const std::uint64_t boxes = std::min<std::uint64_t>(state.settings.rekey_messages,
                                                        state.settings.rekey_bytes / wire::box_key_threshold);
    return std::clamp<std::uint64_t>(boxes / (wire::common_key_boxes * ranks * ranks), 1, 1u << 31);
}

wire::ContextId persistent_context(const wire::ContextId& context, std::uint64_t number) {
    std::string bytes = "mpisec persistent collective";
    bytes.append(reinterpret_cast<const char*>(context.data()), context.size());
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
    wire::ContextId derived;
    std::copy_n(digest, derived.size(), derived.begin());
    return derived;
}

}  // namespace

std::string memory_name(const wire::ContextId& context, int node) {
    std::array<std::uint8_t, 16> secret;
    keys::node_memory_name(*state.world.master, context, secret);
    std::string name = "/mpisec-";
    constexpr char digits[] = "0123456789abcdef";
    for (std::uint8_t byte : secret) name += {digits[byte >> 4], digits[byte & 15]};
    return name + "-" + std::to_string(node);  // "nodes" of a test may share /dev/shm
}

Twin::~Twin() {
    // MPI_Comm_free is collective. Those that the program leaves to MPI_Finalize go in another order on each
    // rank: MPI frees them.
    if (!state.ending) real.Comm_free(&handle_);
}

CollectiveSpace::CollectiveSpace(MPI_Comm twin, const wire::ContextId& context)
    : twin_(std::make_shared<Twin>(twin)),
      context_(context),
      people_(people_of(twin)),
      topology_(topology_of(people_)),
      first_tag_(0),
      tags_(half_of_tags),
      numbers_in_epoch_(collectives_per_epoch(people_.size())) {
    real.Comm_rank(twin, &rank_);
}

CollectiveSpace::CollectiveSpace(const CollectiveSpace& beside, std::uint64_t number)
    : twin_(beside.twin_),
      context_(persistent_context(beside.context_, number)),
      rank_(beside.rank_),
      people_(beside.people_),
      topology_(beside.topology_),
      first_tag_(half_of_tags + static_cast<int>(number % (half_of_tags - 1))),
      tags_(1),
      numbers_in_epoch_(beside.numbers_in_epoch_) {}

std::unique_ptr<CollectiveSpace> CollectiveSpace::for_persistent(std::uint64_t number) const {
    return std::unique_ptr<CollectiveSpace>(new CollectiveSpace(*this, number));
}

CollectiveTicket CollectiveSpace::next(bool blocking) {
    CollectiveTicket ticket;
    ticket.number = next_number_++;
    const std::uint64_t epoch = ticket.number / numbers_in_epoch_;
    ticket.number_in_epoch = static_cast<std::uint32_t>(ticket.number % numbers_in_epoch_);
    if (!keys_ || keys_->epoch != epoch) {
        keys::CollectiveSecret secret = keys::collective_secret(*state.world.master, context_, epoch);
        keys_ = std::make_shared<CollectiveKeys>(CollectiveKeys{
            epoch, aead::KeySet(state.world.selection, secret.aead.data()), std::move(secret.box)});
    }
    ticket.keys = keys_;
    ticket.tag = first_tag_ + static_cast<int>(ticket.number % static_cast<std::uint64_t>(tags_));
    ticket.slot = next_slot(blocking);
    return ticket;
}

fabric::NodeMemory::Slot* CollectiveSpace::next_slot(bool blocking) {
    const int node = topology_.node(rank_);
    if (topology_.node_size(node) == 1) return nullptr;
    if (!memory_) {
        auto memory = fabric::NodeMemory::attach(memory_name(context_, node),
                                                 static_cast<unsigned>(topology_.node_size(node)));
        if (!memory) abort_job("For collectives, " + memory.error().message + ".");
        memory_.emplace(std::move(*memory));
    }
    const std::uint64_t turn =
        blocking ? next_blocking_++ % blocking_slots
                 : blocking_slots + next_other_++ % (fabric::NodeMemory::slots - blocking_slots);
    return &memory_->slot(static_cast<unsigned>(turn));
}

}  // namespace mpisec::shim
