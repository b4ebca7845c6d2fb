// Streams where no memory is left: they fail, and throw nothing through the MPI library, whose calls these are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "support.hpp"

namespace {
bool no_arrays = false;  ///< whether `new` of an array fails
}

void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
    return no_arrays ? nullptr : std::malloc(n);
}
void* operator new[](std::size_t n) {
    void* made = operator new[](n, std::nothrow);
    if (!made) throw std::bad_alloc();
    return made;
}
void operator delete[](void* made) noexcept {
    std::free(made);
}
void operator delete[](void* made, std::size_t) noexcept {
    std::free(made);
}
void operator delete[](void* made, const std::nothrow_t&) noexcept {
    std::free(made);
}

namespace mpisec::transport {
namespace {

using Failure = AuthenticatedStream::Failure;
using Side = AuthenticatedStream::Side;

/// A socket that takes all but the last byte of what it is given, and then nothing.
bool is_full = false;
constexpr SocketCalls narrow = {[](int, const void*, std::size_t n, int) -> ssize_t {
                                    if (std::exchange(is_full, true)) return errno = EAGAIN, -1;
                                    return static_cast<ssize_t>(n) - 1;
                                },
                                test::calls.sendmsg, test::calls.recv, test::calls.recvmsg};

class WithoutMemory : public testing::Test {
  protected:
    void SetUp() override { is_full = false; }
    void TearDown() override { no_arrays = false; }
    AuthenticatedStream stream(Side side, const SocketCalls& calls) {
        return {side, Destination{1}, {test::library(), secret_}, calls, [](const void*, std::size_t n) {
                    return n;
                }};
    }
    /// Sends n bytes.
    ssize_t send(AuthenticatedStream& to, std::size_t n) {
        const iovec piece = {bytes_.data(), n};
        no_arrays = true;
        const ssize_t sent = to.send(-1, {&piece, 1}, 0);
        no_arrays = false;
        return sent;
    }
    std::array<std::uint8_t, 10000> bytes_{};

  private:
    keys::Secret secret_ = keys::connection_secret(keys::Secret::random());
};

TEST_F(WithoutMemory, ALargeRecordIsNotSent) {
    AuthenticatedStream sending = stream(Side::client, narrow);
    EXPECT_EQ(send(sending, bytes_.size()), -1);
    EXPECT_EQ(errno, ECONNRESET);
    EXPECT_EQ(sending.failure(), Failure::no_memory);
    EXPECT_FALSE(is_full);
}

TEST_F(WithoutMemory, TheRestOfARecordCannotBeKept) {
    AuthenticatedStream sending = stream(Side::client, narrow);
    EXPECT_EQ(send(sending, 100), -1);
    EXPECT_TRUE(is_full);
    EXPECT_EQ(sending.failure(), Failure::no_memory);
    EXPECT_EQ(send(sending, 100), -1);
}

TEST_F(WithoutMemory, NothingIsReceived) {
    AuthenticatedStream receiving = stream(Side::server, test::calls);
    const iovec piece = {bytes_.data(), bytes_.size()};
    no_arrays = true;
    EXPECT_EQ(receiving.receive(-1, {&piece, 1}, 0), -1);
    no_arrays = false;
    EXPECT_EQ(errno, ECONNRESET);
    EXPECT_EQ(receiving.failure(), Failure::no_memory);
}

}  // namespace
}  // namespace mpisec::transport
