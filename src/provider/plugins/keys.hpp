// What the libraries' plug-ins share: keys in locked memory, and the exported table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/locked_slab.hpp"
#include "provider/plugin.h"

/// Defines the one symbol that a plug-in exports.
#define MPISEC_CIPHER_PLUGIN_TABLE \
    extern "C" __attribute__((visibility("default"))) const mpisec_cipher_plugin mpisec_cipher_plugin_table

namespace mpisec::provider {

inline constexpr std::size_t reserved_bytes = 256 * 1024;

/// Slots for keys (S5): locked, left out of core dumps, wiped when given back. A program may fork with
/// contexts that its child goes on using, so children keep them. Never destroyed: contexts in static variables
/// may outlive it otherwise.
template <class Key>
LockedSlab& slots() {
    static_assert(alignof(Key) <= 64);
    static LockedSlab* const slab = [] {
        auto* made = new LockedSlab(sizeof(Key), LockedSlab::Fork::keep);
        made->reserve(reserved_bytes);
        return made;
    }();
    return *slab;
}

/// A plug-in's `has`, which also sees to it that there is room for keys: it is asked when the provider is loaded.
template <auto has, class... Keys>
int has_with_room(int mode, std::size_t key_n) {
    (static_cast<void>(slots<Keys>()), ...);
    return has(mode, key_n);
}

template <class Key>
void key_free(void* key) {
    if (!key) return;
    static_cast<Key*>(key)->~Key();
    slots<Key>().give_back(key);
}

/// A Key(arguments…) whose member `ready` tells whether it can be used; null when not.
template <class Key, class... Arguments>
void* make(Arguments... arguments) {
    void* slot = slots<Key>().take();
    if (!slot) return nullptr;
    Key* key = new (slot) Key(arguments...);
    if (key->ready) return key;
    key_free<Key>(key);
    return nullptr;
}

}  // namespace mpisec::provider
