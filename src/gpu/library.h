/* What libmpisec-gpu.so exports: one table, in C. Functions that return int return 0 when it went well; what went
 * wrong is then error()'s sentence, of the calling thread. A GPU is used by one thread at a time. Addresses are
 * the device's. */
#ifndef MPISEC_GPU_LIBRARY_H
#define MPISEC_GPU_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#define MPISEC_GPU_VERSION 1
#define MPISEC_GPU_SYMBOL "mpisec_gpu_table"

enum { MPISEC_GPU_COUNTER_MODE, MPISEC_GPU_SEAL, MPISEC_GPU_OPEN };

struct mpisec_gpu_packet {
    uint64_t from, to;
    uint64_t ad, tag; /* of GCM */
    uint64_t bytes;
    uint32_t ad_bytes;
    uint32_t counter; /* of the first block, in counter mode; GCM begins with 2 */
    uint8_t nonce[12];
};

struct mpisec_gpu_table {
    int abi; /* MPISEC_GPU_VERSION */
    const char* (*error)(void);
    void* (*open)(int ordinal);
    void (*close)(void* gpu);
    const char* (*describe)(void* gpu); /* the device, and which code runs on it */
    int (*set_key)(void* gpu, const uint8_t* key, size_t bytes);
    int (*allocate)(void* gpu, size_t bytes, uint64_t* address);
    int (*release)(void* gpu, uint64_t address); /* wiped before */
    int (*copy_in)(void* gpu, uint64_t to, const void* from, size_t bytes);
    int (*copy_out)(void* gpu, void* to, uint64_t from, size_t bytes);
    void* (*prepare)(void* gpu, const struct mpisec_gpu_packet* packets, size_t count); /* a batch */
    int (*run)(void* gpu, void* batch, int what, unsigned stream);                      /* does not wait */
    int (*wait)(void* gpu);
    int (*genuine)(void* gpu, void* batch, uint32_t* of_each); /* after opening: 1 or 0 */
    void (*finish)(void* gpu, void* batch);
};

#endif
