#include "shim/io/view.hpp"

#include "shim/pmpi/real.hpp"

namespace mpisec::shim::io {

std::shared_ptr<const View> View::of(MPI_Offset disp, MPI_Datatype filetype) {
    constexpr std::size_t most_runs = std::size_t{1} << 22;
    const auto runs = type_map(filetype, most_runs);
    if (!runs || runs->empty()) return nullptr;
    auto view = std::make_shared<View>();
    view->disp_ = disp;
    MPI_Aint lower = 0, extent = 0;
    real.Type_get_extent(filetype, &lower, &extent);
    view->extent_ = extent;
    view->size_ = 0;
    view->pieces_.clear();
    std::int64_t end = 0;
    for (const Run& run : *runs) {
        if (run.offset < end) return nullptr;
        view->pieces_.push_back({run.offset, run.bytes, view->size_});
        view->size_ += run.bytes;
        end = run.offset + run.bytes;
    }
    // The next element's data lies behind this one's.
    return view->extent_ + view->pieces_[0].offset >= end ? view : nullptr;
}

}  // namespace mpisec::shim::io
