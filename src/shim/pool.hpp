// Memory for what is on its way: sealed messages, bounce buffers of receives. Kept per size class and reused.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpisec::shim {

/// Bytes from the pool. Movable. Taken and given back under the shim's Guard (M10), which it takes itself.
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t bytes);
    Buffer(Buffer&& other) noexcept : data_(other.data_), size_class_(other.size_class_) {
        other.data_ = nullptr;
    }
    Buffer& operator=(Buffer&& other) noexcept {
        std::uint8_t* data = data_;
        unsigned size_class = size_class_;
        data_ = other.data_;
        size_class_ = other.size_class_;
        other.data_ = data;
        other.size_class_ = size_class;
        return *this;
    }
    ~Buffer() {
        if (data_) give_back();
    }
    std::uint8_t* data() const { return data_; }
    explicit operator bool() const { return data_ != nullptr; }

  private:
    void give_back();

    std::uint8_t* data_ = nullptr;
    unsigned size_class_ = 0;
};

/// Frees what no one uses; at the end of the job (M14).
void empty_pool();

}  // namespace mpisec::shim
