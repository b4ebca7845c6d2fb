// The notice of a rank that waits long in a collective carries what it called.
#include <gtest/gtest.h>

#include "wire/call_notice.hpp"

namespace mpisec::wire {
namespace {

TEST(CallNotice, CarriesItsFields) {
    CallNotice call;
    for (std::size_t i = 0; i < call.context.size(); ++i) call.context[i] = static_cast<std::uint8_t>(i + 1);
    call.number = 0x1122334455667788;
    call.bytes = 0x99aabbccddeeff00;
    call.root = 0x01020304;
    call.collective = 12;
    call.failed = true;
    EXPECT_EQ(decode_call(encode_call(call).data()), call);
    call.failed = false;
    call.ended = true;
    call.root = -1;
    call.bytes = CallNotice::no_bytes;
    EXPECT_EQ(decode_call(encode_call(call).data()), call);
}

TEST(CallNotice, IsLaidOutAsTheProtocolSays) {
    CallNotice call;
    call.context.fill(0xcc);
    call.number = 1;
    call.bytes = 2;
    call.root = 3;
    call.collective = 4;
    call.ended = true;
    const EncodedCall bytes = encode_call(call);
    EXPECT_EQ(bytes[15], 0xcc);
    EXPECT_EQ(bytes[16], 1);
    EXPECT_EQ(bytes[24], 2);
    EXPECT_EQ(bytes[32], 3);
    EXPECT_EQ(bytes[36], 4);
    EXPECT_EQ(bytes[37], 0);
    EXPECT_EQ(bytes[38], 1);
    EXPECT_EQ(bytes[39], 0);
}

TEST(CallNotice, AFailureIsNotSupersededByTheNextCall) {
    CallNotice waits, fails, ends;
    fails.failed = ends.ended = true;
    CallNotice next = waits;
    next.number = 1;
    EXPECT_TRUE(waits.superseded_by(next));
    EXPECT_TRUE(waits.superseded_by(fails));
    EXPECT_FALSE(fails.superseded_by(next));
    EXPECT_FALSE(ends.superseded_by(next));
    EXPECT_TRUE(fails.superseded_by(ends));
    EXPECT_TRUE(ends.superseded_by(ends));
    next.number = calls_kept;  // the other has forgotten the call that failed
    EXPECT_TRUE(fails.superseded_by(next));
    EXPECT_FALSE(ends.superseded_by(next));
    next.context.fill(1);
    EXPECT_FALSE(waits.superseded_by(next));
}

}  // namespace
}  // namespace mpisec::wire
