/* Memory of a GPU, by the driver whose file the program is given. */
#ifndef MPISEC_TESTS_DEVICE_H
#define MPISEC_TESTS_DEVICE_H

#include <stddef.h>

void load_driver(const char* file);
/* n bytes, each `value` or fill()'s. */
char* device_memory(size_t n);
char* device_filled(size_t n, unsigned long seed);
char* managed_memory(size_t n);
void to_device(void* device, const void* host, size_t n);
void from_device(void* host, const void* device, size_t n);
void free_device(void* device);
/* Ends the job unless the n bytes are those of device_filled(n, seed). */
void check_device(const char* file, int line, const void* device, size_t n, unsigned long seed);
#define CHECK_DEVICE(device, n, seed) check_device(__FILE__, __LINE__, device, n, seed)

#endif
