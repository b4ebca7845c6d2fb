// libmpisec-gpu.so through its table, on the fake driver: memory that faults on any access of the host's, and the
// kernels that the library launches, run on the host.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gpu/library.h"

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::size_t tag_bytes = 16;

const mpisec_gpu_table& table() {
    static const auto* found = [] {
        void* library = dlopen(MPISEC_GPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        EXPECT_TRUE(library) << dlerror();
        return static_cast<const mpisec_gpu_table*>(dlsym(library, MPISEC_GPU_SYMBOL));
    }();
    return *found;
}

class Gpu {
  public:
    Gpu() : gpu_(table().open(0)) { EXPECT_TRUE(gpu_) << table().error(); }
    ~Gpu() { table().close(gpu_); }
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;
    void* get() const { return gpu_; }

    std::uint64_t put(const Bytes& bytes) const {
        std::uint64_t address = 0;
        EXPECT_EQ(table().allocate(gpu_, bytes.size(), &address), 0) << table().error();
        EXPECT_EQ(table().copy_in(gpu_, address, bytes.data(), bytes.size()), 0) << table().error();
        return address;
    }
    Bytes take(std::uint64_t address, std::size_t bytes) const {
        Bytes got(bytes);
        EXPECT_EQ(table().copy_out(gpu_, got.data(), address, bytes), 0) << table().error();
        return got;
    }
    std::vector<std::uint32_t> run(const std::vector<mpisec_gpu_packet>& packets, int what) const {
        void* batch = table().prepare(gpu_, packets.data(), packets.size());
        EXPECT_TRUE(batch) << table().error();
        EXPECT_EQ(table().run(gpu_, batch, what, 3), 0) << table().error();
        EXPECT_EQ(table().wait(gpu_), 0);
        std::vector<std::uint32_t> genuine(packets.size());
        EXPECT_EQ(table().genuine(gpu_, batch, genuine.data()), 0);
        table().finish(gpu_, batch);
        return genuine;
    }

  private:
    void* gpu_;
};

Bytes random_bytes(std::size_t n, unsigned seed) {
    std::mt19937 engine(seed);
    Bytes bytes(n);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(engine());
    return bytes;
}

Bytes by_openssl(const Bytes& key, const std::uint8_t* nonce, const Bytes& plain) {
    EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
    Bytes sealed(plain.size() + tag_bytes);
    int n = 0;
    EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nullptr, key.data(), nonce);
    EVP_EncryptUpdate(context, sealed.data(), &n, plain.data(), static_cast<int>(plain.size()));
    EVP_EncryptFinal_ex(context, sealed.data() + plain.size(), &n);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, tag_bytes, sealed.data() + plain.size());
    EVP_CIPHER_CTX_free(context);
    return sealed;
}

TEST(GpuDevice, SealsAndOpensInItsMemory) {
    const Gpu gpu;
    const Bytes key = random_bytes(32, 1);
    ASSERT_EQ(table().set_key(gpu.get(), key.data(), key.size()), 0) << table().error();
    std::vector<mpisec_gpu_packet> seals, opens;
    std::vector<Bytes> plain;
    for (const std::size_t bytes : {0u, 1u, 4096u, 50000u}) {
        plain.push_back(random_bytes(bytes, 7 + static_cast<unsigned>(bytes)));
        const std::uint64_t to = gpu.put(Bytes(bytes + tag_bytes));
        mpisec_gpu_packet one{gpu.put(plain.back()), to, 0, to + bytes, bytes, 0, 2, {}};
        one.nonce[0] = static_cast<std::uint8_t>(seals.size());
        seals.push_back(one);
        one.from = to;
        opens.push_back(one);
    }
    gpu.run(seals, MPISEC_GPU_SEAL);
    for (std::size_t i = 0; i < plain.size(); ++i)
        EXPECT_EQ(gpu.take(seals[i].to, plain[i].size() + tag_bytes),
                  by_openssl(key, seals[i].nonce, plain[i]));
    const Bytes forged = {static_cast<std::uint8_t>(gpu.take(opens[2].tag, 1)[0] ^ 1)};
    EXPECT_EQ(table().copy_in(gpu.get(), opens[2].tag, forged.data(), 1), 0);
    EXPECT_EQ(gpu.run(opens, MPISEC_GPU_OPEN), (std::vector<std::uint32_t>{1, 1, 0, 1}));
    for (std::size_t i = 0; i < plain.size(); ++i)
        EXPECT_EQ(gpu.take(opens[i].to, plain[i].size()), i == 2 ? Bytes(plain[i].size()) : plain[i]);
}

TEST(GpuDevice, HostsMayNotTouchItsMemory) {
    const Gpu gpu;
    const std::uint64_t address = gpu.put(Bytes(100));
    EXPECT_DEATH(*reinterpret_cast<volatile std::uint8_t*>(address) = 1, "");
}

TEST(GpuDevice, SaysWhatIsWrong) {
    EXPECT_EQ(table().open(1), nullptr);
    EXPECT_NE(std::string(table().error()).find("There is no GPU 1 on this machine"), std::string::npos);
    const Gpu gpu;
    const Bytes key(24);
    EXPECT_NE(table().set_key(gpu.get(), key.data(), key.size()), 0);
    EXPECT_NE(std::string(table().error()).find("16 or 32 bytes, not 24"), std::string::npos);
    mpisec_gpu_packet packet{};
    void* batch = table().prepare(gpu.get(), &packet, 1);
    EXPECT_NE(table().run(gpu.get(), batch, MPISEC_GPU_SEAL, 0), 0);
    EXPECT_NE(std::string(table().error()).find("no key"), std::string::npos);
    table().finish(gpu.get(), batch);
    EXPECT_EQ(table().prepare(gpu.get(), nullptr, 0), nullptr);
}

TEST(GpuDevice, DriverThatRefusesCubins) {
    EXPECT_NE(std::string(table().describe(Gpu().get())).find("code for sm_90"), std::string::npos);
    setenv("FAKE_CUDA_FAIL", "cubin", 1);
    EXPECT_NE(std::string(table().describe(Gpu().get())).find("PTX"), std::string::npos);
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel", 1);
    {
        const Gpu gpu;
        const Bytes key(16);
        EXPECT_EQ(table().set_key(gpu.get(), key.data(), key.size()), 0);
        mpisec_gpu_packet packet{};
        packet.tag = gpu.put(Bytes(16));
        void* batch = table().prepare(gpu.get(), &packet, 1);
        EXPECT_NE(table().run(gpu.get(), batch, MPISEC_GPU_SEAL, 0), 0);
        EXPECT_NE(std::string(table().error()).find("start a kernel"), std::string::npos);
        table().finish(gpu.get(), batch);
    }
    unsetenv("FAKE_CUDA_FAIL");
}

}  // namespace
