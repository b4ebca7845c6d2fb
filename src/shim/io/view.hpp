// What a rank sees of a file (MPI standard section 14.3), as runs of bytes: for collective access, in which
// ranks access data for each other.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "shim/p2p/type_map.hpp"

namespace mpisec::shim::io {

class View {
  public:
    /// The view of all bytes.
    View() = default;
    /// Null where the runs of the file type are not known, are too many, or do not ascend.
    static std::shared_ptr<const View> of(MPI_Offset disp, MPI_Datatype filetype);

    /// Calls each(offset in the file, bytes) for `bytes` bytes of the data, from its byte `from` on; what is one run in
    /// the file is passed as one.
    template <class Each>
    void for_each_run(std::int64_t from, std::int64_t bytes, Each each) const {
        std::int64_t tile = from / size_, within = from % size_;
        auto piece = std::ranges::upper_bound(pieces_, within, {}, &Piece::before) - 1;
        std::int64_t skip = within - piece->before;
        Run run{0, 0};
        while (bytes > 0) {
            const std::int64_t offset = disp_ + tile * extent_ + piece->offset + skip;
            const std::int64_t here = std::min(piece->bytes - skip, bytes);
            if (run.bytes > 0 && run.offset + run.bytes == offset) {
                run.bytes += here;
            } else {
                if (run.bytes > 0) each(run.offset, run.bytes);
                run = {offset, here};
            }
            bytes -= here;
            skip = 0;
            if (++piece == pieces_.end()) {
                piece = pieces_.begin();
                ++tile;
            }
        }
        if (run.bytes > 0) each(run.offset, run.bytes);
    }

  private:
    struct Piece {
        std::int64_t offset, bytes;
        std::int64_t before;  ///< bytes of data in the pieces before this one
    };
    static constexpr std::int64_t whole = std::int64_t{1} << 62;
    std::int64_t disp_ = 0, extent_ = whole, size_ = whole;
    std::vector<Piece> pieces_{{0, whole, 0}};  ///< of one element of the file type
};

}  // namespace mpisec::shim::io
