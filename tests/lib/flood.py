#!/usr/bin/env python3
"""Silent strangers at a port of loopback: opens COUNT connections from ADDRESSES addresses, and opens those again that are cut, RATE per second.
Prints the number of connections opened so far at each multiple of COUNT. The addresses are 127.0.1.1, 127.0.2.1, ..., each of a /24 of its own;
with the last argument 127.0.0.1, 127.0.0.2, ..., as nodes on this machine have.

    tests/lib/flood.py PORT COUNT ADDRESSES RATE [near]"""
import errno
import os
import resource
import select
import socket
import sys
import time

BATCH = 100  # opened before the others are examined


def main():
    port, count, addresses, rate = map(int, sys.argv[1:5])
    source = "127.0.0.{}" if len(sys.argv) > 5 else "127.0.{}.1"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.nice(10) # The test is about places at the port, not about processor time.
    poll = select.epoll()
    links = {}
    opened = 0
    began = None # with all of them open once
    while True:
        may = count if began is None else count + int((time.monotonic() - began) * rate)
        for _ in range(BATCH):
            if len(links) >= count or opened >= may:
                break
            link = socket.socket()
            link.setblocking(False)
            link.bind((source.format(1 + opened % addresses), 0))
            if link.connect_ex(("127.0.0.1", port)) not in (0, errno.EINPROGRESS):
                link.close() # The system has no port left for this address, say.
                break
            poll.register(link, select.EPOLLIN | select.EPOLLERR | select.EPOLLHUP)
            links[link.fileno()] = link
            opened += 1
            if opened % count == 0:
                began = began or time.monotonic()
                print(opened, flush=True)
        for fd, _ in poll.poll(0.005 if opened >= may or len(links) >= count else 0):
            links.pop(fd).close() # Nobody writes to a stranger: it was cut.


if __name__ == "__main__":
    main()
