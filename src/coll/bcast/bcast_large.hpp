// Broadcasts for much data (bcast_pipeline.cpp, bcast_scatter.cpp). They can serve any amount.
#pragma once

#include "coll/collective.hpp"

namespace mpisec::coll {

fabric::Task bcast_pipeline(fabric::Fabric& fabric, const Call& call);
fabric::Task bcast_pipeline_tree(fabric::Fabric& fabric, const Call& call);
fabric::Task bcast_scatter_allgather(fabric::Fabric& fabric, const Call& call);

/// Length of the pieces into which the pipelines cut the data: as many pieces as wanted, where these have between 64 and 256 KiB; where
/// few are wanted, between 128 and 512 KiB.
constexpr std::size_t bcast_segment(std::size_t bytes, std::size_t pieces = 16) {
    constexpr std::size_t page = 4096;
    const std::size_t least = (pieces < 16 ? 128 : 64) << 10, most = 4 * least;
    const std::size_t wanted = (bytes / pieces + page - 1) / page * page;
    return wanted < least ? least : wanted > most ? most : wanted;
}

/// The n-th of the pieces that make up `all`, which have equal length except for the last ones.
inline fabric::PlaintextBuffer piece(fabric::PlaintextBuffer all, std::size_t length, std::size_t n) {
    const std::size_t begin = n * length < all.size() ? n * length : all.size();
    return all.subspan(begin, length < all.size() - begin ? length : all.size() - begin);
}

}  // namespace mpisec::coll
