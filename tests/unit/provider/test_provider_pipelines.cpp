// Cipher pipelines, by the provider's own table: EVP has them from OpenSSL 3.5 on (tests/integration/provider/test_openssl_3_5.py).
#include <dlfcn.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/proverr.h>

#include <cstdarg>
#include <numeric>
#include <random>

#include "provider/pipes.hpp"
#include "support.hpp"

namespace mpisec::provider::test {
namespace {

int last_reason = 0;
void* instance = nullptr;

void new_error(const OSSL_CORE_HANDLE*) {}
void set_error(const OSSL_CORE_HANDLE*, std::uint32_t reason, const char*, std::va_list) {
    last_reason = ERR_GET_REASON(reason);
}

/// The provider's functions, loaded once; `instance` is there then.
const OSSL_DISPATCH* provider() {
    static const OSSL_DISPATCH* const functions = [] {
        offer_everything();
        static const OSSL_DISPATCH core[] = {
            {OSSL_FUNC_CORE_NEW_ERROR, reinterpret_cast<void (*)()>(new_error)},
            {OSSL_FUNC_CORE_VSET_ERROR, reinterpret_cast<void (*)()>(set_error)},
            {0, nullptr}};
        void* library = dlopen(MPISEC_PROVIDER_DIRECTORY "/libmpisec-provider.so", RTLD_NOW);
        auto* init = reinterpret_cast<OSSL_provider_init_fn*>(dlsym(library, "OSSL_provider_init"));
        const OSSL_DISPATCH* made = nullptr;
        return init(nullptr, core, &made, &instance) == 1 ? made : nullptr;
    }();
    return functions;
}

const OSSL_DISPATCH* algorithm(const std::string& name) {
    const OSSL_DISPATCH* function = provider();
    while (function->function_id != OSSL_FUNC_PROVIDER_QUERY_OPERATION) ++function;
    int no_cache = 0;
    auto* query = reinterpret_cast<const OSSL_ALGORITHM* (*)(void*, int, int*)>(function->function);
    for (const OSSL_ALGORITHM* one = query(instance, OSSL_OP_CIPHER, &no_cache); one->algorithm_names; ++one)
        if (std::string(one->algorithm_names).starts_with(name + ":")) return one->implementation;
    return nullptr;
}

template <class Call>
Call call(const OSSL_DISPATCH* table, int id) {
    for (; table->function_id != 0; ++table)
        if (table->function_id == id) return reinterpret_cast<Call>(table->function);
    return nullptr;
}

Bytes random_bytes(std::mt19937& random, std::size_t n) {
    Bytes bytes(n);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    return bytes;
}

/// One pipeline of the algorithm that `key` is for.
class Pipeline {
  public:
    explicit Pipeline(std::size_t key_n) : table_(algorithm("AES-" + std::to_string(8 * key_n) + "-CBC")) {
        context_ = call<void* (*)(void*)>(table_, OSSL_FUNC_CIPHER_NEWCTX)(instance);
    }
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;
    ~Pipeline() { free(context_); }

    int init(const Bytes& key, const std::vector<Bytes>& ivs, bool padding) {
        std::vector<const unsigned char*> pointers;
        for (const Bytes& iv : ivs) pointers.push_back(iv.data());
        unsigned wanted = padding ? 1 : 0;
        const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &wanted),
                                         OSSL_PARAM_END};
        return call<decltype(&pipeline_encrypt_init)>(table_, pipeline_encrypt_init_id)(
            context_, key.data(), key.size(), ivs.size(), pointers.data(), 16, parameters);
    }
    int update(std::size_t count, unsigned char** out, std::size_t* out_n, const std::size_t* room,
               const unsigned char** in, const std::size_t* in_n) {
        return call<decltype(&pipeline_update)>(table_, pipeline_update_id)(context_, count, out, out_n, room,
                                                                            in, in_n);
    }
    int final(std::size_t count, unsigned char** out, std::size_t* out_n, const std::size_t* room) {
        return call<decltype(&pipeline_final)>(table_, pipeline_final_id)(context_, count, out, out_n, room);
    }
    void become_copy() {
        void* copy = call<void* (*)(void*)>(table_, OSSL_FUNC_CIPHER_DUPCTX)(context_);
        free(context_);
        context_ = copy;
    }

  private:
    void free(void* context) { call<void (*)(void*)>(table_, OSSL_FUNC_CIPHER_FREECTX)(context); }
    const OSSL_DISPATCH* table_;
    void* context_;
};

class Pipelines : public testing::TestWithParam<std::size_t> {};

TEST_P(Pipelines, GiveWhatOneMessageAfterTheOtherGives) {
    const std::size_t key_n = GetParam();
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        const std::size_t count = 1 + random() % 32;
        const bool padding = random() % 2;
        const Bytes key = random_bytes(random, key_n);
        std::vector<Bytes> ivs, texts, sealed(count);
        for (std::size_t i = 0; i < count; ++i) {
            ivs.push_back(random_bytes(random, 16));
            std::size_t n = random() % (random() % 4 ? 100 : random() % 8 ? 5000 : 200000);
            if (!padding) n = n / 16 * 16;
            texts.push_back(random_bytes(random, n));
        }
        Pipeline pipeline(key_n);
        ASSERT_EQ(pipeline.init(key, ivs, padding), 1);
        std::vector<std::size_t> done(count), out_n(count), in_n(count), room(count);
        std::vector<unsigned char*> out(count);
        std::vector<const unsigned char*> in(count);
        for (std::size_t i = 0; i < count; ++i) sealed[i].resize(texts[i].size() + 16);
        std::vector<std::size_t> written(count);
        auto show_room = [&] {
            for (std::size_t i = 0; i < count; ++i)
                out[i] = sealed[i].data() + written[i], room[i] = sealed[i].size() - written[i];
        };
        for (bool more = true; more;) {
            more = false;
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t left = texts[i].size() - done[i];
                in[i] = left ? texts[i].data() + done[i] : nullptr;
                in_n[i] = std::min<std::size_t>(left, random() % (random() % 2   ? 40
                                                                  : random() % 2 ? 3000
                                                                                 : 150000));
                done[i] += in_n[i];
                more |= done[i] < texts[i].size();
            }
            show_room();
            ASSERT_EQ(pipeline.update(count, out.data(), out_n.data(), room.data(), in.data(), in_n.data()),
                      1);
            for (std::size_t i = 0; i < count; ++i) written[i] += out_n[i];
            if (random() % 8 == 0) pipeline.become_copy();
        }
        show_room();
        ASSERT_EQ(pipeline.final(count, out.data(), out_n.data(), room.data()), 1);
        const EVP_CIPHER* reference = fetch(openssl(), "AES-" + std::to_string(8 * key_n) + "-CBC");
        for (std::size_t i = 0; i < count; ++i) {
            sealed[i].resize(written[i] + out_n[i]);
            const Bytes expected = crypt(reference, true, key, ivs[i], texts[i], padding);
            ASSERT_EQ(sealed[i], expected) << "pipe " << i << " of " << count;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Keys, Pipelines, testing::Values(16, 24, 32));

TEST(CipherPipelines, InPlace) {
    std::mt19937 random(8);
    const Bytes key = random_bytes(random, 16);
    std::vector<Bytes> ivs, texts, expected;
    std::vector<unsigned char*> out;
    std::vector<const unsigned char*> in;
    std::vector<std::size_t> n(16, 4096), out_n(16);
    for (int i = 0; i < 16; ++i) {
        ivs.push_back(random_bytes(random, 16)), texts.push_back(random_bytes(random, 4096));
        expected.push_back(crypt(fetch(openssl(), "AES-128-CBC"), true, key, ivs[i], texts[i]));
    }
    for (Bytes& text : texts) out.push_back(text.data()), in.push_back(text.data());
    Pipeline pipeline(16);
    ASSERT_EQ(pipeline.init(key, ivs, false), 1);
    ASSERT_EQ(pipeline.update(16, out.data(), out_n.data(), n.data(), in.data(), n.data()), 1);
    ASSERT_EQ(pipeline.final(16, out.data(), out_n.data(), n.data()), 1);
    EXPECT_EQ(texts, expected);
}

TEST(CipherPipelines, AnswerWrongArgumentsWithAnError) {
    const Bytes key(16), iv(16), text(40);
    Bytes to(64);
    unsigned char* out[] = {to.data(), nullptr};
    const unsigned char* in[] = {text.data(), text.data()};
    std::size_t out_n[2], room[] = {64, 64}, in_n[] = {40, 40}, none[] = {0, 0};
    Pipeline pipeline(16);
    EXPECT_EQ(pipeline.update(1, out, out_n, room, in, in_n), 0);
    EXPECT_EQ(last_reason, PROV_R_NO_KEY_SET);
    EXPECT_EQ(pipeline.init(key, {}, true), 0);
    EXPECT_EQ(pipeline.init(key, std::vector<Bytes>(33, iv), true), 0);
    EXPECT_EQ(pipeline.init(Bytes(24), {iv}, true), 0);
    EXPECT_EQ(last_reason, PROV_R_INVALID_KEY_LENGTH);
    ASSERT_EQ(pipeline.init(key, {iv}, false), 1);
    EXPECT_EQ(pipeline.update(2, out, out_n, room, in, in_n), 0) << "another number of pipes";
    room[0] = 31;
    EXPECT_EQ(pipeline.update(1, out, out_n, room, in, in_n), 0);
    EXPECT_EQ(last_reason, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    room[0] = 32;
    ASSERT_EQ(pipeline.update(1, out, out_n, room, in, in_n), 1) << "nothing of it was encrypted before";
    EXPECT_EQ(out_n[0], 32U);
    EXPECT_EQ(Bytes(to.begin(), to.begin() + 32),
              crypt(fetch(openssl(), "AES-128-CBC"), true, key, iv, Bytes(32)));
    EXPECT_EQ(pipeline.final(1, out, out_n, room), 0);
    EXPECT_EQ(last_reason, PROV_R_WRONG_FINAL_BLOCK_LENGTH);
    in_n[0] = 8;
    EXPECT_EQ(pipeline.update(1, out, out_n, room, in, in_n), 1);
    EXPECT_EQ(pipeline.final(1, out, out_n, none), 1);
    EXPECT_EQ(pipeline.final(1, out, out_n, room), 0) << "the messages have ended";
    EXPECT_EQ(pipeline.update(1, out, out_n, room, in, in_n), 0);
}

}  // namespace
}  // namespace mpisec::provider::test
