"""Result files as `mpisec bench` writes them, with made-up numbers of the right shape."""

import json

CONDITIONS = {
    "cpu": "AMD EPYC 9V74 80-Core Processor",
    "cores": 2,
    "kernel": "6.18.5",
    "mpi": "mpich-5",
    "nodes": 2,
    "ranks": 2,
    "pinned": True,
    "rate_bits_per_second": None,
    "aead": "auto:aes-128-gcm",
    "overlays": {
        "vxlan": {"data_plane": "Linux vxlan", "where": "kernel", "mtu": 1450},
        "wireguard": {
            "data_plane": "wireguard-go 0.0.20220316",
            "where": "user space",
            "cipher": "ChaCha20-Poly1305",
            "mtu": 1420,
        },
        "ipsec": {"data_plane": "Linux XFRM", "where": "kernel", "cipher": "AES-128-GCM", "mtu": 1438},
    },
}
SIZES = [4, 64, 2048, 16384, 262144, 1048576]
# Ratios by size; the last scheme of each list of tests is MPIsec's worst rival.
RATIOS = {
    "mpisec": [1.05, 1.04, 1.06, 1.09, 1.31, 1.42],
    "mpisec aes-256-gcm": [1.06, 1.05, 1.08, 1.12, 1.38, 1.55],
    "vxlan": [1.35, 1.34, 1.4, 1.5, 1.6, 1.7],
    "wireguard": [3.1, 3.0, 3.8, 5.2, 9.6, 11.3],
    "ipsec": [1.5, 1.52, 1.9, 2.7, 4.4, 5.1],
}
ALGORITHMS = {"auto": 1.0, "naive": 1.45, "hs1": 1.1, "c-ring": 1.2}


def document(benchmark, title, command, rows, /, **changes):
    """A result file's content; `changes` replace its keys, those of `conditions` are merged."""
    conditions = CONDITIONS | changes.pop("conditions", {})
    return {
        "format": "mpisec-result-1",
        "benchmark": benchmark,
        "title": title,
        "command": command,
        "complete": True,
        "started": "2026-11-21T23:10:00Z",
        "conditions": conditions,
        "rows": rows,
    } | changes


def row(what, scheme, ratio, plain_us, spread=0.02, **more):
    return {
        "what": what,
        "scheme": scheme,
        "plain_us": plain_us,
        "time_us": round(plain_us * ratio, 3),
        "ratio": ratio,
        "ratio_low": round(ratio * (1 - spread), 4),
        "ratio_high": round(ratio * (1 + spread), 4),
        "rounds": 12,
    } | more


def plain(size, base=6.0):
    """Plain microseconds for so many bytes."""
    return round(base + size / 5200, 3)


def pingpong(schemes=tuple(RATIOS), **changes):
    rows = []
    for scheme in schemes:
        for size, ratio in zip(SIZES, RATIOS[scheme], strict=True):
            capped = {"capped": True, "spread": 0.12} if scheme == "mpisec" and size == 1048576 else {}
            rows.append(
                row(
                    "pingpong",
                    scheme,
                    ratio,
                    plain(size),
                    bytes=size,
                    **{k: v for k, v in capped.items() if k != "spread"},
                    spread=capped.get("spread", 0.02),
                )
            )
    return document(
        "pingpong",
        "Ping-pong, 2 nodes, unshaped link",
        "mpisec bench pingpong --against vxlan,wireguard,ipsec --output results/",
        rows,
        **changes,
    )


def pairs():
    rows = []
    for count in (1, 2, 4):
        for size in (1, 16384, 2097152):
            for scheme, ratio in (("mpisec", 1.2), ("wireguard", 6.0), ("ipsec", 2.8)):
                rows.append(
                    row(
                        "window",
                        scheme,
                        ratio + 0.1 * count,
                        64 * plain(size, 1.0) * count**0.8,
                        bytes=size,
                        pairs=count,
                        window=64,
                    )
                )
    return document(
        "pairs",
        "Several pairs, windows of 64, 10 Gbit/s",
        "mpisec bench pairs --pairs 1,2,4 --rate 10gbit",
        rows,
        conditions={"rate_bits_per_second": 1e10, "ranks": 8},
    )


def collective(what="allgather", **changes):
    rows = []
    for algorithm, factor in ALGORITHMS.items():
        for size, ratio in zip(SIZES, (0.97, 1.02, 1.1, 0.95, 1.5, 1.8), strict=True):
            rows.append(
                row(
                    what,
                    "mpisec",
                    round(ratio * factor, 3),
                    plain(size, 20.0) * 3,
                    bytes=size,
                    algorithm=algorithm,
                )
            )
    for scheme, factor in (("wireguard", 2.9), ("ipsec", 1.0)):
        for size, ratio in zip(SIZES, (1.2, 1.3, 1.05, 0.9, 1.8, 2.2), strict=True):
            rows.append(row(what, scheme, round(ratio * factor, 3), plain(size, 20.0) * 3, bytes=size))
    title = {"allgather": "All-gather", "bcast": "Broadcast", "alltoall": "All-to-all"}.get(what, what)
    return document(
        "collective",
        f"{title}, 4 ranks on 2 nodes",
        f"mpisec bench {what} --algorithms auto,naive,hs1,c-ring",
        rows,
        **{"conditions": {"ranks": 4}} | changes,
    )


def kernels():
    rows = []
    times = {"bt": 61.0, "cg": 3.4, "ft": 5.9, "lu": 40.2, "mg": 2.7, "sp": 58.3, "is": 0.9}
    for scheme, base in (("mpisec", 1.03), ("vxlan", 1.1), ("wireguard", 2.1), ("ipsec", 1.5)):
        for i, (name, seconds) in enumerate(times.items()):
            rows.append(
                row(
                    name,
                    scheme,
                    round(base + 0.04 * i * (base - 0.95), 3),
                    seconds * 1e6,
                    0.01,
                    **{"class": "A"},
                )
            )
        rows.append(
            row(
                "total",
                scheme,
                round(base + 0.1 * (base - 0.95), 3),
                sum(times.values()) * 1e6,
                0.008,
                **{"class": "A"},
            )
        )
    return document(
        "kernels",
        "Application kernels, class A",
        "mpisec bench kernels --class A",
        rows,
        conditions={"ranks": 4},
    )


def external():
    rows = [
        row("IMB Exchange", s, r, plain(n), bytes=n)
        for s, r in (("mpisec", 1.1), ("wireguard", 4.0))
        for n in (1024, 65536)
    ]
    return document("external", "Intel MPI Benchmarks", "mpisec bench external -- IMB-MPI1 Exchange", rows)


def startup():
    rows = [
        {"what": "MPI_Init", "plain_ms": 61.0, "time_ms": 92.5},
        {"what": "whole job", "plain_ms": 310.0, "time_ms": 371.0},
    ]
    return document(
        "startup",
        "Start of a job, 4 nodes",
        "mpisec bench startup --nodes 4 --ranks 12",
        rows,
        conditions={"nodes": 4, "ranks": 12},
    )


def crypto():
    speeds = {
        "boringssl": 11.2,
        "openssl": 9.6,
        "ipsec-mb": 10.8,
        "ipp": 10.7,
        "cryptopp": 3.6,
        "sodium": 1.8,
    }
    rows = []
    for cipher, factor in (("aes-128-gcm", 1.2), ("aes-256-gcm", 1.0)):
        for threads in (1, 2):
            for size in (16, 256, 4096, 65536, 1048576):
                for library, top in speeds.items():
                    speed = top * factor * size / (size + 700) * threads**0.95
                    rows.append(
                        {
                            "library": library,
                            "version": "1.0",
                            "cipher": cipher,
                            "bytes": size,
                            "threads": threads,
                            "seal_gb_per_s": speed,
                            "open_gb_per_s": speed * 0.97,
                            "memcpy_gb_per_s": 45.0 * size / (size + 100),
                        }
                    )
    return document(
        "crypto",
        "Crypto libraries",
        "mpisec bench crypto --sizes 16,256,4K,64K,1M --threads 1,2 --json",
        rows,
    )


def everything():
    """File name -> content: one of each."""
    return {
        "10-pingpong": pingpong(),
        "11-pingpong-10gbit": pingpong(
            ("mpisec", "ipsec"), title="Ping-pong, 10 Gbit/s", conditions={"rate_bits_per_second": 1e10}
        ),
        "20-pairs": pairs(),
        "30-allgather": collective(),
        "31-bcast": collective("bcast"),
        "32-alltoall": collective("alltoall", complete=False),
        "40-kernels": kernels(),
        "50-external": external(),
        "60-startup": startup(),
        "70-crypto": crypto(),
    }


def write(directory, files):
    """Writes {name: content} as JSON files; returns the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return directory
