// A batch of packets that runs on the host, thread after thread, as it runs on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "gpu/kernels.hpp"
#include "gpu/key.hpp"

namespace mpisec::gpu::test {

using Bytes = std::vector<std::uint8_t>;

/// By which of them a batch is hashed depends on the GPU.
inline constexpr const Kernel* hashes[] = {&kernel::hash, &kernel::hash_windows};

/// The last key's is kept: expanding it takes longer than a small packet.
inline std::shared_ptr<const KeyMaterial> expanded(const Bytes& key) {
    static Bytes last;
    static std::shared_ptr<KeyMaterial> material;
    if (key != last) {
        material = std::make_shared<KeyMaterial>();
        expand_key(key, *material);
        last = key;
    }
    return material;
}

class HostBatch {
  public:
    HostBatch(const Bytes& key, const Kernel& hash)
        : material_(expanded(key)), rounds_(rounds_of(key.size())), hash_(hash) {}

    /// `nonce`: 12 bytes. What is pointed to must outlive run().
    void add(const std::uint8_t* from, std::uint8_t* to, std::size_t bytes, const std::uint8_t* nonce,
             const Bytes& ad, std::uint8_t* tag) {
        Packet packet{from, to, ad.data(), tag, bytes, static_cast<std::uint32_t>(ad.size()), 2, {}, 0, 0};
        std::memcpy(packet.nonce, nonce, nonce_bytes);
        packets_.push_back(packet);
    }
    Packet& last() { return packets_.back(); }

    /// Whether each packet is genuine, where packets are opened.
    std::vector<bool> run(Task task) {
        const Result<Extent> extent = lay_out(packets_);
        EXPECT_TRUE(extent) << extent.error().message;
        std::vector<Block> masks(packets_.size());
        std::vector<Element> chunk_sums(extent->chunks + 1), sums(packets_.size());
        std::vector<std::uint32_t> genuine(packets_.size(), 2);
        const Batch batch{packets_.data(),   material_->round_keys,
                          material_.get(),   masks.data(),
                          chunk_sums.data(), sums.data(),
                          genuine.data(),    static_cast<std::uint32_t>(packets_.size()),
                          rounds_,           extent->threads,
                          extent->chunks,    task};
        run_on_host(kernels_of(task, hash_), batch);
        return {genuine.begin(), genuine.end()};
    }

  private:
    std::shared_ptr<const KeyMaterial> material_;
    unsigned rounds_;
    const Kernel& hash_;
    std::vector<Packet> packets_;
};

}  // namespace mpisec::gpu::test
