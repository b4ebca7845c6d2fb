// The kernels: one thread of each does what batch.hpp says. Compiled by nvcc to PTX and cubins, which
// libmpisec-gpu.so carries.
#include "gpu/batch.hpp"

namespace {

__device__ __forceinline__ std::uint32_t thread_number() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

}  // namespace

// Blocks of 128 threads, which may have all the registers that a state of 128 words takes.
extern "C" __global__ void __launch_bounds__(128) mpisec_crypt(const mpisec::gpu::Batch batch) {
    if (thread_number() < batch.threads + mpisec::gpu::mask_threads(batch))
        mpisec::gpu::crypt_thread(batch, thread_number());
}
extern "C" __global__ void __launch_bounds__(128) mpisec_hash(const mpisec::gpu::Batch batch) {
    if (thread_number() < batch.threads) mpisec::gpu::hash_thread(batch, thread_number());
}
#if !defined(__CUDA_ARCH__) || (__CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1000)  // windows.hpp
extern "C" __global__ void __launch_bounds__(128) mpisec_hash_windows(const mpisec::gpu::Batch batch) {
    if (thread_number() < mpisec::gpu::lanes * batch.chunks)
        mpisec::gpu::hash_windows_thread(batch, thread_number());
}
#endif
extern "C" __global__ void __launch_bounds__(128) mpisec_fold(const mpisec::gpu::Batch batch) {
    if (thread_number() < batch.chunks) mpisec::gpu::fold_thread(batch, thread_number());
}
extern "C" __global__ void __launch_bounds__(128) mpisec_finish(const mpisec::gpu::Batch batch) {
    if (thread_number() < batch.count) mpisec::gpu::finish_thread(batch, thread_number());
}
extern "C" __global__ void __launch_bounds__(128) mpisec_wipe(const mpisec::gpu::Batch batch) {
    if (thread_number() < batch.threads) mpisec::gpu::wipe_thread(batch, thread_number());
}
