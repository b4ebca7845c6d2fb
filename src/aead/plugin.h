/* What a crypto plug-in exports: one table, in C so that a plug-in may be built by any compiler.
 *
 * Contract: a key state is used by one thread at a time; different states from any threads at once. `open`
 * releases nothing unauthenticated: on a wrong tag it returns non-zero and `to` holds n zero bytes. Tags are
 * compared in constant time. `key_free` wipes. Ciphers with longer nonces than 96 bits (AEGIS) take the 12
 * bytes followed by zeros. */
#ifndef MPISEC_AEAD_PLUGIN_H
#define MPISEC_AEAD_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define MPISEC_AEAD_PLUGIN_VERSION 1
#define MPISEC_AEAD_PLUGIN_SYMBOL "mpisec_aead_plugin_table"

struct mpisec_aead_plugin {
    int abi; /* MPISEC_AEAD_PLUGIN_VERSION */
    const char* name;
    const char* (*version)(void);
    int (*has)(int cipher);                           /* non-zero when the cipher works here, on this CPU */
    void* (*key_new)(int cipher, const uint8_t* key); /* NULL on failure */
    void (*key_free)(void* state);
    int (*seal)(void* state, uint8_t* to, const uint8_t* from, size_t n, const uint8_t* nonce,
                const uint8_t* ad, size_t ad_n);
    int (*open)(void* state, uint8_t* to, const uint8_t* from, size_t n, const uint8_t* nonce,
                const uint8_t* ad, size_t ad_n);
};

#endif
