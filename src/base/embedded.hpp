// Text files that are compiled in (cmake/Embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace mpisec {

struct Embedded {
    std::string_view name;  ///< of the file, without its directory and suffix
    std::string_view text;
};

}  // namespace mpisec
