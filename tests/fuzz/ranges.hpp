// What holds for settings whatever they were read from (docs/configuration.md).
#pragma once

#include "check.hpp"
#include "config/settings.hpp"

namespace mpisec::fuzz {

inline void check_ranges(const config::Settings& settings) {
    FUZZ_CHECK(settings.threshold == 0 ||
               (settings.threshold >= 1024 && settings.threshold <= 256 * 1024 * 1024));
    FUZZ_CHECK(settings.segment == 0 || (settings.segment >= 1024 && settings.segment <= 256 * 1024 * 1024));
    FUZZ_CHECK(settings.workers >= -1 && settings.workers <= 256);
    FUZZ_CHECK(settings.stall_seconds >= 0 && settings.stall_seconds <= 1e6);
    FUZZ_CHECK(settings.rekey_messages >= 1 && settings.rekey_messages <= 1ull << 32);
    FUZZ_CHECK(settings.rekey_bytes >= 1 && settings.rekey_bytes <= 1ull << 40);
    FUZZ_CHECK(settings.stats.empty() || settings.stats == "1" || settings.stats.starts_with("json:"));
    FUZZ_CHECK(!config::describe(settings).empty());
}

}  // namespace mpisec::fuzz
