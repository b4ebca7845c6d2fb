// The cost model of a cluster: Hockney's (a message of n bytes takes alpha + beta n), with separate parameters between and inside nodes,
// for sealing and for opening (Lahijani et al., IPDPS 2021, sections III and IV.A), and with what nodes with many ranks need besides:
// shared memory, barriers, and a cache that is soon full. Units are seconds, and seconds per byte.
#pragma once

#include <limits>
#include <optional>

namespace mpisec::fabric::sim {

struct Line {
    double alpha = 0;
    double beta = 0;
    std::optional<double> beyond{};  ///< beta of bytes that the cache does not hold; none: the same
    double time(double bytes) const { return alpha + beta * bytes; }
};

struct ClusterModel {
    Line between;  ///< two ranks of different nodes
    Line inside;   ///< two ranks of one node
    Line seal, open;
    Line copy;                 ///< within a rank
    Line reduce;               ///< combining two vectors
    bool shared_link = false;  ///< the ranks of a node share its link: their messages to other nodes go out,
                               ///< and come in, one after the other
    std::optional<Line> shared{};     ///< copying to or from memory that ranks of a node share; none: as copy
    std::optional<double> barrier{};  ///< until all ranks of a node have met; none: alpha of inside
    /// Bytes that a rank may send inside its node, copy, seal, open and combine until its share of the cache is full: from then on `beyond`
    /// applies.
    double cache = std::numeric_limits<double>::infinity();
};

}  // namespace mpisec::fabric::sim
