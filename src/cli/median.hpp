// The median that benchmarks print.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace mpisec::cli {

/// Of two values in the middle their mean. `values` has at least one.
inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace mpisec::cli
