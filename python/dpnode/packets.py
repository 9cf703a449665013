"""Packets over sockets of this machine: SOCK_SEQPACKET, with descriptors of files beside them."""

from __future__ import annotations

import array
import os
import select
import socket
import tempfile
import time
from typing import List, Tuple

PACKET_MAX = 65536
KIND = getattr(socket, "SOCK_SEQPACKET", socket.SOCK_STREAM)


def connect(sock: socket.socket, path: str) -> None:
    """Connects to a path of any length: the name of a socket has 107 bytes at most, so long ones go by their folder."""
    if len(os.fsencode(path)) < 108:
        sock.connect(path)
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        sock.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)


def is_readable(sock: socket.socket, wait_s: float) -> bool:
    """Whether something has come, be it the end of the connection."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(int(wait_s * 1000)))


def send(sock: socket.socket, packet: bytes, fd: int = -1) -> None:
    if fd < 0:
        sock.send(packet)
    else:
        sock.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])


def receive(sock: socket.socket, deadline: float) -> Tuple[bytes, List[int]]:
    """One packet and its descriptors; no bytes at the end of the connection."""
    for last in (False, True):
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            packet, ancillary, _, _ = sock.recvmsg(PACKET_MAX, socket.CMSG_SPACE(4 * 4), socket.MSG_CMSG_CLOEXEC)
            break
        except ConnectionResetError:
            # The peer closed with a question of ours unread. What it had sent before comes after this error.
            if last:
                return b"", []
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
    return packet, list(fds)


def file_of(data: bytes) -> int:
    """A descriptor of an unnamed file with these bytes."""
    try:
        fd = os.memfd_create("dpnode-table", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    at = 0
    while at < len(data):
        at += os.pwrite(fd, data[at:], at)
    return fd


def close_all(fds: List[int]) -> None:
    for fd in fds:
        os.close(fd)
