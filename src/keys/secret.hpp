// Memory for keys (S5): locked, left out of core dumps and children, wiped when freed.
//
// Secrets live in slots of base/locked_slab.hpp, which a forked child finds zeroed. What is not covered: the key schedules that some
// crypto libraries keep in memory of their own (docs/threat-model.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mpisec::keys {

inline constexpr std::size_t secret_bytes = 32;

/// 32 secret bytes in locked memory. Movable, not copyable; data() of a moved-from Secret is null.
/// Constructing one aborts the process with a sentence when there is no memory.
class Secret {
  public:
    Secret();  ///< all zero
    explicit Secret(std::span<const std::uint8_t, secret_bytes> bytes);
    Secret(Secret&& other) noexcept;
    Secret& operator=(Secret&& other) noexcept;
    Secret(const Secret&) = delete;
    Secret& operator=(const Secret&) = delete;
    ~Secret();
    /// False in a forked child, for a secret of its parent: the secret's bytes are all zero there. Nothing may be derived from it
    /// (schedule.cpp checks that).
    bool alive() const;
    static Secret random();  ///< from the operating system's generator; aborts the process when there is none

    std::uint8_t* data() { return bytes_; }
    const std::uint8_t* data() const { return bytes_; }
    std::span<const std::uint8_t, secret_bytes> span() const {
        return std::span<const std::uint8_t, secret_bytes>(bytes_, secret_bytes);
    }

  private:
    std::uint8_t* bytes_;
};

/// Overwrites memory in a way that the compiler keeps.
void wipe(void* bytes, std::size_t n);

/// Fills memory from the operating system's generator (getrandom(2)); aborts the process when there is none.
void random_bytes(void* bytes, std::size_t n);

/// Ends the process with a sentence: a child asked for something that depends on its parent's keys.
[[noreturn]] void die_of_wiped_secret();

}  // namespace mpisec::keys
