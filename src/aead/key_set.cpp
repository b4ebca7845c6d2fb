// A key for each size class, set up when a message of that size first needs it.
#include <cstdlib>
#include <cstring>
#include <new>

#include "aead/aead.hpp"
#include "base/locked_slab.hpp"

namespace mpisec::aead {
namespace {

/// In locked memory, which a forked child sees wiped: the zeros must never be taken for a key.
struct KeyBytes {
    std::uint8_t bytes[max_key_bytes];
    bool alive;  ///< false in a child
};

LockedSlab& slab() {
    // Key sets in static variables outlive static objects.
    static LockedSlab& instance = *new LockedSlab(sizeof(KeyBytes));
    return instance;
}

}  // namespace

KeySet::KeySet(const Selection& selection, const std::uint8_t* key_bytes) : selection_(selection) {
    void* slot = slab().take();
    if (!slot) std::abort();  // no page left for 64 bytes
    auto* key = new (slot) KeyBytes{{}, true};
    std::memcpy(key->bytes, key_bytes, info(selection.cipher).key_bytes);
    bytes_.reset(key->bytes);
#ifdef MPISEC_NONCE_LEDGER
    fingerprint_ = fingerprint_of_key(bytes_.get(), info(selection.cipher).key_bytes);
#endif
}

KeySet::~KeySet() = default;

void KeySet::WipedSlot::operator()(std::uint8_t* bytes) const {
    slab().give_back(bytes);
}

const Key& KeySet::make(std::size_t size_class) noexcept {
    const Library* library = selection_.library[size_class];
    Key& mine = keys_[size_class];
    // The bytes are the first member of KeyBytes.
    if (!library || !reinterpret_cast<const KeyBytes*>(bytes_.get())->alive) return mine;
    for (std::size_t other = 0; other < size_classes; ++other)
        if (keys_[other] && selection_.library[other] == library) {
            key_of_class_[size_class] = static_cast<std::uint8_t>(other);
            return keys_[other];
        }
    if (Result<Key> key = library->make_key(selection_.cipher, bytes_.get())) mine = std::move(*key);
    return mine;
}

}  // namespace mpisec::aead
