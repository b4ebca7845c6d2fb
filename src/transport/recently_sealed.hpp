// The messages that MPIsec sealed last, by 16 bytes of their ciphertext. MPI libraries copy messages of some KiB behind a header of their own
// before they write them to a socket. There a sealed message is recognized, so that its bytes need not be authenticated twice.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mpisec::transport {

class RecentlySealed {
  public:
    /// Shorter ones are not worth it: their bytes are authenticated again.
    static constexpr std::size_t shortest = 8192;
    /// Where an MPI library's header ends at the latest.
    static constexpr std::size_t longest_header = 128;

    /// `wire`: nonce, if it travels, ciphertext and tag, as given to the MPI library. Any thread. A message whose place another thread is writing
    /// to is not noted, and authenticated twice.
    void note(const std::uint8_t* wire, std::size_t n);
    /// Returns the offset from which on the bytes belong to one sealed message, from its first byte on; `n` if none do. What could be the MPI library's
    /// header, up to its longest length, never counts as sealed. Any thread.
    std::size_t sealed_from(const std::uint8_t* bytes, std::size_t n) const;

  private:
    std::size_t begins_at(const std::uint8_t* bytes, std::size_t n) const;
    struct Message {
        std::atomic<std::uint64_t> version{0};  ///< odd while a thread writes here
        std::atomic<std::size_t> bytes{0};
        std::array<std::atomic<std::uint64_t>, 2> mark{};
    };
    bool is_one_of_them(const std::uint8_t* bytes, std::size_t n) const;

    std::array<Message, 16> messages_;
    std::atomic<unsigned> next_{0};
    mutable std::atomic<std::size_t> last_offset_{0};  ///< headers tend to have one length
};

}  // namespace mpisec::transport
