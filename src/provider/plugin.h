/* What a crypto library offers to the OpenSSL provider: one table, exported by libmpisec-cipher-NAME.so.
 *
 * Contract: a key is used by one thread at a time, except that `crypt` may run on several threads at once with
 * one key. `to` is `from` or does not overlap it. Functions that can fail return 0 for success. Tags
 * are compared in constant time. `key_free` wipes. */
#ifndef MPISEC_CIPHER_PLUGIN_H
#define MPISEC_CIPHER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define MPISEC_CIPHER_PLUGIN_VERSION 2
#define MPISEC_CIPHER_PLUGIN_SYMBOL "mpisec_cipher_plugin_table"

enum mpisec_mode {
    mpisec_ecb = 1,
    mpisec_cbc,
    mpisec_cfb,  /* segments of 16 bytes */
    mpisec_cfb8, /* segments of 1 byte */
    mpisec_ofb,
    mpisec_ctr,
    mpisec_xts, /* the key is both keys; one call is one data unit of at least 16 bytes */
    mpisec_gcm,
    mpisec_chacha, /* ChaCha20-Poly1305: the vector has 12 bytes */
    mpisec_cfb1    /* segments of 1 bit; whole bytes here */
};

/* A buffer of encrypt_many: n is a multiple of 16, iv is the initialization vector and becomes the next. */
struct mpisec_cipher_buffer {
    void* key;
    uint8_t* to;
    const uint8_t* from;
    size_t n;
    uint8_t* iv;
};

struct mpisec_cipher_plugin {
    int abi; /* MPISEC_CIPHER_PLUGIN_VERSION */
    const char* name;
    const char* (*version)(void);
    int (*has)(int mode, size_t key_n); /* non-zero when it works here, on this CPU */
    void* (*key_new)(int mode, const uint8_t* key, size_t key_n, int encrypt);
    void (*key_free)(void* key);

    /* Modes without a tag: n bytes, whole blocks (CFB1, CFB8, XTS: any number), iv is advanced (XTS: is kept). */
    int (*crypt)(void* key, int encrypt, uint8_t* to, const uint8_t* from, size_t n, uint8_t* iv);

    /* AEADs, by pieces of any size. `associate`: more associated data before the first update; NULL: all of it
     * has to come with start. `copy` also works in the middle of a message. */
    int (*start)(void* key, const uint8_t* iv, size_t iv_n, const uint8_t* ad, size_t ad_n);
    int (*associate)(void* key, const uint8_t* ad, size_t ad_n);
    int (*update)(void* key, int encrypt, uint8_t* to, const uint8_t* from, size_t n);
    /* Encrypting: writes a tag of 16 bytes. Decrypting: fails when the tag_n bytes at `tag` are not its beginning. */
    int (*finish)(void* key, int encrypt, uint8_t* tag, size_t tag_n);
    void* (*copy)(const void* key);

    /* CBC encryption of at most 128 buffers at once, with keys of one length; NULL: this library has none. */
    int (*encrypt_many)(struct mpisec_cipher_buffer* buffers, size_t count);

    /* GHASH (SP 800-38D, 6.4) under the hash key h of 16 bytes, on several threads at once, too: hashes n bytes of whole
     * blocks on from `state`. key_free frees its key. NULL: this library has none. */
    void* (*ghash_new)(const uint8_t* h);
    int (*ghash)(void* key, uint8_t* state, const uint8_t* blocks, size_t n);
};

#endif
