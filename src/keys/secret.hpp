// Memory for keys (S5): locked, left out of core dumps and children, wiped when freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mpisec::keys {

inline constexpr std::size_t secret_bytes = 32;

/// 32 secret bytes in their own locked page(s). Movable, not copyable.
class Secret {
  public:
    Secret();  ///< all zero
    explicit Secret(std::span<const std::uint8_t> bytes);
    Secret(Secret&& other) noexcept;
    Secret& operator=(Secret&& other) noexcept;
    Secret(const Secret&) = delete;
    Secret& operator=(const Secret&) = delete;
    ~Secret();
    static Secret random();  ///< from the operating system's generator; aborts the process when there is none

    std::uint8_t* data() { return bytes_; }
    const std::uint8_t* data() const { return bytes_; }
    std::span<const std::uint8_t, secret_bytes> span() const { return std::span<const std::uint8_t, secret_bytes>(bytes_, secret_bytes); }

  private:
    std::uint8_t* bytes_;
};

/// Overwrites memory in a way that the compiler keeps.
void wipe(void* bytes, std::size_t n);

/// Keeps this process's memory out of core dumps (RLIMIT_CORE aside, PR_SET_DUMPABLE is left to the user): documented in
/// docs/threat-model.md.
}  // namespace mpisec::keys
