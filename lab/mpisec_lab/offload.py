"""Switches off what the kernel leaves for the network card to do, so that frames on the wire are final."""

import array
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
# Transmit checksums, scatter/gather, TCP segmentation, generic segmentation (linux/ethtool.h, the S…
# commands).
_COMMANDS = {
    "tx checksum": 0x17,
    "scatter/gather": 0x19,
    "TCP segmentation": 0x1F,
    "generic segmentation": 0x24,
}


def disable(interface: str) -> None:
    """Has the kernel write whole TCP segments with their checksums, each at most one MTU, on `interface`.

    Raises OSError when the interface cannot. Same effect as `ethtool -K IF tx off sg off tso off gso off`.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in _COMMANDS.values():
            value = array.array("B", struct.pack("II", command, 0))
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(control, _SIOCETHTOOL, request + bytes(16))
