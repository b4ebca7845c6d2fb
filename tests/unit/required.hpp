// Tests that need something which this build may lack: `make test` has set everything up, so there they fail.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

namespace mpisec::test {

/// tools/test.sh sets it.
inline bool everything_is_required() {
    return std::getenv("MPISEC_LAB_TEST_REQUIRED") != nullptr;
}

}  // namespace mpisec::test

#define MPISEC_NOT_TESTED(why)                                                         \
    do {                                                                               \
        if (::mpisec::test::everything_is_required()) FAIL() << "NOT TESTED: " << why; \
        GTEST_SKIP() << "NOT TESTED: " << why;                                         \
    } while (false)
