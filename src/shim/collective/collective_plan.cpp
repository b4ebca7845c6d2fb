#include "shim/collective/collective_plan.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "shim/collective/local_reduction.hpp"
#include "shim/collective/reduction.hpp"
#include "shim/p2p/route.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

/// `bytes` after buf; also for MPI_BOTTOM, where pointer arithmetic would start at null.
void* at(const void* buf, MPI_Aint bytes) {
    return reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(buf) + bytes);
}

MPI_Aint extent_of(MPI_Datatype type) {
    MPI_Aint lower = 0, extent = 0;
    real.Type_get_extent(type, &lower, &extent);
    return extent;
}

std::size_t bytes_of(const Elements& elements, const TypeFacts& facts) {
    return static_cast<std::size_t>(elements.count) * facts.size;
}

std::uint8_t* address(const Elements& elements) {
    return static_cast<std::uint8_t*>(elements.start);
}

}  // namespace

ElementBlocks equal_blocks(const void* buf, MPI_Count each, MPI_Datatype type, int blocks) {
    const MPI_Aint step = extent_of(type) * each;
    ElementBlocks all;
    for (int i = 0; i < blocks; ++i) all.push_back({at(buf, step * i), each, type});
    return all;
}

ElementBlocks unequal_blocks(const void* buf, Counts counts, Displacements displacements, MPI_Datatype type,
                             int blocks) {
    const MPI_Aint extent = extent_of(type);
    ElementBlocks all;
    for (int i = 0; i < blocks; ++i) all.push_back({at(buf, extent * displacements[i]), counts[i], type});
    return all;
}

ElementBlocks typed_blocks(const void* buf, Counts counts, Displacements bytes, const MPI_Datatype* types,
                           int blocks) {
    ElementBlocks all;
    for (int i = 0; i < blocks; ++i) all.push_back({at(buf, bytes[i]), counts[i], types[i]});
    return all;
}

CollectivePlan::CollectivePlan(const char* procedure_name, coll::Collective which, MPI_Comm handle)
    : procedure(procedure_name), collective(which), comm(find_communicator(handle)) {
    if (!comm) {
        note(raise_route(route_unknown(handle), procedure));
        raised_ = true;
        return;
    }
    Guard guard;
    hold(*comm);
}

CollectivePlan::~CollectivePlan() {
    for (MPI_Datatype kept : kept_types_) release_type(kept);
    Guard guard;
    if (comm) release(*comm);
}

Elements CollectivePlan::keep(const Elements& elements) {
    kept_types_.push_back(keep_type(elements.type));
    return elements;
}

bool CollectivePlan::check_root(int root, int size) {
    if (root < 0 || root >= size) note(MPI_ERR_ROOT);
    return good();
}

void CollectivePlan::reduce(MPI_Datatype type, MPI_Op op, bool any) {
    TypeFacts facts;
    if (!type_facts(type, facts)) return note(MPI_ERR_TYPE);
    if (int code = check_operation(type, op, any); code != MPI_SUCCESS) return note(code);
    if (!can_reduce_locally()) {
        say(std::string(procedure) +
            ": reductions need MPI_Init here, because this library's MPI_Reduce_local crashes without it; "
            "call MPI_Init");
        return note(MPI_ERR_UNSUPPORTED_OPERATION);
    }
    auto reduction = make_reduction(type, facts, op);
    if (!reduction) return note(MPI_ERR_OP);
    reduction_ = std::move(reduction);
    call.reduction = reduction_.get();
}

void CollectivePlan::reduce_equality(const Elements& own, int* result) {
    static constexpr std::uint64_t equal = 1;
    static_assert(sizeof equal == equality_flag_bytes);
    TypeFacts facts;
    if (!facts_of(own, facts)) return;
    reduction_ = make_equality(bytes_of(own, facts));
    call.reduction = reduction_.get();
    call.data = scratch(reduction_->element);
    pack({const_cast<std::uint64_t*>(&equal), 1, constants.uint64}, {sizeof equal, true}, call.data.data());
    pack(own, facts, call.data.data() + equality_flag_bytes);
    if (result)
        finally([from = call.data.data(), result] {
            *result = load_le<std::uint64_t>(from) != 0;
            return MPI_SUCCESS;
        });
}

void CollectivePlan::forbid_same(const void* send, const void* receive, MPI_Count count) {
    if (send != receive || !send || send == MPI_IN_PLACE || count <= 0) return;
#if defined(OPEN_MPI)
    if (collective == coll::Collective::allreduce) at_start_ = MPI_ERR_BUFFER;
    if (collective == coll::Collective::reduce) at_start_ = MPI_ERR_ARG;
#else
    at_start_ = MPI_ERR_BUFFER;
#endif
}

bool CollectivePlan::facts_of(const Elements& elements, TypeFacts& facts) {
    if (elements.count < 0) note(MPI_ERR_COUNT);
#if !defined(OPEN_MPI)  // Open MPI refuses this
    if (elements.count == 0 && elements.type == constants.datatype_null) {
        facts = {0, true};
        return good();
    }
#endif
    if (!buffer_facts(elements.start, elements.type, facts)) note(MPI_ERR_TYPE);
    return good();
}

bool CollectivePlan::facts_of(const ElementBlocks& blocks, std::vector<TypeFacts>& facts, bool& contiguous) {
    contiguous = true;
    for (const Elements& block : blocks) {
        if (!facts_of(block, facts.emplace_back())) return false;
        contiguous = contiguous && (facts.back().contiguous || block.count == 0);
    }
    return true;
}

void CollectivePlan::pack(const Elements& elements, const TypeFacts& facts, std::uint8_t* to) {
    if (elements.count > 0 && facts.size > 0) packings_.push_back({keep(elements), facts, to});
}

fabric::PlaintextBuffer CollectivePlan::scratch(std::size_t bytes) {
    scratch_.push_back({Buffer(bytes + 1), bytes});
    return {scratch_.back().room.data(), bytes};
}

fabric::PlaintextBuffer CollectivePlan::scratch(const Elements& from) {
    TypeFacts facts;
    if (!facts_of(from, facts)) return {};
    const fabric::PlaintextBuffer room = scratch(bytes_of(from, facts));
    pack(from, facts, room.data());
    return room;
}

fabric::Plaintext CollectivePlan::give(const Elements& elements) {
    TypeFacts facts;
    if (!facts_of(elements, facts)) return {};
    if (facts.contiguous) return {address(elements), bytes_of(elements, facts)};
    return scratch(elements);
}

fabric::Plaintext CollectivePlan::give_to_nobody(const Elements& elements) {
    TypeFacts facts;
    if (!facts_of(elements, facts)) return {};
    return {address(elements), bytes_of(elements, facts)};
}

fabric::PlaintextBuffer CollectivePlan::take(const Elements& elements) {
    TypeFacts facts;
    if (!facts_of(elements, facts)) return {};
    if (facts.contiguous) return {address(elements), bytes_of(elements, facts)};
    const fabric::PlaintextBuffer room = scratch(bytes_of(elements, facts));
    unpack_later(room, elements);
    return room;
}

void CollectivePlan::unpack_later(fabric::Plaintext from, const Elements& to) {
    TypeFacts facts;
    if (!facts_of(to, facts)) return;
    unpackings_.push_back({from.data(), from.size(), keep(to), facts});
}

fabric::PlaintextBuffer CollectivePlan::change(const Elements& from, const Elements& to) {
    TypeFacts source, facts;
    if (!facts_of(from, source) || !facts_of(to, facts)) return {};
    if (!facts.contiguous) {
        const fabric::PlaintextBuffer room = scratch(from);
        if (good()) unpack_later(room, to);
        return room;
    }
    const fabric::PlaintextBuffer room{address(to), bytes_of(to, facts)};
    if (from.start != to.start) pack(from, source, room.data());
    return room;
}

/// Offsets are from the lowest address of any block.
coll::Blocks CollectivePlan::in_place(const ElementBlocks& blocks,
                                      const std::vector<TypeFacts>& facts) const {
    coll::Blocks bytes;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        bytes.size.push_back(bytes_of(blocks[i], facts[i]));
        if (bytes.size.back() > 0 && (!bytes.base || address(blocks[i]) < bytes.base))
            bytes.base = address(blocks[i]);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i)
        bytes.offset.push_back(
            bytes.size[i] == 0 ? 0 : static_cast<std::size_t>(address(blocks[i]) - bytes.base));
    return bytes;
}

coll::Blocks CollectivePlan::packed(const ElementBlocks& blocks, const std::vector<TypeFacts>& facts) {
    coll::Blocks bytes;
    std::size_t total = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        bytes.offset.push_back(total);
        bytes.size.push_back(bytes_of(blocks[i], facts[i]));
        total += bytes.size.back();
    }
    bytes.base = scratch(total).data();
    return bytes;
}

coll::Blocks CollectivePlan::give(const ElementBlocks& blocks) {
    std::vector<TypeFacts> facts;
    bool contiguous = true;
    if (!facts_of(blocks, facts, contiguous)) return {};
    if (contiguous) return in_place(blocks, facts);
    coll::Blocks bytes = packed(blocks, facts);
    for (std::size_t i = 0; i < blocks.size(); ++i) pack(blocks[i], facts[i], bytes.base + bytes.offset[i]);
    return bytes;
}

namespace {

/// A program whose receive blocks overlap is erroneous, but MPI libraries do not notice it and such programs run. Each
/// block is then received in memory of its own, where no other block changes it before it is verified.
bool overlap(const coll::Blocks& blocks) {
    std::vector<std::pair<std::size_t, std::size_t>> places;  // offset, size
    bool ascending = true;
    std::size_t end = 0;
    for (std::size_t i = 0; i < blocks.size.size(); ++i) {
        if (blocks.size[i] == 0) continue;
        ascending = ascending && blocks.offset[i] >= end;
        end = blocks.offset[i] + blocks.size[i];
    }
    if (ascending) return false;
    for (std::size_t i = 0; i < blocks.size.size(); ++i)
        if (blocks.size[i] > 0) places.emplace_back(blocks.offset[i], blocks.size[i]);
    std::ranges::sort(places);
    for (std::size_t i = 1; i < places.size(); ++i)
        if (places[i].first < places[i - 1].first + places[i - 1].second) return true;
    return false;
}

}  // namespace

coll::Blocks CollectivePlan::take(const ElementBlocks& blocks, int kept) {
    std::vector<TypeFacts> facts;
    bool contiguous = true;
    if (!facts_of(blocks, facts, contiguous)) return {};
    if (contiguous)
        if (coll::Blocks own = in_place(blocks, facts); !overlap(own)) return own;
    coll::Blocks bytes = packed(blocks, facts);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const fabric::PlaintextBuffer room{bytes.base + bytes.offset[i], bytes.size[i]};
        if (static_cast<int>(i) == kept)
            pack(blocks[i], facts[i], room.data());
        else if (!room.empty())
            unpack_later(room, blocks[i]);
    }
    return bytes;
}

coll::Blocks CollectivePlan::scratch(const ElementBlocks& blocks) {
    std::vector<TypeFacts> facts;
    bool contiguous = true;
    if (!facts_of(blocks, facts, contiguous)) return {};
    coll::Blocks bytes = packed(blocks, facts);
    for (std::size_t i = 0; i < blocks.size(); ++i) pack(blocks[i], facts[i], bytes.base + bytes.offset[i]);
    return bytes;
}

void CollectivePlan::copy(const Elements& from, const Elements& to) {
    TypeFacts source, destination;
    if (!facts_of(from, source) || !facts_of(to, destination)) return;
    const std::size_t bytes = bytes_of(from, source);
    if (bytes > bytes_of(to, destination)) {
        // In a gather or scatter only the root gets the error, as in plain MPI: its own block concerns no other rank.
        using enum coll::Collective;
        (collective == gather || collective == scatter ? at_end_ : at_start_) = MPI_ERR_TRUNCATE;
        return;
    }
    const bool alike = from.type == to.type && from.count == to.count;
    if (!comm->inter && alike) forbid_same(from.start, to.start, static_cast<MPI_Count>(bytes));
    if (bytes > 0) copies_.emplace_back(keep(from), keep(to));
}

namespace {

int copy_elements(const Elements& from, const Elements& to) {
    TypeFacts source, destination;
    buffer_facts(from.start, from.type, source);
    buffer_facts(to.start, to.type, destination);
    const std::size_t bytes = bytes_of(from, source);
    if (source.contiguous && destination.contiguous) {  // they may overlap: MPI forbids it, programs do it
        if (bytes > 0) std::memmove(address(to), address(from), bytes);
        return MPI_SUCCESS;
    }
    if (source.contiguous) return unpack(address(from), bytes, to.start, to.count, to.type, destination);
    if (destination.contiguous) return pack(from.start, from.count, from.type, source, address(to));
    Buffer between(bytes);
    if (int code = pack(from.start, from.count, from.type, source, between.data()); code != MPI_SUCCESS)
        return code;
    return unpack(between.data(), bytes, to.start, to.count, to.type, destination);
}

}  // namespace

void CollectivePlan::load() {
    error = at_start_;
    if (good()) fill();
    if (good()) return;
    // The call goes on for the sake of the other ranks, which must not get what the memory held before.
    for (Scratch& each : scratch_) std::memset(each.room.data(), 0, each.bytes);
}

void CollectivePlan::fill() {
    // The copies come first, because this rank's own block is packed from the user's receive buffer.
    for (const auto& [from, to] : copies_) note(copy_elements(from, to));
    for (const auto& [from, facts, to] : packings_) {
        if (!facts.contiguous)
            note(shim::pack(from.start, from.count, from.type, facts, to));
        else if (from.count > 0 && facts.size > 0)
            std::memmove(to, address(from), bytes_of(from, facts));
    }
}

int CollectivePlan::finish() {
    note(at_end_);
    if (last_) note(last_());
    for (const Unpacking& one : unpackings_)
        if (good()) note(unpack(one.from, one.bytes, one.to.start, one.to.count, one.to.type, one.facts));
    return error;
}

}  // namespace mpisec::shim
