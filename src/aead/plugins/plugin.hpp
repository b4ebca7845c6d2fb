// What all plug-ins share: the exported table and its helpers. Each plug-in is one file beside this one.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "aead/aead.hpp"
#include "base/locked_slab.hpp"

/// Defines the one symbol that a plug-in exports. `State` has a constructor State(Cipher, const uint8_t* key), a `bool ready` as its first
/// member, and the members seal and open, which return true on success. What open leaves on failure is zeroed here. `ready` distinguishes a
/// live state from one that fork() wiped (in a child, key memory is all zero): it is checked before each use, and is in a cache line that
/// is needed anyway.
#define MPISEC_AEAD_PLUGIN(plugin_name, version_function, has_function, State)                              \
    extern "C" __attribute__((visibility("default"))) const mpisec_aead_plugin mpisec_aead_plugin_table = { \
        MPISEC_AEAD_PLUGIN_VERSION,                                                                         \
        plugin_name,                                                                                        \
        version_function,                                                                                   \
        has_function,                                                                                       \
        mpisec::aead::plugins::key_new<State>,                                                              \
        mpisec::aead::plugins::key_free<State>,                                                             \
        mpisec::aead::plugins::seal<State>,                                                                 \
        mpisec::aead::plugins::open<State>,                                                                 \
    };

namespace mpisec::aead::plugins {

// Key states are in locked memory (S5). Made when the plug-in is loaded, before there are threads that use it; never destroyed: otherwise
// keys in static variables might outlive it.
template <class State>
LockedSlab& states = *new LockedSlab(sizeof(State));

template <class State>
void key_free(void* state) {
    static_cast<State*>(state)->~State();
    states<State>.give_back(state);  // wipes
}

template <class State>
void* key_new(int cipher, const std::uint8_t* key) {
    static_assert(alignof(State) <= 64);  // as slots are
    void* slot = states<State>.take();
    if (!slot) return nullptr;
    State* state = new (slot) State(static_cast<Cipher>(cipher), key);
    if (state->ready) return state;
    key_free<State>(state);
    return nullptr;
}

// A message without bytes or without associated data may come with null pointers, which some libraries refuse.
inline std::uint8_t nothing[16];

template <class State>
int seal(void* state, std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
         const std::uint8_t* ad, std::size_t ad_n) {
    bool good =
        static_cast<State*>(state)->ready &&
        static_cast<State*>(state)->seal(to, from ? from : nothing, n, nonce, ad ? ad : nothing, ad_n);
    return good ? 0 : -1;
}

template <class State>
int open(void* state, std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
         const std::uint8_t* ad, std::size_t ad_n) {
    if (static_cast<State*>(state)->ready &&
        static_cast<State*>(state)->open(to ? to : nothing, from, n, nonce, ad ? ad : nothing, ad_n))
        return 0;
    if (n) std::memset(to, 0, n);  // S2: whatever the library left there was not authenticated
    return -1;
}

}  // namespace mpisec::aead::plugins
