// The cost model of a cluster: Hockney's (a message of n bytes takes alpha + beta n), with parameters of
// their own between and inside nodes, for sealing and for opening (seeds/002, sections III and IV.A).
// Seconds, and seconds per byte.
#pragma once

namespace mpisec::fabric::sim {

struct Line {
    double alpha = 0;
    double beta = 0;
    double time(double bytes) const { return alpha + beta * bytes; }
};

struct ClusterModel {
    Line between;  ///< two ranks of different nodes
    Line inside;   ///< two ranks of one node
    Line seal, open;
    Line copy;                 ///< within a rank or its node's shared memory
    Line reduce;               ///< combining two vectors
    bool shared_link = false;  ///< the ranks of a node share its link: their messages to other nodes go out,
                               ///< and come in, one after the other
};

}  // namespace mpisec::fabric::sim
