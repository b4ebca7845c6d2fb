// Fuzz targets stop at the first broken promise; libFuzzer keeps the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define FUZZ_CHECK(promise)                                                                    \
    do {                                                                                       \
        if (!(promise)) {                                                                      \
            std::fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #promise); \
            std::abort();                                                                      \
        }                                                                                      \
    } while (false)

namespace mpisec::fuzz {

/// Takes values from the front of the input; zeros when it is used up.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
    bool empty() const { return left_ == 0; }

    template <class Value>
    Value take() {
        Value value{};
        const std::size_t n = left_ < sizeof value ? left_ : sizeof value;
        if (n > 0) std::memcpy(&value, data_, n);
        data_ += n;
        left_ -= n;
        return value;
    }

  private:
    const std::uint8_t* data_;
    std::size_t left_;
};

}  // namespace mpisec::fuzz
