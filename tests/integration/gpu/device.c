#include "device.h"

#include <dlfcn.h>

#include "../mpi/harness.h"

typedef unsigned long long address;
static int (*init)(unsigned), (*retain)(void**, int), (*push)(void*), (*allocate)(address*, size_t);
static int (*allocate_managed)(address*, size_t, unsigned), (*release)(address), (*wait_for)(void*);
static int (*in)(address, const void*, size_t, void*), (*out)(void*, address, size_t, void*);

static void* find(void* library, const char* name) {
    void* found = dlsym(library, name);
    CHECK(found, "the driver has no %s", name);
    return found;
}

void load_driver(const char* file) {
    void *library = dlopen(file, RTLD_NOW), *context = NULL;
    CHECK(library, "%s", dlerror());
    init = find(library, "cuInit");
    retain = find(library, "cuDevicePrimaryCtxRetain");
    push = find(library, "cuCtxPushCurrent_v2");
    allocate = find(library, "cuMemAlloc_v2");
    allocate_managed = find(library, "cuMemAllocManaged");
    release = find(library, "cuMemFree_v2");
    in = find(library, "cuMemcpyHtoDAsync_v2");
    out = find(library, "cuMemcpyDtoHAsync_v2");
    wait_for = find(library, "cuStreamSynchronize");
    CHECK(init(0) == 0 && retain(&context, 0) == 0 && push(context) == 0, "the driver does not start");
}

char* device_memory(size_t n) {
    address made = 0;
    CHECK(allocate(&made, n + 1) == 0, "no memory of the GPU");
    return (char*)made;
}
char* managed_memory(size_t n) {
    address made = 0;
    CHECK(allocate_managed(&made, n + 1, 1) == 0, "no managed memory");
    return (char*)made;
}
void to_device(void* device, const void* host, size_t n) {
    CHECK(n == 0 || (in((address)device, host, n, NULL) == 0 && wait_for(NULL) == 0), "copying in failed");
}
void from_device(void* host, const void* device, size_t n) {
    CHECK(n == 0 || (out(host, (address)device, n, NULL) == 0 && wait_for(NULL) == 0), "copying out failed");
}
void free_device(void* device) {
    CHECK(release((address)device) == 0, "not memory of the GPU");
}

char* device_filled(size_t n, unsigned long seed) {
    char *device = device_memory(n), *host = memory(n + 1);
    fill(host, n, seed);
    to_device(device, host, n);
    free(host);
    return device;
}

void check_device(const char* file, int line, const void* device, size_t n, unsigned long seed) {
    char* host = memory(n + 1);
    from_device(host, device, n);
    check_filled(file, line, host, n, seed);
    free(host);
}
