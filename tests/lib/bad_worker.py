#!/usr/bin/env python3
"""A trainer that fails on command: runs between the daemon and a real dpnode-worker and passes packets on, unless the first word of a file names a
fault. Arguments: the real worker, that file, then what the daemon gives to a trainer.

  (nothing)  pass all on
  vanish     end at once with an error, now and at every start, as with a permanent CUDA error or a lost GPU
  hang stop reading and writing, and ignore SIGTERM
  wrong N    the next N states that it makes are told with another root; N counts down in the file
  torn       once: a slice that follows others is handed over as if it followed one more
  cut        once: end before a slice that follows others"""

import array
import os
import select
import signal
import socket
import subprocess
import sys
import time

PACKET_MAX = 64 * 1024
FDS_MAX = 34
APPLIED = b"\xa4type\x0f" # DP_TRAINER_APPLIED is 15; the key and its value as msgpack
ROOT = b"\xa4root\xc4\x20"
ADD = b"\xa4type\x1c" # DP_TRAINER_ADD is 28
AT = b"\xa2at" # its last key


def order(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split()
    except OSError:
        return []


def receive(sock):
    room = array.array("i")
    data, ancillary, _, _ = sock.recvmsg(PACKET_MAX, socket.CMSG_SPACE(FDS_MAX * room.itemsize))
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            room.frombytes(content[:len(content) - len(content) % room.itemsize])
    return data, list(room)


def pass_on(sock, data, fds):
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([data], ancillary)
    for fd in fds:
        os.close(fd)


def spoiled(data, path, words):
    at = data.find(ROOT)
    if APPLIED not in data or at < 0:
        return data
    with open(path, "w", encoding="utf-8") as file:
        left = int(words[1]) - 1
        file.write(f"wrong {left}" if left > 0 else "")
    at += len(ROOT)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def is_later_slice(data):
    return ADD in data and data[-4:-1] == AT and 0 < data[-1] < 0x7f


def without_sum(data, path, words):
    """Such a slice without the updates before it, as the file says."""
    if words[:1] not in (["torn"], ["cut"]) or not is_later_slice(data):
        return data
    with open(path, "w", encoding="utf-8"):
        pass
    if words == ["cut"]:
        sys.exit(70)
    return data[:-1] + bytes([data[-1] + 1])


def main():
    real, path, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    if order(path)[:1] == ["vanish"]:
        sys.exit(70)
    at = arguments.index("--fd") + 1
    daemon = socket.socket(fileno=int(arguments[at]))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    arguments[at] = str(theirs.fileno())
    worker = subprocess.Popen([real, *arguments], pass_fds=[theirs.fileno()])
    theirs.close()
    try:
        while True:
            ready, _, _ = select.select([daemon, ours], [], [], 0.05)
            words = order(path)
            if words[:1] == ["vanish"]:
                sys.exit(70)
            if words[:1] == ["hang"]:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(3600)
            for source, target in ((daemon, ours), (ours, daemon)):
                if source in ready:
                    data, fds = receive(source)
                    if not data:
                        return
                    if source is ours and words[:1] == ["wrong"]:
                        data = spoiled(data, path, words)
                        words = order(path)
                    if source is daemon:
                        data = without_sum(data, path, words)
                    pass_on(target, data, fds)
    except OSError:
        return # one of the two has gone
    finally:
        worker.kill()
        worker.wait()


if __name__ == "__main__":
    main()
