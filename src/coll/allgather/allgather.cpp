#include "coll/allgather/allgather.hpp"

#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

template <fabric::Task (*run)(fabric::Fabric&, const Blocks&)>
fabric::Task on_blocks(fabric::Fabric& fabric, const Call& call) {
    return run(fabric, call.from);
}

}  // namespace

std::span<const Entry> allgather_algorithms() {
    static constexpr Entry all[] = {
        {"naive", on_blocks<allgather_naive>, nullptr, {}, true},
        {"o-ring", on_blocks<allgather_o_ring>, nullptr, {}, true},
        {"o-rd", on_blocks<allgather_o_rd>},
        {"o-rd2", on_blocks<allgather_o_rd2>},
        {"c-ring", on_blocks<allgather_c_ring>},
        {"c-rd", on_blocks<allgather_c_rd>},
        {"hs1", on_blocks<allgather_hs1>},
        {"hs2", on_blocks<allgather_hs2>},
        {"hsc", on_blocks<allgather_hsc>},
        {"pipeline", on_blocks<allgather_pipeline>},
    };
    return all;
}

}  // namespace mpisec::coll
