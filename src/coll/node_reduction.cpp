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
      all_data_(data),
      shape_(shape),
      place_((fabric.local() - shape.first + mates()) % mates()),
      turns_(coll::turns(fabric.topology(), data.size())),
      mine_{&fabric, &reduction, {}, {}} {
    if (mates() == 1) return;
    const std::size_t most = largest_slice(data.size(), reduction.element, turns_);
    vectors_ = fabric.shared_plain(most * fabric.mates().size());
    result_ = fabric.shared_plain(most);
}

PlainRoom NodeReduction::vector_of(int local) const {
    return vectors_.subspan(static_cast<std::size_t>(local) * result_.size(), data_.size());
}

PlainRoom NodeReduction::spare(std::size_t bytes) {
    if (spare_.size() < bytes) spare_ = fabric_.plain(bytes);
    return spare_.first(bytes);
}

Task NodeReduction::meet() {
    co_await fabric_.node_barrier();
    is_read_ = false;
}

Task NodeReduction::run(int turn) {
    data_ = slice(all_data_.size(), reduction_.element, turns_, turn).of(all_data_);
    if (mates() == 1) {
        mine_.value = data_;
        mine_.spare = spare(data_.size());
        co_return;
    }
    if (is_read_) co_await meet();
    copy_around(fabric_, vector_of(fabric_.local()), data_, part());  // what others reduce
    co_await meet();
    mine_.value = reduce_part();
    is_read_ = true;
    if (shape_.parts == shape_.slices) {
        mine_.spare = own_slice().of(result());
        co_return;
    }
    // Parts and slices begin and end elsewhere.
    mine_.settle(part().of(result()));
    co_await meet();
    mine_.value = own_slice().of(result());
    mine_.spare = spare(mine_.value.size());
}

PlainRoom NodeReduction::reduce_part() {
    const Range own = part();
    if (own.size == 0) return own.of(data_);
    auto operand = [&](int local) { return own.of(local == fabric_.local() ? data_ : vector_of(local)); };
    const std::vector<int> order = order_of_operands(reduction_.commutes, mates(), fabric_.local());
    const PlainRoom into = operand(order[0]);
    for (std::size_t k = 1; k < order.size(); ++k) fabric_.combine(reduction_, into, operand(order[k]));
    return into;
}

Task NodeReduction::share() {
    const Range own = own_slice();
    if (mates() == 1) {
        mine_.settle(data_);
        co_return;
    }
    const bool in_place = mine_.value.data() == own.of(data_).data();
    mine_.settle(own.of(result()));
    co_await meet();
    copy_around(fabric_, data_, result(), in_place ? own : Range{});
}

Task NodeReduction::share_with_first() {
    const bool first = place_ == 0;
    mine_.settle(own_slice().of(first ? data_ : result()));
    if (shape_.slices == 1) co_return;
    co_await meet();
    if (first) copy_around(fabric_, data_, result(), own_slice());
}

}  // namespace mpisec::coll
