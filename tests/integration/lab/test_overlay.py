"""Overlays: plain jobs run over them, and the wire below them carries their packets and nothing else."""

import contextlib
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from slow import slow
from test_lab import lab_command, lab_environment, processes_with

from mpisec_lab.capture import count
from mpisec_lab.cluster import Cluster
from mpisec_lab.errors import LabError
from mpisec_lab.overlay import OVERLAYS, base, make
from mpisec_lab.overlay.vxlan import Vxlan
from mpisec_lab.rate import check_rate

HERE = Path(__file__).resolve().parent
MARKER = "over-and-under-0123456789"
REPEATS = 40_000  # 1 MB
ENCRYPTED = [name for name in OVERLAYS if name != "vxlan"]


@pytest.fixture(scope="module")
def laid(lab):
    """laid(overlay, nodes=2): a context manager with a Cluster; skips the test when programs are missing."""

    @contextlib.contextmanager
    def lay(overlay, nodes=2):
        with contextlib.ExitStack() as stack:
            try:
                one = stack.enter_context(Cluster(nodes, overlay=overlay))
            except LabError as error:
                if "apt-get install" not in str(error) or os.environ.get("MPISEC_LAB_REQUIRED") == "1":
                    raise
                pytest.skip(str(error))
            yield one

    return lay


@pytest.fixture(scope="module", params=OVERLAYS)
def two(request, laid):
    """A cluster of two nodes with each overlay."""
    with laid(request.param) as one:
        yield one


@pytest.fixture
def send_marker(compile_mpi):
    """send_marker(cluster, **options): a plain job that sends MARKER REPEATS times; its Result."""

    def run(cluster, **options):
        app = compile_mpi(HERE / "marker.c", "mpich-5")
        ranks = len(cluster.names)
        result = cluster.run([app, MARKER, REPEATS], ranks=ranks, **{"plain": True, "timeout": 60, **options})
        assert f"right {REPEATS} of {REPEATS}" in result.check().stdout
        return result

    return run


# --- what is on the wire ---


def _is_wireguard(packet):
    """Initiation, response, cookie or data (1 to 4), then three zeros."""
    ports = {packet.source.partition(":")[2], packet.destination.partition(":")[2]}
    kind = int.from_bytes(packet.data[:4], "little")
    return packet.protocol == "udp" and ports == {"51820"} and 1 <= kind <= 4


def _is_ipsec(packet):
    """ESP, in UDP or not; or IKE, on ESP's port marked by an SPI of zero; or the byte of a keepalive."""
    ports = {packet.source.partition(":")[2], packet.destination.partition(":")[2]}
    if packet.protocol == "udp" and ports == {"500"}:
        return _is_ike(packet.data)
    if packet.protocol == "udp" and ports == {"4500"}:
        return packet.data == b"\xff" or packet.data[:4] != bytes(4) or _is_ike(packet.data[4:])
    return packet.protocol == "ip 50"


def _is_ike(message):
    """Whether it has a header of IKE version 2 and the length that this tells."""
    version, length = struct.unpack("!17xB6xI", message[:28])
    return version == 0x20 and length == len(message)


def _is_vxlan(packet):
    return packet.protocol == "udp" and packet.destination.endswith(":4789") and packet.data[:1] == b"\x08"


BELONGS = {"vxlan": _is_vxlan, "wireguard": _is_wireguard, "ipsec": _is_ipsec, "vxlan+ipsec": _is_ipsec}


def _kinds(packets):
    """What packets there are, for messages: {(protocol, source, destination): how many}."""
    found = {}
    for packet in packets:
        kind = (packet.protocol, packet.source, packet.destination)
        found[kind] = found.get(kind, 0) + 1
    return found


def _send_longest_datagram(cluster):
    """One packet as long as the overlay takes. Those of a stream may cross the wire together in a long frame that nobody cuts: TCP's, and
    WireGuard's (wireguard-go of 2023 leaves that to the kernel)."""
    size = cluster.overlay.conditions["mtu"] - 28
    send = (
        "import socket, sys\n"
        "socket.socket(type=socket.SOCK_DGRAM).sendto(bytes(int(sys.argv[1])), (sys.argv[2], 9))"
    )
    cluster.execute(0, [sys.executable, "-c", send, size, cluster.addresses[1]], sweep=False).check()


def test_the_wire_carries_the_overlay_and_nothing_else(two, send_marker, tmp_path):
    with two.capture(tmp_path / "under.pcap") as wire:
        send_marker(two)
    packets = wire.streams()
    name = two.overlay.name
    assert _kinds(packet for packet in packets if not BELONGS[name](packet)) == {}
    assert sum(len(packet.data) for packet in packets) > REPEATS * len(MARKER)
    assert {packet.source.partition(":")[0] for packet in packets} == set(two.underlay_addresses)
    seen = count(packets, MARKER.encode())
    if name == "vxlan":
        assert seen >= 0.9 * REPEATS, "packets' ends cut few markers"
    else:
        assert seen == 0


def test_the_longest_packet_fills_the_wire(two, tmp_path):
    with two.capture(tmp_path / "under.pcap") as wire:
        _send_longest_datagram(two)
    longest = max(len(packet.data) + (28 if packet.protocol == "udp" else 20) for packet in wire.streams())
    assert two.mtu - 60 < longest <= two.mtu, "longer than the wire takes, or without need shorter"


@pytest.mark.slow
def test_key_exchange_is_told_from_packets(laid, tmp_path):
    with laid("ipsec") as one:
        if one.overlay.conditions["runs_in"] == base.KERNEL:
            pytest.skip("the kernel's keys are set without an exchange")
        control = ["env", f"STRONGSWAN_CONF={one.directory / 'node0.strongswan'}", one.directory / "swanctl"]
        rekey = [*control, "--rekey", "--ike", "node1", "--uri", f"unix://{one.directory / 'node0.vici'}"]
        with one.capture(tmp_path / "under.pcap") as wire:
            one.execute(0, rekey, sweep=False).check()
            assert check_rate(one, 1e6, seconds=0.2).measured > 0
        packets = wire.streams()
    assert _kinds(packet for packet in packets if not _is_ipsec(packet)) == {}
    assert len([packet for packet in packets if packet.data[:4] == bytes(4)]) >= 2, "no IKE seen"


@pytest.mark.slow
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_four_nodes(laid, send_marker, compile_mpi, overlay, tmp_path):
    with laid(overlay, 4) as four:
        with four.capture(tmp_path / "under.pcap") as wire:
            result = four.run([compile_mpi(HERE / "whereami.c", "mpich-5")], ranks=4, plain=True).check()
            send_marker(four)
        assert sorted(line.split()[3] for line in result.stdout.splitlines()) == four.names
        packets = wire.streams()
        assert _kinds(packet for packet in packets if not BELONGS[overlay](packet)) == {}
        assert (count(packets, MARKER.encode()) == 0) == (overlay in ENCRYPTED)


# --- jobs ---


def _daemons(cluster):
    """Process numbers of the cluster's daemons, as its nodes see them."""
    look = "grep -lxE 'wireguard-go|charon-systemd' /proc/[0-9]*/comm"
    said = cluster.execute(0, ["sh", "-c", look], sweep=False).stdout
    return {int(line.split("/")[2]) for line in said.splitlines()}


def test_daemons_survive_jobs_and_what_jobs_leave_behind_does_not(two, send_marker):
    before = _daemons(two)
    runs_in = two.overlay.conditions["runs_in"]
    assert len(before) == (2 if runs_in == base.USER_SPACE else 0)
    for _ in range(2):
        assert send_marker(two).left_over == []
    left = two.execute(1, ["sh", "-c", "setsid sleep 654.321 > /dev/null 2>&1 &"]).left_over
    assert [command.split() for command in left] == [["sleep", "654.321"]]
    assert _daemons(two) == before


@pytest.mark.slow
def test_the_rate_holds_over_an_overlay(two, compile_mpi):
    rate = 40e6  # daemons in user space carry little more on busy machines
    check = check_rate(two, rate, seconds=0.5)
    assert 0.5 * rate <= check.measured <= 1.1 * rate
    result = two.run(
        [compile_mpi(HERE / "stream.c", "mpich-5"), "12"], ranks=2, plain=True, rate=rate, timeout=60
    )
    assert 0.4 * rate <= float(result.check().stdout) <= 1.1 * rate
    assert check_rate(two, seconds=0.5).measured > 1.5 * rate, "no faster without a rate: this shows nothing"


@pytest.mark.parametrize("mpi", ["openmpi-5", *slow("mpich-4", "openmpi-4", "impi")])
def test_other_mpis_stay_on_the_overlay(laid, compile_mpi, tmp_path, mpi):
    app = compile_mpi(HERE / "marker.c", mpi)
    with laid("wireguard") as one, one.capture(tmp_path / "under.pcap") as wire:
        result = one.run([app, MARKER, REPEATS], ranks=2, mpi=mpi, plain=True, timeout=60)
    if not (mpi == "mpich-4" and result.timed_out):  # its Finalize hangs at times
        result.check()
    assert f"right {REPEATS} of {REPEATS}" in result.stdout
    assert _kinds(packet for packet in wire.streams() if not _is_wireguard(packet)) == {}


def test_sealed_jobs_run_over_an_overlay(two, send_marker):
    send_marker(two, plain=False)


def test_conditions_say_what_carries_the_packets(two):
    said = two.overlay.conditions
    assert said["overlay"] == two.overlay.name and said["runs_in"] in (base.KERNEL, base.USER_SPACE)
    cipher = {"vxlan": "no encryption", "wireguard": "ChaCha20-Poly1305"}.get(two.overlay.name, "AES-GCM-128")
    assert said["cipher"].startswith(cipher)
    mtus = {
        int(two.execute(node, ["cat", "/sys/class/net/eth0/mtu"], sweep=False).check().stdout)
        for node in range(2)
    }
    assert mtus == {said["mtu"]} and said["mtu"] < two.mtu
    assert (said["udp_buffer"] is None) == (said["runs_in"] == base.KERNEL)
    assert said["udp_buffer"] is None or said["udp_buffer"] >= 8 << 20 or os.geteuid() != 0
    assert two.overlay.description.endswith(f"mtu {said['mtu']}")
    assert said["data_plane"] in two.overlay.description


# --- sentences ---


def test_an_unknown_overlay_is_a_sentence():
    known = "none, vxlan, wireguard, ipsec, vxlan+ipsec"
    with pytest.raises(LabError, match=re.escape(f"no overlay 'tinc'; it knows {known}")):
        Cluster(2, overlay="tinc")
    assert make("none") is None


@pytest.mark.parametrize("overlay", ENCRYPTED)
def test_missing_programs_are_named_with_their_packages(lab, monkeypatch, overlay):
    monkeypatch.setattr(shutil, "which", lambda program, *_, **__: program if program == "ip" else None)  # which every lab needs
    monkeypatch.setattr("mpisec_lab.overlay.esp.available", lambda *_, **__: False)
    package = "wireguard-tools" if overlay == "wireguard" else "strongswan-swanctl"
    with pytest.raises(LabError, match=f"overlay .*{package}") as caught, Cluster(2, overlay=overlay):
        pass
    assert "apt-get install" in str(caught.value)


def test_nodes_that_do_not_hear_each_other_are_named(lab, monkeypatch):
    class Cut(Vxlan):
        def connect(self, cluster):
            super().connect(cluster)
            base.configure_or_fail(cluster, 2, "link set eth0 down")

    monkeypatch.setitem(OVERLAYS, "vxlan", Cut)
    monkeypatch.setattr(base, "_REACH_SECONDS", 3)
    with pytest.raises(LabError) as caught, Cluster(3, overlay="vxlan"):
        pass
    said = str(caught.value)
    assert "node0 does not hear node2; node1 does not hear node2; node2 does not hear node0" in said
    assert "node0 does not hear node1" not in said


@pytest.mark.parametrize("overlay", ["wireguard", "ipsec"])
def test_a_dead_daemon_is_named_before_a_job_hangs(laid, overlay):
    with laid(overlay) as one:
        if one.overlay.conditions["runs_in"] == base.KERNEL:
            pytest.skip("the kernel has no daemons")
        one.execute(0, ["kill", "-KILL", max(_daemons(one))], sweep=False).check()
        deadline = time.monotonic() + 30
        with pytest.raises(LabError, match=rf"overlay {overlay}: the daemon of node[01] has ended"):
            while time.monotonic() < deadline:
                one.run(["true"], ranks=1, plain=True).check()


# --- nothing stays ---


@pytest.mark.slow
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nothing_is_left_after_the_end(laid, overlay):
    with laid(overlay) as one:
        directory = one.directory
        inside = _processes_in(_pid_namespace(one._init))
        assert len(inside) >= 3 + len(_daemons(one)), "init and the nodes' holders at least"
        namespace = _pid_namespace(one._init)
    assert _processes_in(namespace) == [] and not directory.exists()


def _pid_namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def _processes_in(namespace):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and _pid_namespace(pid) == namespace]


@pytest.mark.parametrize("overlay", ENCRYPTED)
def test_secrets_are_in_files_of_ours_alone(laid, overlay):
    with laid(overlay) as one:
        files = [*one.directory.glob("*.wireguard"), *one.directory.glob("*.swanctl")]
        found = [re.search("(?:PrivateKey|secret) = (.+)", file.read_text()).group(1) for file in files]
        if one.overlay.conditions["runs_in"] == base.USER_SPACE:
            assert len(found) == 2 and all(len(secret) >= 44 for secret in found)
        assert all(file.stat().st_mode & 0o077 == 0 for file in [one.directory, *files])
        assert not any(processes_with(secret) for secret in found)


def test_from_the_command_line(laid, compile_mpi, tmp_path):
    with laid("wireguard"):
        pass
    app = compile_mpi(HERE / "marker.c", "mpich-5")
    options = ["--plain", "--overlay", "wireguard", "--rate", "50mbit", "--capture", tmp_path / "under.pcap"]
    command = lab_command("run", *options, app, MARKER, REPEATS)
    done = subprocess.run(
        command, env=lab_environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, f"right {REPEATS} of {REPEATS}\n"), done.stderr
    assert "lab: overlay wireguard: " in done.stderr and "mtu 1440" in done.stderr
    assert "of 0.05 Gbit/s" in done.stderr
