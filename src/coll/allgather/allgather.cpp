#include "coll/allgather/allgather.hpp"

namespace mpisec::coll {

const std::vector<AllgatherEntry>& allgathers() {
    static const std::vector<AllgatherEntry> all = {
        {"naive", allgather_naive}, {"o-ring", allgather_o_ring}, {"o-rd", allgather_o_rd},
        {"o-rd2", allgather_o_rd2}, {"c-ring", allgather_c_ring}, {"c-rd", allgather_c_rd},
        {"hs1", allgather_hs1},     {"hs2", allgather_hs2},       {"hsc", allgather_hsc},
    };
    return all;
}

}  // namespace mpisec::coll
