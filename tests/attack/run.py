#!/usr/bin/env python3
"""An attacker with one token against real daemons: a table of attacks and their effects.

usage: tests/attack/run.py [BINARIES] [ATTACK...]

Four daemons train; one of them has used a token for one node, and dpattack uses it too, or connects silently. A row gives, without and with the
attack: rounds in ten seconds, the processor share of the busiest daemon, the memory of the largest; then the time in which a newcomer with its own
token joined, the longest time until status answered, and the result of the attacker. The attacker runs at nice 5: below the daemons, above their trainers. Exit status 1 if a bound is
broken.
"""

import json
import os
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

from daemons import Folder, place_for_tests, wait_for  # noqa: E402 (the path comes first)
from small_run import create_and_join  # noqa: E402

WATCH_S = 7
ROUND_S = 0.4
ROUNDS_LEAST = 0.5      # of those without the attack
MEMORY_MOST = 64 << 20  # more than before
JOIN_MOST_S = 6
STATUS_MOST_S = 0.7     # more than before


def rss(node):
    with open(f"/proc/{node.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def seconds_of(node):
    """Processor seconds of the daemon; its trainer is a process of its own."""
    with open(f"/proc/{node.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Field:
    """The attacked run."""

    def __init__(self, binaries, folder):
        self.binaries = binaries
        self.folder = folder
        self.nodes = create_and_join(folder, 3, round_s=ROUND_S, voters_max=3)
        self.token = os.path.join(folder.path, "token")
        with open(self.token, "w", encoding="ascii") as file:
            file.write(self.nodes[0].ask("invite", "--role", "train", "--uses", "1")["token"])
        redeemer = folder.node("redeemer").start()
        with open(self.token, encoding="ascii") as file:
            redeemer.ask("join", "-", "--name", "redeemer", stdin=file.read())
        self.nodes.append(redeemer)
        self.joined = 0
        wait_for(lambda: self.nodes[0].run()["round"] > 8, 60, "the run goes")
        self.calm_rounds, self.calm_share = self.rounds(WATCH_S)
        self.calm_status = self.slowest_status
        self.calm_memory = max(rss(n) for n in self.nodes)

    def rounds(self, seconds):
        """Rounds in ten seconds, by the chain of the first node, and the processor share of the busiest daemon meanwhile."""
        first, begin = self.nodes[0].run()["round"], time.monotonic()
        used = [seconds_of(n) for n in self.nodes]
        self.slowest_status = 0.0
        while time.monotonic() < begin + seconds:
            asked = time.monotonic()
            self.nodes[0].ask("status")
            self.slowest_status = max(self.slowest_status, time.monotonic() - asked)
            time.sleep(0.2)
        took = time.monotonic() - begin
        share = max(seconds_of(n) - u for n, u in zip(self.nodes, used)) / took
        return 10 * (self.nodes[0].run()["round"] - first) / took, share

    def join(self):
        """Seconds until a newcomer is a member."""
        token = self.nodes[0].ask("invite", "--role", "train", "--uses", "1")["token"]
        self.joined += 1
        node = self.folder.node(f"new{self.joined}").start()
        begin = time.monotonic()
        node.ask("join", "-", "--name", node.name, stdin=token, timeout=60)
        took = time.monotonic() - begin
        node.ask("leave")
        node.end()
        return took

    def addresses(self):
        return ",".join(f"127.0.0.1:{n.port}" for n in self.nodes)

    def attacker(self, mode, count, *more):
        command = [os.path.join(self.binaries, "dpattack"), mode, self.token, str(WATCH_S + JOIN_MOST_S + 2), str(count),
                   self.addresses(), *more]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        os.setpriority(os.PRIO_PROCESS, process.pid, 5)
        try:
            with open(f"/proc/{process.pid}/autogroup", "w", encoding="ascii") as group:
                group.write("5") # Of its session: beside other sessions a niceness alone has no effect.
        except OSError:
            pass  # There are no such groups.
        return process

    def members(self):
        return sum(p.get("roster", False) for p in self.nodes[0].ask("peers")["peers"])


def watch(field, process):
    """Rounds, memory and a join during the attack; then the result of the attacker."""
    rounds, share = field.rounds(WATCH_S)
    memory = max(rss(n) for n in field.nodes)
    join = field.join()
    memory = max([memory, *(rss(n) for n in field.nodes)])
    had = {}
    if process is not None:
        had = json.loads(process.communicate(timeout=60)[0])
    return rounds, share, memory, join, had


def by_client(mode, count, check=lambda field, had: True, arguments=lambda field: ()):
    def attack(field):
        rounds, share, memory, join, had = watch(field, field.attacker(mode, count, *arguments(field)))
        return rounds, share, memory, join, f"{had['links_most']} links at most", check(field, had)
    return attack


def ids(field):
    return (",".join(n.ask("status")["id"] for n in field.nodes[:3]),)


def silent(count, addresses):
    """Silent connections from so many addresses of different networks, held and opened again."""
    def attack(field):
        sources = [f"127.{1 + i % 200}.{i // 200}.1" for i in range(addresses)]
        held = []
        for i in range(count):
            with_node = field.nodes[0]
            try:
                held.append(socket.create_connection((with_node.host, with_node.port), timeout=2,
                                                     source_address=(sources[i % addresses], 0)))
            except OSError:
                pass
        rounds, share, memory, join, _ = watch(field, None)
        for connection in held:
            connection.close()
        return rounds, share, memory, join, f"{len(held)} connections", True
    return attack


# The aim of the attacker -> its arguments. The bounds on rounds, memory and joins hold for all.
ATTACKS = {
    # Votes, and the real one locked out: a certificate in a voter's name with the attacker's channel key, and the highest boot id.
    "identity": by_client("identity", 6, lambda field, had: had["links_most"] == 0, ids),
    # Delay of rounds, and places in the roster: identities of a token that is used up.
    "guests": by_client("guests", 60, lambda field, had: field.members() <= 4 + field.joined),
    # A thousand of them: their handshakes take processor time.
    "many": by_client("guests", 1000, lambda field, had: field.members() <= 4 + field.joined),
    # Tables full of members that do not exist.
    "talk": by_client("talk", 60, lambda field, had: len(field.nodes[0].ask("peers")["peers"]) < 100),
    # Memory: messages of 4 MiB that never end.
    "hold": by_client("hold", 45),
    # A newcomer that asks it for records, which it does not have.
    "newer": by_client("newer", 12),
    # The loop thread: statements whose signatures are checked in vain.
    "flood": by_client("flood", 4),
    # The uplink: 5 bytes that draw a table. Of each node what guests may draw, and what every link carries.
    "ask": by_client("ask", 10, lambda field, had: had["received"] < len(field.nodes) * (4 << 20)),
    # Memory: answers that are never read.
    "deaf": by_client("deaf", 20),
    # The port.
    "silent 64": silent(64, 4),
    "silent 2000": silent(2000, 100),
}


def main():
    binaries = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..", "build", "release")
    wanted = sys.argv[2:] or list(ATTACKS)
    unknown = [name for name in wanted if name not in ATTACKS]
    if unknown or not os.path.exists(os.path.join(binaries, "dpattack")):
        print(f"{unknown[0]}: no such attack; one of {', '.join(ATTACKS)}" if unknown else
              f"no dpattack in {binaries}: build it first (cmake --build ... --target dpattack)", file=sys.stderr)
        return 64
    broken = 0
    with Folder(os.path.abspath(binaries), place=place_for_tests()) as folder:
        field = Field(folder.binaries, folder)
        print(f"{'attack':12} {'rounds in 10 s':>20} {'processor, %':>16} {'memory, MiB':>16} {'join, s':>8} {'status, s':>12}  the attacker had")
        for name in wanted:
            rounds, share, memory, join, had, holds = ATTACKS[name](field)
            if rounds < ROUNDS_LEAST * field.calm_rounds:  # Other programs may have started meanwhile: measures again without the attack.
                field.calm_rounds, field.calm_share = field.rounds(WATCH_S)
            good = (holds and rounds >= ROUNDS_LEAST * field.calm_rounds and join <= JOIN_MOST_S and
                    field.slowest_status <= field.calm_status + STATUS_MOST_S and
                    memory <= field.calm_memory + MEMORY_MOST)
            broken += not good
            print(f"{name:12} {field.calm_rounds:9.1f} -> {rounds:7.1f} "
                  f"{100 * field.calm_share:7.1f} -> {100 * share:5.1f} {field.calm_memory / 2**20:7.1f} -> {memory / 2**20:5.1f} "
                  f"{join:8.1f} {field.calm_status:4.2f} -> {field.slowest_status:4.2f}  {had}: {'defended' if good else 'NOT DEFENDED'}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
