#!/usr/bin/env python3
"""The addresses of peers are on disk a moment after a link to them is up: a node that dies soon after its join finds its run again."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from daemons import Folder, place_for_tests, stored_addresses, wait_for  # noqa: E402 (the path comes first)
from small_run import create_and_join  # noqa: E402

SOON_S = 10  # addresses are regularly saved only every 30 s


def dialled_by_name(folder, founder):
    """A node that no other can dial finds a member whose only address is a name: it has to resolve the name."""
    token = founder.ask("invite", "--uses", "2")["token"]
    named = folder.node("named", "--advertise", "gone.invalid:1,localhost:0")
    named.arguments[-1] = f"gone.invalid:1,localhost:{named.port}"
    hidden = folder.node("hidden", "--advertise", "127.0.0.1:1")
    for node in (hidden, named):
        node.start().ask("join", "-", "--name", node.name, stdin=token)

    def seen():
        peers = {p["name"]: p for p in hidden.ask("peers")["peers"]}
        return peers.get("named", {}).get("linked") and peers["named"]["addresses"]
    told = wait_for(seen, 30, "who told a name is linked to")
    assert told == ["gone.invalid:1", f"localhost:{named.port}"], told
    wait_for(lambda: f"localhost:{named.port}" in (stored_addresses(hidden) or ""), SOON_S, "the name is stored")


def main():
    with Folder(sys.argv[1], place=place_for_tests()) as folder:
        nodes = create_and_join(folder, 2)
        began = time.monotonic()
        for node, other in (nodes, reversed(nodes)):
            port = f":{other.port}"
            wait_for(lambda n=node, p=port: p in (stored_addresses(n) or ""), SOON_S, f"{node.name} has stored {port}")
        print(f"{time.monotonic() - began:.1f} s until both addresses are on disk")
        for node in nodes:
            node.process.kill()
            node.process.wait()
        for node in nodes:
            node.start()
        wait_for(lambda: all(n.run().get("alive") == 2 for n in nodes), 30, "both are together again")
        began = time.monotonic()
        dialled_by_name(folder, nodes[0])
        print(f"{time.monotonic() - began:.1f} s until a name was dialled")


if __name__ == "__main__":
    main()
