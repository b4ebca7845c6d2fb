/* Memory of GPU 0 for benchmarks, by the CUDA driver as it is found at run time: nothing of CUDA is needed to build them. */
#ifndef MPISEC_BENCH_GPU_MEMORY_H
#define MPISEC_BENCH_GPU_MEMORY_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long gpu_address;

static struct {
    int (*init)(unsigned), (*retain)(void**, int), (*push)(void*), (*name)(char*, int, int);
    int (*allocate)(gpu_address*, size_t), (*release)(gpu_address);
    int (*pin)(void**, size_t, unsigned), (*unpin)(void*);
    int (*up)(gpu_address, const void*, size_t, void*), (*down)(void*, gpu_address, size_t, void*);
    int (*wait)(void*);
} gpu;

/* Ends the program with a sentence when `code` is an error of the driver's. */
static void gpu_check(int code, const char* what) {
    if (code != 0) exit((fprintf(stderr, "bench: %s: error %d of the CUDA driver\n", what, code), 1));
}

static void* gpu_find(void* library, const char* procedure) {
    void* found = dlsym(library, procedure);
    if (!found) exit((fprintf(stderr, "bench: the CUDA driver has no %s\n", procedure), 1));
    return found;
}

/* Loads the driver, and makes a context on GPU 0 current; `name` gets the GPU's. */
static void gpu_start(const char* driver, char* name, int room) {
    void *library = dlopen(driver, RTLD_NOW), *context;
    if (!library)
        exit((fprintf(stderr, "bench: there is no CUDA driver on this machine: %s\n", dlerror()), 2));
    *(void**)&gpu.init = gpu_find(library, "cuInit");
    *(void**)&gpu.retain = gpu_find(library, "cuDevicePrimaryCtxRetain");
    *(void**)&gpu.push = gpu_find(library, "cuCtxPushCurrent_v2");
    *(void**)&gpu.name = gpu_find(library, "cuDeviceGetName");
    *(void**)&gpu.allocate = gpu_find(library, "cuMemAlloc_v2");
    *(void**)&gpu.release = gpu_find(library, "cuMemFree_v2");
    *(void**)&gpu.pin = gpu_find(library, "cuMemHostAlloc");
    *(void**)&gpu.unpin = gpu_find(library, "cuMemFreeHost");
    *(void**)&gpu.up = gpu_find(library, "cuMemcpyHtoDAsync_v2");
    *(void**)&gpu.down = gpu_find(library, "cuMemcpyDtoHAsync_v2");
    *(void**)&gpu.wait = gpu_find(library, "cuStreamSynchronize");
    gpu_check(gpu.init(0), "there is no GPU");
    gpu_check(gpu.name(name, room, 0), "GPU 0");
    gpu_check(gpu.retain(&context, 0), "a context on GPU 0");
    gpu_check(gpu.push(context), "a context on GPU 0");
}

static char* gpu_memory(size_t bytes) {
    gpu_address made = 0;
    gpu_check(gpu.allocate(&made, bytes), "memory of the GPU");
    return (char*)made;
}

/* Of the host, such that the GPU copies from and to it by itself. */
static char* pinned_memory(size_t bytes) {
    void* made = NULL;
    gpu_check(gpu.pin(&made, bytes, 0), "pinned memory");
    return made;
}

static void gpu_put(char* device, const char* host, size_t bytes) {
    gpu_check(gpu.up((gpu_address)device, host, bytes, NULL), "copying to the GPU");
    gpu_check(gpu.wait(NULL), "copying to the GPU");
}

static void gpu_get(char* host, const char* device, size_t bytes) {
    gpu_check(gpu.down(host, (gpu_address)device, bytes, NULL), "copying from the GPU");
    gpu_check(gpu.wait(NULL), "copying from the GPU");
}

#endif
