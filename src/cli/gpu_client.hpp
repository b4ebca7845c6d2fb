// libmpisec-gpu.so as `mpisec bench gpu` uses it: every call's failure is an Error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "gpu/library.h"

namespace mpisec::cli {

class GpuClient {
  public:
    /// Opens the library of this build and a GPU.
    static Result<GpuClient> open(int ordinal);

    std::string description() const { return table_->describe(gpu_.get()); }
    Result<void> set_key(std::span<const std::uint8_t> key) const {
        return checked(table_->set_key(gpu_.get(), key.data(), key.size()));
    }
    Result<std::uint64_t> allocate(std::size_t bytes) const;
    Result<void> release(std::uint64_t address) const {
        return checked(table_->release(gpu_.get(), address));
    }
    Result<void> copy_in(std::uint64_t to, const void* from, std::size_t bytes) const {
        return checked(table_->copy_in(gpu_.get(), to, from, bytes));
    }
    Result<void> copy_out(void* to, std::uint64_t from, std::size_t bytes) const {
        return checked(table_->copy_out(gpu_.get(), to, from, bytes));
    }

    class Batch;
    Result<Batch> prepare(std::span<const mpisec_gpu_packet> packets) const;
    Result<void> wait() const { return checked(table_->wait(gpu_.get())); }

  private:
    using Handle = std::unique_ptr<void, void (*)(void*)>;
    GpuClient(const mpisec_gpu_table* table, Handle gpu) : table_(table), gpu_(std::move(gpu)) {}
    Result<void> checked(int code) const {
        if (code == 0) return {};
        return fail(table_->error());
    }

    const mpisec_gpu_table* table_;
    Handle gpu_;
};

/// Packets in the GPU's memory; must be destroyed before its GpuClient.
class GpuClient::Batch {
  public:
    Batch(const GpuClient& client, void* handle, std::size_t count)
        : client_(&client), handle_(handle), count_(count) {}
    Batch(Batch&& other) noexcept : client_(other.client_), handle_(other.handle_), count_(other.count_) {
        other.handle_ = nullptr;
    }
    Batch& operator=(Batch&&) = delete;
    ~Batch() {
        if (handle_) client_->table_->finish(client_->gpu_.get(), handle_);
    }
    /// `what`: MPISEC_GPU_… of library.h. Does not wait.
    Result<void> run(int what, unsigned stream) const {
        return client_->checked(client_->table_->run(client_->gpu_.get(), handle_, what, stream));
    }
    Result<std::vector<std::uint32_t>> genuine() const {
        std::vector<std::uint32_t> of_each(count_);
        auto good = client_->checked(client_->table_->genuine(client_->gpu_.get(), handle_, of_each.data()));
        if (!good) return tl::unexpected(good.error());
        return of_each;
    }

  private:
    const GpuClient* client_;
    void* handle_;
    std::size_t count_;
};

}  // namespace mpisec::cli
