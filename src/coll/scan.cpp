#include "coll/among.hpp"
#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

fabric::Task scan_naive(fabric::Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await prefix(edges, everybody(fabric), mine);
}

fabric::Task exscan_naive(fabric::Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    const fabric::PlainRoom before = fabric.plain(call.data.size());
    co_await prefix_before(edges, everybody(fabric), mine, before);
    if (fabric.rank() > 0) fabric.copy(call.data, before);
}

}  // namespace

const std::vector<Entry>& scan_algorithms() {
    static const std::vector<Entry> all = {{"naive", scan_naive}};
    return all;
}

const std::vector<Entry>& exscan_algorithms() {
    static const std::vector<Entry> all = {{"naive", exscan_naive}};
    return all;
}

}  // namespace mpisec::coll
