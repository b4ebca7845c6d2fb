#!/usr/bin/env python3
"""gpu_resources.py [--nvcc NVCC] [ARCHITECTURE…]: what a thread and a block of each kernel take on GPUs (sm_80 sm_90 sm_100), as a table of
Markdown: registers, bytes spilled to memory, shared memory. Asks ptxas, so needs no GPU. Exit status 1 when a kernel spills more than --spills."""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGISTERS_OF_MULTIPROCESSOR = 65536
THREADS_PER_BLOCK = 128  # kernels.cu


def nvcc_path() -> str:
    """The one that tools/setup.sh installs, else that of the machine."""
    found = sorted(ROOT.glob(".deps/gpu-venv/lib/python3*/site-packages/nvidia/cu*/bin/nvcc"))
    return str(found[-1]) if found else "nvcc"


def ptxas_says(nvcc: str, architecture: str) -> str:
    source = ROOT / "src/gpu/kernels.cu"
    with tempfile.TemporaryDirectory() as directory:
        command = [nvcc, "-std=c++17", "-O3", f"-I{ROOT / 'src'}", f"-arch={architecture}", "-cubin", "-Xptxas", "-v", "-o", f"{directory}/out", str(source)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def resources(text: str) -> dict[str, tuple[int, int, int, int]]:
    """{kernel: (registers, bytes of the stack, bytes spilled, bytes of shared memory)}, out of what ptxas -v says."""
    found = {}
    for part in re.split(r"Compiling entry function ", text)[1:]:
        name = re.match(r"'(\w+)'", part)
        registers = re.search(r"Used (\d+) registers", part)
        memory = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", part)
        shared = re.search(r"(\d+) bytes smem", part)
        if name and registers and memory:
            found[name[1]] = (int(registers[1]), int(memory[1]), int(memory[2]), int(shared[1]) if shared else 0)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("architectures", nargs="*", default=["sm_80", "sm_90", "sm_100"])
    parser.add_argument("--nvcc", default=nvcc_path())
    parser.add_argument("--spills", type=int, default=16, help="bytes that a thread may spill (16)")
    arguments = parser.parse_args()
    print("| kernel | GPU | registers of a thread | bytes spilled | shared memory of a block | warps of a multiprocessor |")
    print("| --- | --- | --- | --- | --- | --- |")
    worst = 0
    for architecture in arguments.architectures:
        for kernel, (registers, _, spilled, shared) in sorted(resources(ptxas_says(arguments.nvcc, architecture)).items()):
            allocated = (registers + 7) // 8 * 8  # per thread, in eights
            blocks = REGISTERS_OF_MULTIPROCESSOR // (allocated * THREADS_PER_BLOCK)
            print(f"| `{kernel}` | {architecture} | {registers} | {spilled} | {shared} | {min(64, blocks * THREADS_PER_BLOCK // 32)} |")
            worst = max(worst, spilled)
    return int(worst > arguments.spills)


if __name__ == "__main__":
    sys.exit(main())
