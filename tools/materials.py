#!/usr/bin/env python3
"""materials.py --version VERSION --deps DIRECTORY -o DIRECTORY: what is inside the wheel: sboms/mpisec.cdx.json, a bill of materials
(CycloneDX), and licenses/NAME, the licence of each library. Equal inputs and SOURCE_DATE_EPOCH make equal files. Needs
cyclonedx-python-lib; `make wheel` has it."""

import argparse
import os
import re
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

TOP = Path(__file__).resolve().parent.parent
# mpisec_fetch_crate(NAME VERSION …) and mpisec_fetch_wheel(NAME VERSION OUT SHA256)
FETCHED = re.compile(r"mpisec_fetch_(crate|wheel)\(([\w-]+) ([\d.]+)(?: \w+ ([0-9a-f]{64}))?")


@dataclass(frozen=True)
class Library:
    """A library of which the wheel has code, and the package that it is taken from."""

    name: str
    spdx: str
    package: PackageURL
    licence: Path
    sha256: str | None = None  # of the package


def crate_or_wheel(deps: Path, name: str, package: str, spdx: str, licence: str) -> Library:
    """One that src/aead/libraries/*.cmake fetches, in the version named there."""
    text = "".join(file.read_text() for file in sorted((TOP / "src/aead/libraries").glob("*.cmake")))
    kind, _, version, sha256 = next(found for found in FETCHED.findall(text) if found[1] == package)
    url = PackageURL(type={"crate": "cargo", "wheel": "pypi"}[kind], name=package, version=version)
    return Library(name, spdx, url, next((deps / f"{package}-{version}").glob(licence)), sha256 or None)


def debian(name: str, package: str, spdx: str) -> Library:
    """One of this machine."""
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=True)
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    distribution = f"{release['ID']}-{release.get('VERSION_ID', '').strip(chr(34))}"
    url = PackageURL(type="deb", namespace=release["ID"], name=package, version=asked.stdout, qualifiers={"arch": "amd64", "distro": distribution})
    return Library(name, spdx, url, Path("/usr/share/doc", package, "copyright"))


def runtime(name: str, spdx: str, licence: str) -> Library:
    """One of zig's, which is compiled into everything."""
    zig = metadata.distribution("ziglang")
    return Library(name, spdx, PackageURL(type="pypi", name="ziglang", version=zig.version), Path(str(zig.locate_file("ziglang"))) / licence)


def libraries(deps: Path) -> list[Library]:
    return [
        crate_or_wheel(deps, "boringssl", "boring-sys", "Apache-2.0", "deps/boringssl/LICENSE"),
        crate_or_wheel(deps, "libaegis", "aegis", "MIT", "LICENSE"),
        crate_or_wheel(deps, "ipp-crypto", "ipp-crypto-static", "Apache-2.0", "*.dist-info/LICENSE.txt"),
        debian("intel-ipsec-mb", "libipsec-mb-dev", "BSD-3-Clause"),
        debian("libsodium", "libsodium-dev", "ISC"),
        debian("openssl", "libssl-dev", "Apache-2.0"),
        debian("fmt", "libfmt-dev", "MIT"),
        debian("tomlplusplus", "libtomlplusplus-dev", "MIT"),
        debian("cli11", "libcli11-dev", "BSD-3-Clause"),
        debian("tl-expected", "libexpected-dev", "CC0-1.0"),
        debian("nlohmann-json", "nlohmann-json3-dev", "MIT"),
        runtime("libcxx", "Apache-2.0 WITH LLVM-exception", "lib/libcxx/LICENSE.TXT"),
        runtime("libcxxabi", "Apache-2.0 WITH LLVM-exception", "lib/libcxxabi/LICENSE.TXT"),
        runtime("libunwind", "Apache-2.0 WITH LLVM-exception", "lib/libunwind/LICENSE.TXT"),
        runtime("zig-compiler-rt", "MIT", "LICENSE"),
    ]


def bill(version: str, inside: list[Library]) -> Bom:
    licences = LicenseFactory()
    url = PackageURL(type="pypi", name="mpisec", version=version)
    whole = Component(name="mpisec", version=version, type=ComponentType.APPLICATION, purl=url, bom_ref=str(url),
                      licenses=[licences.make_from_string("Apache-2.0")])
    parts = [
        Component(name=library.name, version=library.package.version, type=ComponentType.LIBRARY, purl=library.package,
                  bom_ref=f"{library.name}@{library.package.version}", licenses=[licences.make_from_string(library.spdx)],
                  hashes=[HashType(alg=HashAlgorithm.SHA_256, content=library.sha256)] if library.sha256 else [])
        for library in inside
    ]
    text = "\n".join(str(part.purl) for part in [whole, *parts])
    bom = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, text))
    bom.metadata.component = whole
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    bom.register_dependency(whole, parts)
    return bom


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--deps", type=Path, required=True, help="where crates and wheels are unpacked (MPISEC_DEPS_DIR)")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.output, ignore_errors=True)
    inside = libraries(arguments.deps)
    for directory in ("sboms", "licenses"):
        (arguments.output / directory).mkdir(parents=True)
    for library in inside:
        shutil.copyfile(library.licence, arguments.output / "licenses" / library.name)
    written = JsonV1Dot6(bill(arguments.version, inside)).output_as_string(indent=2)
    (arguments.output / "sboms/mpisec.cdx.json").write_text(written + "\n")


if __name__ == "__main__":
    main()
