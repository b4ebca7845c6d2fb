// Copies of one message between a GPU's memory and pinned host memory, in pieces, so that one part is sealed and sent, or received and
// opened, while the rest is copied.
//
// Both kinds end before the memory that they copy is given back: their destructors wait for the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/driver.hpp"

namespace mpisec::shim {

struct Staging;

/// Copies a message that is sent. After construction all pieces are under way.
class CopiesFromDevice {
  public:
    CopiesFromDevice(std::uint8_t* host, const void* device, std::size_t bytes);
    CopiesFromDevice(const CopiesFromDevice&) = delete;
    CopiesFromDevice& operator=(const CopiesFromDevice&) = delete;
    ~CopiesFromDevice();
    /// Whether the first `bytes` are in the host's memory. Does not wait.
    bool has(std::size_t bytes) {
        if (bytes > arrived_) look();
        return bytes <= arrived_;
    }
    /// Waits until they are. False when a copy has failed.
    bool wait_for(std::size_t bytes);
    /// A failure has been reported. Bytes that have not arrived never will.
    bool failed() const { return failed_; }

  private:
    struct Piece {
        gpu::CuEvent copied;
        std::size_t end;  ///< in the message
    };
    gpu::CuResult start_piece(const gpu::Driver& driver, std::uint8_t* to, gpu::CuAddress from,
                              std::size_t bytes, std::size_t end);
    void look();

    // The first pieces are short, so that sealing begins soon; and each starts while those before it are sealed, which takes longer.
    static constexpr std::size_t first_piece = std::size_t{256} << 10, longest_piece = std::size_t{4} << 20;

    Staging* staging_ = nullptr;
    std::vector<Piece> pieces_;
    std::size_t next_ = 0;     ///< pieces before it have arrived
    std::size_t arrived_ = 0;  ///< bytes
    bool failed_ = false;
};

/// Copies a message that is received. It is told what has been verified, and copies once that is enough for a piece.
class CopiesToDevice {
  public:
    /// `bytes`: the most that the message may have.
    CopiesToDevice(void* device, const std::uint8_t* host, std::size_t bytes);
    CopiesToDevice(const CopiesToDevice&) = delete;
    CopiesToDevice& operator=(const CopiesToDevice&) = delete;
    ~CopiesToDevice();
    /// Tells that the first `bytes` of the message are in the host's memory, and authentic.
    void verified(std::size_t bytes) {
        if (bytes >= started_ + piece_) start(bytes);
    }
    /// The whole message has been verified and has `bytes` bytes: returns when they are in the GPU's memory. False, with the reason
    /// reported, when a copy has failed.
    bool finish(std::size_t bytes);

  private:
    void start(std::size_t bytes);
    void wait();

    const std::uint8_t* host_;
    gpu::CuAddress device_;
    std::size_t piece_;
    std::size_t started_ = 0;  ///< bytes
    Staging* staging_ = nullptr;
    bool under_way_ = false;
    bool failed_ = false;
};

}  // namespace mpisec::shim
