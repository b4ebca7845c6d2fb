// The kernels as nvcc compiled them. MPISEC_GPU_CODE is the directory; the build names no architecture that is
// not listed here.
#include "gpu/device.hpp"

#define MPISEC_EMBED(symbol, file)                                                             \
    __asm__(".section .rodata\n.balign 16\n.hidden " #symbol "\n.global " #symbol "\n" #symbol \
            ":\n.incbin \"" MPISEC_GPU_CODE "/" file "\"\n.byte 0\n.previous\n");              \
    extern "C" const unsigned char symbol[]

MPISEC_EMBED(mpisec_gpu_sm_80, "sm_80.cubin");
MPISEC_EMBED(mpisec_gpu_sm_90, "sm_90.cubin");
MPISEC_EMBED(mpisec_gpu_sm_100, "sm_100.cubin");
MPISEC_EMBED(mpisec_gpu_ptx, "kernels.ptx");

namespace mpisec::gpu {

std::span<const Image> images() {
    static constexpr Image all[] = {
        {100, mpisec_gpu_sm_100}, {90, mpisec_gpu_sm_90}, {80, mpisec_gpu_sm_80}, {0, mpisec_gpu_ptx}};
    return all;
}

}  // namespace mpisec::gpu
