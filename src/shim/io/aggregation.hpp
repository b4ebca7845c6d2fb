// Collective access in two phases: ranks exchange data, sealed, so that some of the ranks, the aggregators, each
// have all data of one part of the file and read or write it in long runs.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "shim/io/file.hpp"

namespace mpisec::shim::io {

/// A piece of this rank's packed data, and where it lies in the file.
struct Piece {
    std::int64_t offset, bytes;
    std::int64_t place;  ///< of its first byte in the packed data
};

/// How a collective access is divided among aggregators; the same on all ranks.
struct Division {
    int aggregators = 0;              ///< ranks 0, 1, …; 0: every rank accesses the file by itself
    std::int64_t first = 0, end = 0;  ///< of all data in the file
    std::int64_t domain = 0;          ///< bytes of the file that one aggregator serves
    std::int64_t window = 0;          ///< bytes of these at a time
    std::int64_t file_size = 0;       ///< the largest size that a rank has seen
    std::int64_t rounds() const { return (domain + window - 1) / window; }
};

/// What a rank tells the others before a collective access.
struct Offer {
    std::int64_t first = 0, end = 0;  ///< of its data in the file
    std::int64_t pieces = 0, bytes = 0;
    std::int64_t file_size = 0;
    std::int64_t window = 0;  ///< bytes of an aggregator at a time, by this rank's hints: the fewest count
    std::int32_t able = 0;    ///< it can tell where its data lies
    std::int32_t hint = 0;    ///< romio_cb_write or romio_cb_read: 1 enable, -1 disable
};
Division divide(const std::vector<Offer>& offers);

/// `data`: the packed data. Returns an error code without raising it; all ranks must call agree() afterwards.
int write_in_phases(const char* call, File& file, const Division& division, const std::vector<Piece>& pieces,
                    const std::uint8_t* data);
int read_in_phases(const char* call, File& file, const Division& division, const std::vector<Piece>& pieces,
                   std::uint8_t* data);

}  // namespace mpisec::shim::io
