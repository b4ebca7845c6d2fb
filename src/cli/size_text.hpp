// "16 KiB": sizes in tables.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace mpisec::cli {

/// The size in the largest binary unit up to MiB that divides it.
inline std::string size_text(std::uint64_t bytes) {
    if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
    if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
    return fmt::format("{} B", bytes);
}

}  // namespace mpisec::cli
