// A key for each size class, set up when a message of that size first needs it.
#include <string.h>

#include <cstring>

#include "aead/aead.hpp"

namespace mpisec::aead {

KeySet::KeySet(const Selection& selection, const std::uint8_t* key_bytes) : selection_(selection) {
    std::memcpy(bytes_.data(), key_bytes, info(selection.cipher).key_bytes);
}

KeySet::~KeySet() {
    explicit_bzero(bytes_.data(), bytes_.size());
}

const Key* KeySet::make(std::size_t size_class) noexcept {
    const Library* library = selection_.library[size_class];
    if (!library) return nullptr;
    for (std::size_t other = 0; other < size_classes; ++other)
        if (by_class_[other] && selection_.library[other] == library)
            return by_class_[size_class] = by_class_[other];
    Result<Key> key = library->make_key(selection_.cipher, bytes_.data());
    if (!key) return nullptr;
    owned_[size_class] = std::make_unique<Key>(std::move(*key));
    return by_class_[size_class] = owned_[size_class].get();
}

}  // namespace mpisec::aead
