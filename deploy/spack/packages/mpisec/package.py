# A recipe for Spack that builds a checkout, because no release is to be downloaded yet (docs/install.md):
#   make sources && tar -xf dist/mpisec-0.2.0-sources.tar.xz        in the checkout
#   spack repo add deploy/spack && spack develop --path CHECKOUT mpisec@=0.2.0 && spack install mpisec
from spack.package import *


class Mpisec(CMakePackage):
    """Encrypts the network traffic of unmodified MPI programs."""

    license("Apache-2.0", checked_by="mpisec")

    version("0.2.0")

    variant("slurm", default=False, description="Build the plug-in for Slurm")
    variant("lab", default=True, description="What mpisec lab, bench and report need to run")
    variant("cryptopp", default=False, description="Crypto++ as one of the crypto libraries")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.11:", type=("build", "run"), when="+lab")
    depends_on("python@3.11:", type="build", when="~lab")
    depends_on("openssl@3:")
    depends_on("libsodium")
    depends_on("intel-ipsec-mb")
    depends_on("cryptopp", when="+cryptopp")
    depends_on("cli11", type="build")
    depends_on("fmt", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("tomlplusplus", type="build")
    depends_on("tl-expected", type="build")
    depends_on("slurm", when="+slurm")
    depends_on("py-dpkt", type="run", when="+lab")
    depends_on("py-numpy", type="run", when="+lab")

    requires("target=x86_64:", msg="the shims are for x86-64")
    conflicts("%gcc@:11", msg="C++20 coroutines are needed")

    generator("ninja")
    build_targets = ["programs"]

    def cmake_args(self):
        return [
            self.define("MPISEC_BUILD_TESTS", False),
            self.define("MPISEC_FETCH", False),
            self.define("MPISEC_SLURM_INCLUDE", self.spec["slurm"].prefix.include if "+slurm" in self.spec else ""),
        ]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def what_is_there(self):
        Executable(self.prefix.bin.mpisec)("info")
