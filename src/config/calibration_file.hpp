// Where the measured speeds of the crypto libraries are kept.
#pragma once

#include <string>

#include "config/settings.hpp"

namespace mpisec::config {

/// Empty, so that they are not kept, where there is neither MPISEC_CACHE_DIR nor a home directory.
inline std::string calibration_path(const Settings& settings) {
    return settings.cache_dir.empty() ? "" : settings.cache_dir + "/calibration.json";
}

}  // namespace mpisec::config
