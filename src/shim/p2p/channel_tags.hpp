// Which tags of the channel, the private communicator of all ranks, are used for what.
//
//   lower half   segments of large messages, then partitioned messages, then meetings
//   upper half   collectives on MPI_COMM_WORLD and what is made from it, in whole blocks
//                (collective_context.hpp); at the very top the notices
#pragma once

#include "shim/runtime/state.hpp"

namespace mpisec::shim {

inline int first_barrier_tag() {
    return state.tag_upper_bound / 4;
}
inline int segment_tags() {
    return state.tag_upper_bound / 4 - state.tag_upper_bound / 16;
}
/// For what the ranks of partitioned messages tell each other; the pieces use the tags that follow.
inline int partition_notice_tag() {
    return segment_tags();
}
inline int first_piece_tag() {
    return partition_notice_tag() + 1;
}
inline int piece_tags() {
    return first_barrier_tag() - first_piece_tag();
}
inline int barrier_tags() {
    return state.tag_upper_bound / 2 - first_barrier_tag();
}
inline int first_collective_tag() {
    return state.tag_upper_bound / 2;
}

/// One tag each.
inline int notice_tag() {
    return state.tag_upper_bound - 3;
}
inline int rest_tag() {
    return state.tag_upper_bound - 2;
}
inline int rejection_tag() {
    return state.tag_upper_bound - 1;
}
inline int audit_tag() {
    return state.tag_upper_bound;
}
inline int collective_tags_end() {
    return notice_tag();
}

}  // namespace mpisec::shim
