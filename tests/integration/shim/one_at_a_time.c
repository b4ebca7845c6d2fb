/* Below MPIsec: lets one thread at a time into the MPI library, so that a library that was not asked to bear
 * threads does not fall over before MPIsec has noticed them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

#define ALONE(name, parameters, arguments)                                    \
    int PMPI_##name parameters {                                              \
        static int(*real) parameters;                                         \
        pthread_mutex_lock(&one);                                             \
        if (!real) real = (int(*) parameters)dlsym(RTLD_NEXT, "PMPI_" #name); \
        int code = real arguments;                                            \
        pthread_mutex_unlock(&one);                                           \
        return code;                                                          \
    }

ALONE(Send, (const void* b, int n, MPI_Datatype t, int d, int g, MPI_Comm c), (b, n, t, d, g, c))
ALONE(Isend, (const void* b, int n, MPI_Datatype t, int d, int g, MPI_Comm c, MPI_Request* r),
      (b, n, t, d, g, c, r))
ALONE(Irecv, (void* b, int n, MPI_Datatype t, int d, int g, MPI_Comm c, MPI_Request* r),
      (b, n, t, d, g, c, r))
ALONE(Test, (MPI_Request * r, int* f, MPI_Status* s), (r, f, s))

/* Sealing takes a while, so that two threads meet in it on one core too. */
int EVP_CipherUpdate(void* context, unsigned char* out, int* out_bytes, const unsigned char* in, int bytes) {
    static int (*real)(void*, unsigned char*, int*, const unsigned char*, int);
    if (!real) *(void**)&real = dlsym(dlopen("libcrypto.so.3", RTLD_NOW), "EVP_CipherUpdate");
    usleep(200);
    return real(context, out, out_bytes, in, bytes);
}

/* The crypto plug-in finds the procedure above, although MPIsec binds it to its own library. */
void* dlopen(const char* file, int flags) {
    static void* (*real)(const char*, int);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "dlopen");
    return real(file, flags & ~RTLD_DEEPBIND);
}
