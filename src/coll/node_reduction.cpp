#include "coll/node_reduction.hpp"

namespace mpisec::coll {
namespace {

using fabric::PlainRoom;
using fabric::Task;

/// Copies a vector but for one range of it.
void copy_around(fabric::Fabric& fabric, PlainRoom to, PlainRoom from, Range hole) {
    const Range before{0, hole.offset}, after{hole.end(), from.size() - hole.end()};
    for (const Range& part : {before, after})
        if (part.size > 0) fabric.copy(part.of(to), part.of(from));
}

}  // namespace

NodeReduction::NodeReduction(fabric::Fabric& fabric, const fabric::Reduction& reduction, PlainRoom data,
                             Shape shape)
    : fabric_(fabric),
      reduction_(reduction),
      data_(data),
      shape_(shape),
      place_((fabric.local() - shape.first + static_cast<int>(fabric.mates().size())) %
             static_cast<int>(fabric.mates().size())),
      mine_{&fabric, &reduction, {}, {}} {
    if (alone()) return;
    vectors_ = fabric.shared_plain(data.size() * fabric.mates().size());
    result_ = fabric.shared_plain(data.size());
}

PlainRoom NodeReduction::vector_of(int local) const {
    return vectors_.subspan(static_cast<std::size_t>(local) * data_.size(), data_.size());
}

/// All but the part that the rank reduces itself.
void NodeReduction::publish() {
    const Range own = place_ < shape_.parts ? part(place_) : Range{};
    copy_around(fabric_, vector_of(fabric_.local()), data_, own);
}

PlainRoom NodeReduction::reduce_part() {
    const Range own = part(place_);
    auto operand = [&](int local) { return own.of(local == fabric_.local() ? data_ : vector_of(local)); };
    const std::vector<int> order =
        order_of_operands(reduction_.commutes, static_cast<int>(fabric_.mates().size()), fabric_.local());
    const PlainRoom into = operand(order[0]);
    for (std::size_t k = 1; k < order.size() && !into.empty(); ++k)
        fabric_.combine(reduction_, into, operand(order[k]));
    return into;
}

Task NodeReduction::run() {
    if (alone()) {
        mine_ = partial(fabric_, reduction_, data_);
        co_return;
    }
    publish();
    co_await fabric_.node_barrier();
    if (place_ < shape_.parts) mine_.value = reduce_part();
    if (shape_.parts == shape_.slices) {
        if (has_slice()) mine_.spare = slice_at(place_).of(result_);
        co_return;
    }
    // Parts and slices begin and end elsewhere.
    if (place_ < shape_.parts) mine_.settle(part(place_).of(result_));
    co_await fabric_.node_barrier();
    if (has_slice()) mine_ = partial(fabric_, reduction_, slice_at(place_).of(result_));
}

Task NodeReduction::share() {
    if (alone()) {
        mine_.settle(data_);
        co_return;
    }
    Range in_place;  // of data
    if (has_slice()) {
        const Range own = slice_at(place_);
        if (mine_.value.data() == own.of(data_).data()) in_place = own;
        mine_.settle(own.of(result_));
    }
    co_await fabric_.node_barrier();
    copy_around(fabric_, data_, result_, in_place);
}

Task NodeReduction::share_with_first() {
    const Range own = has_slice() ? slice_at(place_) : Range{};
    if (has_slice()) mine_.settle(own.of(place_ == 0 ? data_ : result_));
    if (shape_.slices == 1) co_return;
    co_await fabric_.node_barrier();
    if (place_ == 0) copy_around(fabric_, data_, result_, own);
}

}  // namespace mpisec::coll
