#include "coll/reduce/node_reduction.hpp"

namespace mpisec::coll {
namespace {

using fabric::PlaintextBuffer;
using fabric::Task;

/// Copies a vector except for one range of it.
void copy_around(fabric::Fabric& fabric, PlaintextBuffer to, PlaintextBuffer from, Range hole) {
    const Range before{0, hole.offset}, after{hole.end(), from.size() - hole.end()};
    for (const Range& part : {before, after})
        if (part.size > 0) fabric.copy(part.of(to), part.of(from));
}

}  // namespace

NodeReduction::NodeReduction(fabric::Fabric& fabric, const fabric::Reduction& reduction, PlaintextBuffer data,
                             Shape shape)
    : fabric_(fabric),
      reduction_(reduction),
      data_(data),
      shape_(shape),
      place_((fabric.local() - shape.first + node_peers()) % node_peers()),
      chunks_(coll::chunks(fabric.topology(), data.size())) {
    for (int i = 0; i < std::min(chunks_, 2); ++i) {
        Bank& one = bank(i);
        one.mine = {&fabric, &reduction, {}, {}};
        if (node_peers() == 1) continue;
        const std::size_t most = largest_slice(data.size(), reduction.element, chunks_);
        one.vectors = fabric.shared_plaintext(most * fabric.node_peers().size());
        one.result = fabric.shared_plaintext(most);
    }
}

Range NodeReduction::cut(const Bank& bank, int pieces) const {
    return place_ < pieces ? slice(bank.data.size(), reduction_.element, pieces, place_) : Range{};
}

PlaintextBuffer NodeReduction::vector_of(const Bank& bank, int local) const {
    return bank.vectors.subspan(static_cast<std::size_t>(local) * bank.result.size(), bank.data.size());
}

PlaintextBuffer NodeReduction::spare(Bank& bank, std::size_t bytes) {
    if (bank.spare.size() < bytes) bank.spare = fabric_.plaintext(bytes);
    return bank.spare.first(bytes);
}

Task NodeReduction::meet(Bank& bank) {
    co_await fabric_.node_barrier();
    bank.in_use = false;
}

Task NodeReduction::run(int chunk) {
    Bank& now = bank(chunk);
    now.data = slice(data_.size(), reduction_.element, chunks_, chunk).of(data_);
    if (node_peers() == 1) {
        now.mine.value = now.data;
        now.mine.spare = spare(now, now.data.size());
        co_return;
    }
    if (now.in_use) co_await meet(now);
    copy_around(fabric_, vector_of(now, fabric_.local()), now.data, part(now));  // what others reduce
    co_await meet(now);
    now.in_use = true;
    now.mine.value = reduce_part(now);
    if (shape_.parts == shape_.slices) {
        now.mine.spare = own_slice(now).of(now.result);
        co_return;
    }
    // Parts and slices begin and end at different places.
    now.mine.settle(part(now).of(now.result));
    co_await fabric_.node_barrier();
    now.mine.value = own_slice(now).of(now.result);
    now.mine.spare = spare(now, now.mine.value.size());
}

PlaintextBuffer NodeReduction::reduce_part(const Bank& bank) {
    const Range own = part(bank);
    if (own.size == 0) return own.of(bank.data);
    auto operand = [&](int local) {
        return own.of(local == fabric_.local() ? bank.data : vector_of(bank, local));
    };
    const std::vector<int> order = order_of_operands(reduction_.commutes, node_peers(), fabric_.local());
    const PlaintextBuffer into = operand(order[0]);
    for (std::size_t k = 1; k < order.size(); ++k) fabric_.combine(reduction_, into, operand(order[k]));
    return into;
}

Task NodeReduction::share(int chunk) {
    Bank& now = bank(chunk);
    const Range own = own_slice(now);
    if (node_peers() == 1) {
        now.mine.settle(now.data);
        co_return;
    }
    const bool in_place = now.mine.value.data() == own.of(now.data).data();
    now.mine.settle(own.of(now.result));
    co_await meet(now);
    copy_around(fabric_, now.data, now.result.first(now.data.size()), in_place ? own : Range{});
}

Task NodeReduction::share_with_first(int chunk) {
    Bank& now = bank(chunk);
    const Range own = own_slice(now);
    const bool first = place_ == 0;
    now.mine.settle(own.of(first ? now.data : now.result));
    if (shape_.slices == 1) co_return;
    co_await meet(now);
    if (first) copy_around(fabric_, now.data, now.result.first(now.data.size()), own);
}

}  // namespace mpisec::coll
