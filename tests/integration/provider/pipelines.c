/* Sixteen messages under one key through a cipher pipeline of OpenSSL 3.5 with MPIsec's provider, and one after the other with OpenSSL's own: the
 * same bytes. Arguments: the directory of the provider; then bytes of a message. Prints how many times as fast the pipeline is. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { pipes = 16, block = 16, rounds = 21 };

static void check(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "FAILED %s\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned char key[block], ivs[pipes][block];
static unsigned char *text[pipes], *expected[pipes], *sealed[pipes];
static size_t expected_n[pipes], sealed_n[pipes];

static void one_by_one(EVP_CIPHER_CTX* context, const EVP_CIPHER* cipher, size_t n) {
    for (int i = 0; i < pipes; ++i) {
        int written = 0, last = 0;
        check(EVP_EncryptInit_ex2(context, cipher, key, ivs[i], NULL), "EVP_EncryptInit_ex2");
        check(EVP_EncryptUpdate(context, expected[i], &written, text[i], (int)n), "EVP_EncryptUpdate");
        check(EVP_EncryptFinal_ex(context, expected[i] + written, &last), "EVP_EncryptFinal_ex");
        expected_n[i] = (size_t)(written + last);
    }
}

static void together(EVP_CIPHER_CTX* context, const EVP_CIPHER* cipher, size_t n) {
    const unsigned char *vectors[pipes], *in[pipes];
    unsigned char* out[pipes];
    size_t room[pipes], in_n[pipes], last[pipes];
    for (int i = 0; i < pipes; ++i)
        vectors[i] = ivs[i], in[i] = text[i], out[i] = sealed[i], room[i] = n + block, in_n[i] = n;
    EVP_CIPHER_CTX_reset(
        context); /* 3.6.3 forgets the number of pipes when it initializes a context that has a cipher */
    check(EVP_CipherPipelineEncryptInit(context, cipher, key, block, pipes, vectors, block),
          "PipelineEncryptInit");
    check(EVP_CipherPipelineUpdate(context, out, sealed_n, room, in, in_n), "PipelineUpdate");
    for (int i = 0; i < pipes; ++i) out[i] += sealed_n[i], room[i] -= sealed_n[i];
    check(EVP_CipherPipelineFinal(context, out, last, room), "PipelineFinal");
    for (int i = 0; i < pipes; ++i) sealed_n[i] += last[i];
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    OSSL_LIB_CTX *mine = OSSL_LIB_CTX_new(), *theirs = OSSL_LIB_CTX_new();
    check(argc == 3 && OSSL_PROVIDER_set_default_search_path(mine, argv[1]), "arguments");
    check(OSSL_PROVIDER_load(mine, "libmpisec-provider") != NULL, "loading the provider");
    const size_t n = strtoul(argv[2], NULL, 10);
    EVP_CIPHER *fast = EVP_CIPHER_fetch(mine, "AES-128-CBC", NULL),
               *plain = EVP_CIPHER_fetch(theirs, "AES-128-CBC", NULL);
    check(fast && plain, "fetching AES-128-CBC");
    check(EVP_CIPHER_can_pipeline(fast, 1) && !EVP_CIPHER_can_pipeline(fast, 0), "what it can");
    check(!EVP_CIPHER_can_pipeline(plain, 1), "what OpenSSL's own can");
    for (size_t i = 0; i < block; ++i) key[i] = (unsigned char)(i * 7);
    for (int i = 0; i < pipes; ++i) {
        text[i] = malloc(n + 1), expected[i] = malloc(n + block), sealed[i] = malloc(n + block);
        for (size_t k = 0; k < n; ++k) text[i][k] = (unsigned char)(k * 31 + (size_t)i);
        memset(ivs[i], i + 1, block);
    }
    EVP_CIPHER_CTX *a = EVP_CIPHER_CTX_new(), *b = EVP_CIPHER_CTX_new();
    double ratios[rounds];
    for (int round = 0; round < rounds; ++round) {
        enum { times = 50 };
        const double begin = now();
        for (int i = 0; i < times; ++i) one_by_one(a, plain, n);
        const double middle = now();
        for (int i = 0; i < times; ++i) together(b, fast, n);
        ratios[round] = (middle - begin) / (now() - middle);
    }
    for (int i = 0; i < pipes; ++i)
        check(sealed_n[i] == expected_n[i] && memcmp(sealed[i], expected[i], sealed_n[i]) == 0,
              "the same bytes");
    qsort(ratios, rounds, sizeof *ratios, by_value);
    printf("%s: %zu bytes of %d messages are the same, %.2f times as fast\n",
           OpenSSL_version(OPENSSL_VERSION_STRING), n, pipes, ratios[rounds / 2]);
    return 0;
}
