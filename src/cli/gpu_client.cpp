#include "cli/gpu_client.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "aead/aead.hpp"

namespace mpisec::cli {

Result<GpuClient> GpuClient::open(int ordinal) {
    const std::string file = aead::plugin_directory() + "/libmpisec-gpu.so";
    if (!std::filesystem::exists(file))
        return fail("This build of MPIsec has no code for GPUs (there is no " + file +
                    "): NVIDIA's compiler was not there when it was built. docs/gpu.md says how to get it.");
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return fail("The library for GPUs cannot be opened: " + std::string(dlerror()));
    const auto* table = static_cast<const mpisec_gpu_table*>(dlsym(library, MPISEC_GPU_SYMBOL));
    if (!table || table->abi != MPISEC_GPU_VERSION)
        return fail(file + " belongs to another version of MPIsec; install the two from one build.");
    Handle gpu(table->open(ordinal), table->close);
    if (!gpu) return fail(table->error());
    return GpuClient(table, std::move(gpu));  // the library stays loaded
}

Result<std::uint64_t> GpuClient::allocate(std::size_t bytes) const {
    std::uint64_t address = 0;
    if (auto good = checked(table_->allocate(gpu_.get(), bytes, &address)); !good)
        return tl::unexpected(good.error());
    return address;
}

Result<GpuClient::Batch> GpuClient::prepare(std::span<const mpisec_gpu_packet> packets) const {
    void* handle = table_->prepare(gpu_.get(), packets.data(), packets.size());
    if (!handle) return fail(table_->error());
    return Batch(*this, handle, packets.size());
}

}  // namespace mpisec::cli
