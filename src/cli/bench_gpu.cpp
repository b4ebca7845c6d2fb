#include "cli/bench_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "aead/aead.hpp"
#include "cli/gpu_client.hpp"
#include "cli/median.hpp"
#include "cli/size_text.hpp"

namespace mpisec::cli::of_gpu {  // as bench_crypto.cpp does for libraries
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t tag_bytes = 16, ad_bytes = 40;  // as every message has (wire/frame.hpp)
constexpr double paper_gb_per_s = 3.7 / 8;  // Jacquin et al., PASCO 2010: GeForce GTX 295, files of 128 KB

struct Mode {
    const char* name;
    std::size_t key_bytes;
    int seals, opens;
};
constexpr Mode modes[] = {{"aes-128-ctr", 16, MPISEC_GPU_COUNTER_MODE, MPISEC_GPU_COUNTER_MODE},
                          {"aes-256-ctr", 32, MPISEC_GPU_COUNTER_MODE, MPISEC_GPU_COUNTER_MODE},
                          {"aes-128-gcm", 16, MPISEC_GPU_SEAL, MPISEC_GPU_OPEN},
                          {"aes-256-gcm", 32, MPISEC_GPU_SEAL, MPISEC_GPU_OPEN}};

const Mode* mode_of(const std::string& name) {
    const auto* found = std::ranges::find_if(modes, [&](const Mode& one) { return name == one.name; });
    return found == std::end(modes) ? nullptr : found;
}

Bytes random_bytes(std::mt19937& engine, std::size_t n) {
    Bytes bytes(n);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(engine());
    return bytes;
}

// Keys here are made from a known seed and protect nothing.

/// Messages of random sizes at random addresses, sealed on the GPU and opened there, each compared with OpenSSL.
class Check {
  public:
    Check(const GpuClient& gpu, std::size_t key_bytes) : gpu_(gpu), key_(random_bytes(engine_, key_bytes)) {}

    Result<void> run(int messages) {
        if (auto good = gpu_.set_key(key_); !good) return good;
        for (int i = 0; i < messages; ++i) add();
        memory_.resize(memory_.size() + 64);
        const Result<std::uint64_t> device = gpu_.allocate(memory_.size());
        if (!device) return tl::unexpected(device.error());
        for (mpisec_gpu_packet& one : packets_)
            for (std::uint64_t* address : {&one.from, &one.to, &one.ad, &one.tag}) *address += *device;
        Result<void> result = seal_and_open(*device);
        if (auto released = gpu_.release(*device); result) result = released;
        return result;
    }

  private:
    void add() {
        const std::size_t n = engine_() % 3 ? engine_() % 5000 : engine_() % 200000;
        mpisec_gpu_packet one{};
        one.bytes = n;
        one.ad_bytes = static_cast<std::uint32_t>(engine_() % 60);
        one.counter = 2;
        for (std::uint8_t& byte : one.nonce) byte = static_cast<std::uint8_t>(engine_());
        one.from = place(n);
        one.to = place(n);
        one.tag = place(tag_bytes);
        one.ad = place(one.ad_bytes);
        packets_.push_back(one);
    }
    /// A place for n random bytes: at the beginning of a block or not.
    std::uint64_t place(std::size_t n) {
        const std::size_t at = (memory_.size() + 15) / 16 * 16 + (engine_() % 2 ? 0 : engine_() % 16);
        memory_.resize(at);
        const Bytes filling = random_bytes(engine_, n);
        memory_.insert(memory_.end(), filling.begin(), filling.end());
        return at;
    }

    Result<void> seal_and_open(std::uint64_t device) {
        if (auto good = gpu_.copy_in(device, memory_.data(), memory_.size()); !good) return good;
        const Result<GpuClient::Batch> seals = gpu_.prepare(packets_);
        if (!seals) return tl::unexpected(seals.error());
        if (auto good = seals->run(MPISEC_GPU_SEAL, 0); !good) return good;
        if (auto good = gpu_.wait(); !good) return good;
        const Bytes before = memory_;
        if (auto good = gpu_.copy_out(memory_.data(), device, memory_.size()); !good) return good;
        if (auto good = compare(before, device); !good) return good;
        std::vector<mpisec_gpu_packet> opens = packets_;
        for (mpisec_gpu_packet& one : opens) one.from = one.to;  // in place
        const Result<GpuClient::Batch> batch = gpu_.prepare(opens);
        if (!batch) return tl::unexpected(batch.error());
        if (auto good = batch->run(MPISEC_GPU_OPEN, 0); !good) return good;
        const auto genuine = batch->genuine();
        if (!genuine) return tl::unexpected(genuine.error());
        if (std::ranges::count(*genuine, 1u) != std::ssize(packets_))
            return fail("The GPU opened fewer than it sealed.");
        Bytes opened(memory_.size());
        if (auto good = gpu_.copy_out(opened.data(), device, opened.size()); !good) return good;
        for (const mpisec_gpu_packet& one : packets_)
            if (std::memcmp(&opened[one.to - device], &before[one.from - device], one.bytes) != 0)
                return fail(fmt::format("The GPU opened {} bytes wrong.", one.bytes));
        return {};
    }

    Result<void> compare(const Bytes& before, std::uint64_t device) const {
        const Result<const aead::Library*> library = aead::load("openssl");
        if (!library) return tl::unexpected(library.error());
        const auto cipher = key_.size() == 16 ? aead::Cipher::aes_128_gcm : aead::Cipher::aes_256_gcm;
        const Result<aead::Key> key = (*library)->make_key(cipher, key_.data());
        if (!key) return tl::unexpected(key.error());
        for (const mpisec_gpu_packet& one : packets_) {
            Bytes sealed(one.bytes + tag_bytes);
            if (!key->seal(sealed.data(), &before[one.from - device], one.bytes, one.nonce,
                           &before[one.ad - device], one.ad_bytes))
                return fail("OpenSSL did not seal what the GPU is compared with.");
            if (std::memcmp(sealed.data(), &memory_[one.to - device], one.bytes) != 0 ||
                std::memcmp(&sealed[one.bytes], &memory_[one.tag - device], tag_bytes) != 0)
                return fail(fmt::format("The GPU sealed {} bytes wrong.", one.bytes));
        }
        return {};
    }

    const GpuClient& gpu_;
    std::mt19937 engine_{20100721};  // NOLINT(cert-msc51-cpp): the same messages in every run
    Bytes key_, memory_;
    std::vector<mpisec_gpu_packet> packets_;
};

/// GB/s for one cipher and packet size.
struct Row {
    std::string cipher;
    std::size_t bytes = 0, packets = 0;
    double seal = 0, open = 0;  ///< all packets at once, in the GPU's memory
    double one_by_one = 0;      ///< a start per packet, on 32 streams
    double with_copies = 0;     ///< sealed as one batch, from the host's memory and back there
};

/// The packets of one row.
class Race {
  public:
    Race(const GpuClient& gpu, const Mode& mode, std::size_t bytes, std::size_t total)
        : gpu_(gpu), mode_(mode), bytes_(bytes), count_(std::max<std::size_t>(1, total / bytes)) {}

    Result<Row> run(int repetitions) {
        const std::size_t stride = (bytes_ + tag_bytes + 255) / 256 * 256, whole = stride * count_;
        const Result<std::uint64_t> from = gpu_.allocate(whole), to = gpu_.allocate(whole),
                                    ad = gpu_.allocate(ad_bytes);
        for (const auto* one : {&from, &to, &ad})
            if (!*one) return tl::unexpected(one->error());
        host_.assign(whole, 0x5a);
        if (auto good = gpu_.set_key(Bytes(mode_.key_bytes, 1)); !good) return tl::unexpected(good.error());
        if (auto good = gpu_.copy_in(*from, host_.data(), whole); !good) return tl::unexpected(good.error());
        for (std::size_t i = 0; i < count_; ++i) {
            mpisec_gpu_packet one{*from + i * stride,
                                  *to + i * stride,
                                  *ad,
                                  *to + i * stride + bytes_,
                                  bytes_,
                                  ad_bytes,
                                  2,
                                  {}};
            std::memcpy(one.nonce, &i, sizeof i);
            packets_.push_back(one);
        }
        Result<Row> row = time_all(*from, *to, repetitions);
        for (std::uint64_t address : {*from, *to, *ad})
            if (auto good = gpu_.release(address); !good && row) row = tl::unexpected(good.error());
        return row;
    }

  private:
    Result<Row> time_all(std::uint64_t from, std::uint64_t to, int repetitions) {
        const Result<GpuClient::Batch> seals = gpu_.prepare(packets_);
        std::vector<mpisec_gpu_packet> sealed = packets_;
        for (mpisec_gpu_packet& one : sealed) std::swap(one.from, one.to);
        const Result<GpuClient::Batch> opens = gpu_.prepare(sealed);
        if (!seals) return tl::unexpected(seals.error());
        if (!opens) return tl::unexpected(opens.error());
        std::vector<GpuClient::Batch> singles;
        for (std::size_t i = 0; i < std::min<std::size_t>(count_, 1024); ++i) {
            Result<GpuClient::Batch> one = gpu_.prepare({&packets_[i], 1});
            if (!one) return tl::unexpected(one.error());
            singles.push_back(std::move(*one));
        }
        Row row{mode_.name, bytes_, count_};
        row.seal = speed(count_, repetitions, [&] { return seals->run(mode_.seals, 0); });
        row.open = speed(count_, repetitions, [&] { return opens->run(mode_.opens, 0); });
        row.one_by_one = speed(singles.size(), repetitions, [&]() -> Result<void> {
            for (std::size_t i = 0; i < singles.size(); ++i)
                if (auto good = singles[i].run(mode_.seals, static_cast<unsigned>(i)); !good) return good;
            return {};
        });
        row.with_copies = speed(count_, repetitions, [&]() -> Result<void> {
            if (auto good = gpu_.copy_in(from, host_.data(), host_.size()); !good) return good;
            if (auto good = seals->run(mode_.seals, 0); !good) return good;
            return gpu_.copy_out(host_.data(), to, host_.size());
        });
        if (failure_) return fail(*failure_);
        return row;
    }

    /// The median of some rounds, each long enough to be timed.
    template <class Start>
    double speed(std::size_t packets, int repetitions, Start start) {
        std::vector<double> found;
        for (int i = -1; i < repetitions && !failure_; ++i) {  // the first warms up
            const auto begin = Clock::now();
            Result<void> good = start();
            if (good) good = gpu_.wait();
            if (!good) failure_ = good.error().message;
            const std::chrono::duration<double> took = Clock::now() - begin;
            if (i >= 0) found.push_back(static_cast<double>(packets * bytes_) / took.count() / 1e9);
        }
        return found.empty() ? 0 : median(found);
    }

    const GpuClient& gpu_;
    const Mode& mode_;
    std::size_t bytes_, count_;
    std::vector<mpisec_gpu_packet> packets_;
    Bytes host_;
    std::optional<std::string> failure_;
};

nlohmann::json to_json(const Row& row, const std::string& description) {
    return {{"library", "gpu"},
            {"version", description},
            {"cipher", row.cipher},
            {"bytes", row.bytes},
            {"threads", 1},
            {"packets", row.packets},
            {"seal_gb_per_s", row.seal},
            {"open_gb_per_s", row.open},
            {"one_by_one_gb_per_s", row.one_by_one},
            {"with_copies_gb_per_s", row.with_copies}};
}

void print_row(const Row& row) {
    fmt::print("{:<12} {:>6} {:>8} {:>10.3g} {:>10.3g} {:>12.3g} {:>12.3g} {:>9.3g}\n", row.cipher,
               size_text(row.bytes), row.packets, row.seal, row.open, row.one_by_one, row.with_copies,
               row.with_copies / paper_gb_per_s);
    std::fflush(stdout);
}

Result<std::vector<Row>> measure(const GpuClient& gpu, const BenchGpuOptions& options) {
    std::vector<Row> rows;
    for (const std::string& name : options.ciphers) {
        const Mode* mode = mode_of(name);
        if (!mode)
            return fail("There is no \"" + name +
                        "\" on a GPU; it has aes-128-ctr, aes-256-ctr, aes-128-gcm and aes-256-gcm.");
        for (std::size_t bytes : options.sizes) {
            Result<Row> row = Race(gpu, *mode, std::max<std::size_t>(bytes, 1), options.batch)
                                  .run(std::max(1, options.repetitions));
            if (!row) return tl::unexpected(row.error());
            if (!options.json) print_row(*row);
            rows.push_back(*row);
        }
    }
    return rows;
}

int refuse(const Error& error, int status) {
    fmt::print(stderr, "mpisec bench gpu: {}\n", error.message);
    return status;
}

int run(const BenchGpuOptions& options) {
    const Result<GpuClient> gpu = GpuClient::open(options.device);
    if (!gpu) return refuse(gpu.error(), 2);
    if (!options.json) fmt::print("{}\n", gpu->description());
    for (std::size_t key_bytes : {16u, 32u})
        if (auto good = Check(*gpu, key_bytes).run(options.checks); !good) return refuse(good.error(), 1);
    if (!options.json)
        fmt::print(
            "{} messages of random sizes and addresses: as OpenSSL seals them\n\n"
            "GB/s                         in its memory          a start per  from and to   times\n"
            "cipher         bytes  packets       seal       open       packet     the host   GTX 295\n",
            2 * options.checks);
    const Result<std::vector<Row>> rows = measure(*gpu, options);
    if (!rows) return refuse(rows.error(), 2);
    if (options.json) {
        nlohmann::json list = nlohmann::json::array();
        for (const Row& row : *rows) list.push_back(to_json(row, gpu->description()));
        fmt::print("{}\n", list.dump(1));
    } else {
        fmt::print(
            "\nGTX 295: 3.7 Gbit/s for files of 128 KB, from and to the host (Jacquin et al., PASCO "
            "2010).\n");
    }
    return 0;
}

}  // namespace
}  // namespace mpisec::cli::of_gpu

int mpisec::cli::bench_gpu(const BenchGpuOptions& options) {
    return of_gpu::run(options);
}
