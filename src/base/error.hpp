// Errors as values: every fallible function of MPIsec returns Result<T>; nothing throws across a module.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace mpisec {

/// A sentence that a user can act on: which rank, peer, call or setting, and what to do about it.
struct Error {
    std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string message) {
    return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace mpisec
