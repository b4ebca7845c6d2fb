#include "shim/collective/reduction.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <tuple>
#include <vector>

#include "shim/collective/local_reduction.hpp"
#include "shim/p2p/type_contents.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// Under the Guard.
struct OperationsInUse {
    /// How many reductions use an operation, and whether the program has freed it since they began (MPI standard section
    /// 6.9.5: they may finish).
    struct Use {
        int holders = 0;
        bool freed = false;
    };
    std::map<MPI_Op, Use> uses;
    /// What MPI says of each operation with MPI's own types, which are never freed; with elements or without.
    std::map<std::tuple<MPI_Datatype, MPI_Op, bool>, int> checked;
};

namespace {

/// Reduced at a time, unless one element has more: MPI_Reduce_local counts elements as int.
constexpr std::size_t most_bytes = 1 << 30;

/// Room for `count` elements of a type with gaps, addressed as MPI wants it: the first byte of data lies
/// `true_lb` from the address.
class WithGaps {
  public:
    WithGaps(std::size_t count, MPI_Datatype type) {
        MPI_Aint lower, extent, true_lower, true_extent;
        real.Type_get_extent(type, &lower, &extent);
        real.Type_get_true_extent(type, &true_lower, &true_extent);
        // Where the last element is; before the first when the extent is negative.
        const MPI_Aint last = extent * (static_cast<MPI_Aint>(count) - 1);
        const MPI_Aint lowest = true_lower + std::min<MPI_Aint>(last, 0);
        const MPI_Aint bytes = true_extent + (last < 0 ? -last : last);
        memory_.reset(new (std::nothrow) std::uint8_t[static_cast<std::size_t>(bytes)]());
        if (memory_)
            address_ = reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(memory_.get()) - lowest);
    }
    void* address() const { return address_; }
    explicit operator bool() const { return memory_ != nullptr; }

  private:
    std::unique_ptr<std::uint8_t[]> memory_;
    void* address_ = nullptr;
};

class OfProgram final : public fabric::Reduction {
  public:
    OfProgram(MPI_Datatype type, const TypeFacts& facts, MPI_Op op, bool commutative)
        : type_(keep_type(type)), facts_(facts), op_(op) {
        element = std::max<std::size_t>(facts.size, 1);
        commutes = commutative;
        Guard guard;
        ++process.operations->uses[op].holders;
    }
    ~OfProgram() override {
        release_type(type_);
        Guard guard;
        auto& uses = process.operations->uses;
        const auto use = uses.find(op_);
        if (--use->second.holders > 0) return;
        if (use->second.freed) real.Op_free(&op_);
        uses.erase(use);
    }

    bool combine(fabric::PlaintextBuffer inout, fabric::Plaintext in) const override {
        const std::size_t most = std::max<std::size_t>(most_bytes / element, 1) * element;
        for (std::size_t done = 0; done < in.size();) {
            const std::size_t bytes = std::min(in.size() - done, most);
            if (!combine_some(inout.data() + done, in.data() + done, bytes)) return false;
            done += bytes;
        }
        return true;
    }

  private:
    bool combine_some(std::uint8_t* inout, const std::uint8_t* in, std::size_t bytes) const {
        const std::size_t count = bytes / element;
        if (facts_.contiguous) return reduce(in, inout, count);
        const WithGaps left(count, type_), right(count, type_);
        const auto elements = static_cast<MPI_Count>(count);
        return left && right && unpack(in, bytes, left.address(), elements, type_, facts_) == MPI_SUCCESS &&
               unpack(inout, bytes, right.address(), elements, type_, facts_) == MPI_SUCCESS &&
               reduce(left.address(), right.address(), count) &&
               pack(right.address(), elements, type_, facts_, inout) == MPI_SUCCESS;
    }

    bool reduce(const void* in, void* inout, std::size_t count) const {
        const GuardPause pause(!is_predefined(op_));
        return reduce_locally(in, inout, static_cast<int>(count), type_, op_) == MPI_SUCCESS;
    }

    MPI_Datatype type_;
    TypeFacts facts_;
    mutable MPI_Op op_;
};

class OfVectors final : public fabric::Reduction {
  public:
    explicit OfVectors(std::size_t bytes) {
        element = bytes;
        commutes = true;
    }
    bool combine(fabric::PlaintextBuffer inout, fabric::Plaintext in) const override {
        const bool equal = in.size() == inout.size() && std::memcmp(in.data(), inout.data(), in.size()) == 0;
        if (!equal && inout.size() >= equality_flag_bytes) std::memset(inout.data(), 0, equality_flag_bytes);
        return true;
    }
};

/// MPI defines operations on its own types only, and no element of these needs more than this.
constexpr std::size_t largest_element = 64;

}  // namespace

std::unique_ptr<fabric::Reduction> make_equality(std::size_t bytes) {
    return std::make_unique<OfVectors>(bytes + equality_flag_bytes);
}

int check_operation(MPI_Datatype type, MPI_Op op, bool any) {
    if (!is_predefined(op)) return MPI_SUCCESS;
    Guard guard;
    auto& known = process.operations->checked;
    if (auto found = known.find({type, op, any}); found != known.end()) return found->second;
    const int combiner = combiner_of(type);
    if (combiner == MPI_UNDEFINED) return MPI_ERR_TYPE;
    const bool own = is_predefined_combiner(combiner);
    // Open MPI accepts everything when there are no elements; otherwise it accepts no type of the program's.
#if defined(OPEN_MPI)
    if (!own) return any ? MPI_ERR_OP : MPI_SUCCESS;
    const int count = any ? 1 : 0;
#else
    const int count = own && any ? 1 : 0;
#endif
    alignas(largest_element) std::uint8_t from[largest_element] = {}, to[largest_element] = {};
    int code = real.Allreduce(from, to, count, type, op, state.private_self), error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) real.Error_class(code, &error_class);
    if (own) known[{type, op, any}] = error_class;
    return error_class;
}

std::unique_ptr<fabric::Reduction> make_reduction(MPI_Datatype type, const TypeFacts& facts, MPI_Op op) {
    int commutes = 0;
    if (op == constants.op_null || real.Op_commutative(op, &commutes) != MPI_SUCCESS) return nullptr;
    return std::make_unique<OfProgram>(type, facts, op, commutes != 0);
}

int Op_free(MPI_Op* op) {
    Guard guard;
    auto& uses = process.operations->uses;
    const auto use = op ? uses.find(*op) : uses.end();
    if (!op || use == uses.end()) return real.Op_free(op);
    use->second.freed = true;
    *op = constants.op_null;
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim
