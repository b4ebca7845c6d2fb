// Which library serves which mode, key, direction and size, and what is not offered because OpenSSL is as fast.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace mpisec::provider {

/// small <= 512 bytes < medium <= 4 KiB < large: what one call of EVP_CipherUpdate is given.
inline constexpr std::array<std::size_t, 2> class_limits = {512, 4096};
inline constexpr std::size_t size_classes = class_limits.size() + 1;
inline std::size_t size_class(std::size_t n) {
    return n <= class_limits[0] ? 0 : n <= class_limits[1] ? 1 : 2;
}

/// Of one mode and length of key.
struct Choice {
    bool offered = false;
    /// [encrypt][size class]: index in libraries().
    std::array<std::array<std::uint8_t, size_classes>, 2> library{};
};

using Choices = std::map<std::pair<int, std::size_t>, Choice>;  ///< of (mode, bytes of the key)

/// Measured when first asked for, or remembered from an earlier process on this machine.
/// MPISEC_PROVIDER_LIBRARY=NAME: that library for all that it has, measured or not; "all": the fastest of them
/// even where OpenSSL is faster.
const Choices& choices();

/// Measures everything, in at most about a tenth of a second.
Choices calibrate();

/// $MPISEC_CACHE_DIR/provider, else below $XDG_CACHE_HOME or ~/.cache; empty when there is none of these.
std::string choice_file();
/// `measured_on`: what a choice depends on. Whatever the file holds, an index is one of `libraries`.
std::optional<Choices> recall(const std::string& file, const std::string& measured_on, std::size_t libraries);
void remember(const std::string& file, const std::string& measured_on, const Choices& choices);

}  // namespace mpisec::provider
