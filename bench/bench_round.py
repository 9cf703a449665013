#!/usr/bin/env python3
"""A round of real daemons against the bound of its line: four hosts of tests/lib/netlab.sh (root), each with a trainer whose step is short beside
the transfer of its update, alternately in rounds of parts (members.trust members) and of whole updates (open, so voters evaluate them first). Takes
the options of bench_wan.py.

    python3 bench/bench_round.py --binaries build/release [--nodes 4] [--wan 100mbit] [--delay 50ms] [--rounds 6] [--reduces parts,whole] [--first] [--json]

Medians of the rounds that are measured, in seconds; zero is when the last READY leaves its node:
  decided    the record is decided at the last node
  bound      the time of the updates of this round on the line: of S bytes each node sends and gets 2 (N - 1)/N S in parts, (N - 1) S whole
  ratio      decided / bound
  applied    the last node has applied it
  up, down   kB that a node's line carried in each direction per round, IP headers and all, the mean of all nodes; carried: divided by the bytes of
             the bound
  round      from one record to the next
For parts also, by the same clock: gathered (the last owner has all objects of its part and begins to add them up), summed (the last sum is stored
and announced), closed (the first voter and a majority hold all results: the vote begins). With --first daemons, trainers and the emulator of the
lines have real-time priority (SCHED_FIFO) while rounds are measured, for --first-most seconds at most; otherwise the figures include the load of
other processes."""
import json
import os
import re
import shutil
import statistics
import sys
import threading
from datetime import datetime

from bench_wan import WARM, Host, arguments, carried_by, in_lab, joined, manifest_of, netlab
from bench_scaling import write_text
from daemons import wait_for

LAB = os.environ.get("NETLAB", "benchwan")
LINE = re.compile(r"^ts=(\S+) .*?evt=(\S+) round=(\d+) msg=(.*)$")
FIFO = 10


def seen_by(path):
    """Of one node: {event: {round: [(second, text)]}}."""
    events = {}
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            match = LINE.match(line)
            if match:
                at = datetime.fromisoformat(match[1].replace("Z", "+00:00")).timestamp()
                events.setdefault(match[2], {}).setdefault(int(match[3]), []).append((at, match[4]))
    return events


def threads_of(pid):
    """Threads of a process and of all its descendants: (thread, depth of its process)."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.append((int(thread), 0))
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as children:
                for child in children.read().split():
                    found += [(one, depth + 1) for one, depth in threads_of(int(child))]
    except OSError:
        pass # it has ended
    return found


class First:
    """While it is open, these processes have real-time priority, daemons a higher one than their trainers; for at most so many seconds."""

    def __init__(self, pids, seconds):
        self.pids = pids
        self.timer = threading.Timer(seconds, lambda: self.go(False))

    def go(self, first):
        for pid in self.pids:
            for thread, depth in threads_of(pid):
                try:
                    os.sched_setscheduler(thread, os.SCHED_FIFO if first else os.SCHED_OTHER, os.sched_param(max(FIFO - 5 * depth, 1) if first else 0))
                except ProcessLookupError:
                    pass

    def __enter__(self):
        if self.pids:
            self.go(True)
            self.timer.start()

    def __exit__(self, *problem):
        self.timer.cancel()
        self.go(False)


def run(options, folder):
    text = os.path.join(folder, "text")
    manifest = os.path.join(folder, "run.yaml")
    write_text(text, 60000)
    with open(manifest, "w", encoding="utf-8") as out:
        out.write(manifest_of(options, text))
    nodes = [Host(options.binaries, folder, i + 1, ["--log-level", "debug", *options.arguments.split()]) for i in range(options.nodes)]
    rounds = None
    try:
        rounds = joined(nodes, manifest, text)
        full = lambda: [r for r in rounds.all() if r.get("listed") == options.nodes] # noqa: E731
        wait_for(lambda: len(full()) >= WARM + options.settle, options.patience * (WARM + options.settle), "rounds that count all")
        with open(f"/run/netlab-{LAB}/pid", encoding="ascii") as pid:
            pids = [int(pid.read())] + [node.process.pid for node in nodes]
        first = rounds.last() + 1
        wait_for(lambda: rounds.last() >= first, options.patience, "a round")
        with First(pids if options.first else [], options.first_most):
            netlab("stats", "--reset")
            wait_for(lambda: rounds.last() >= first + options.rounds, options.patience * options.rounds, "the rounds that are measured")
            carried = netlab("stats")
        wait_for(lambda: all(node.run()["round"] >= first + options.rounds for node in nodes), options.patience, "all have them")
        records = [r for r in rounds.all() if first < r["round"] <= first + options.rounds and r.get("listed") == options.nodes]
    finally:
        if rounds is not None:
            rounds.end()
        for node in nodes:
            node.end()
        for node in nodes if options.keep_logs else []:
            shutil.copy(node.log, os.path.join(options.keep_logs, f"{options.reduce}-{node.name}.log"))
    return nodes, records, carried


def each_of(logs, event, number):
    """For each node the first time of this event in this round."""
    return [min(at for at, _ in log[event][number]) for log in logs if number in log.get(event, {})]


def ready_of(logs, number):
    """The time at which the last READY left its node: a node logs its own READY before it sends it, and others later."""
    told = {}
    for log in logs:
        for at, text in log.get("round.ready", {}).get(number, []):
            who = text.split(" is ready")[0].split("(")[-1]
            told[who] = min(at, told.get(who, at))
    return max(told.values()) if told else None


def phases(logs, number, n):
    """Seconds since the last READY; None: the logs lack some of the events."""
    zero = ready_of(logs, number)
    ends = {"gathered": ("part.adding", max), "summed": ("part.told", max), "closed": ("round.closed", min), "decided_first": ("round.decided", min),
            "decided": ("round.decided", max), "applied": ("round.applied", max)}
    found = {}
    for name, (event, which) in ends.items():
        times = each_of(logs, event, number)
        if times and zero is not None:
            found[name] = which(times) - zero
    return found if len(each_of(logs, "round.decided", number)) == n else None


def row(options, nodes, records, carried, logs):
    n = options.nodes
    bits = {"mbit": 1e6, "gbit": 1e9, "kbit": 1e3}
    rate = float(re.match(r"[0-9.]+", options.wan)[0]) * bits[options.wan.lstrip("0123456789.")] / 8
    copies = 2 * (n - 1) / n if options.reduce == "parts" else n - 1
    each = [record["bytes"] / n for record in records]
    bound = copies * statistics.median(each) / rate
    seen = [one for one in (phases(logs, record["round"], n) for record in records) if one is not None]
    if not seen:
        sys.exit(f"bench_round: no round counted all {n}; see the logs with --keep-logs")
    middle = {name: statistics.median([one[name] for one in seen if name in one]) for name in seen[0]}
    up, down = carried_by(carried)
    passed = max(record["round"] for record in records) - min(record["round"] for record in records)
    between = (records[-1]["time_ms"] - records[0]["time_ms"]) / 1000 / passed if passed else None
    return {"reduce": options.reduce, "nodes": n, "update_kb": statistics.median(each) / 1000, "rounds": len(seen), "bound": bound, **middle,
            "ratio": middle["decided"] / bound, "ratios": [round(one["decided"] / bound, 2) for one in seen], "up_kb": up / options.rounds / 1000,
            "down_kb": down / options.rounds / 1000, "carried": down / options.rounds / (copies * statistics.median(each)), "round": between}


def main():
    parser = arguments()
    parser.set_defaults(nodes=4, rounds=6, steps=1, mode="diloco", batch=1, settle=2, cc="cubic", model="layers=1,width=704,heads=11,context=8,vocab=512")
    parser.add_argument("--reduces", default="parts,whole")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--first-most", type=int, default=20)
    parser.add_argument("--keep-logs", help="a folder for them")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench_round: hosts of netlab.sh take root")
    rows = []
    for reduce in options.reduces.split(","):
        options.reduce = reduce
        options.trust = "members" if reduce == "parts" else "open"

        def measure(folder):
            nodes, records, carried = run(options, folder)
            return row(options, nodes, records, carried, [seen_by(node.log) for node in nodes])
        rows.append(in_lab(options, measure))
    if options.json:
        print(json.dumps(rows))
        return
    print("| reduce | update, kB | rounds | bound, s | gathered | summed | closed | decided | ratio | applied | up, kB | down, kB | carried | round, s |")
    print("|" + " --- |" * 14)
    for one in rows:
        cell = lambda name: f"{one[name]:.2f}" if one.get(name) is not None else "" # noqa: E731
        print(f"| {one['reduce']} | {one['update_kb']:.0f} | {one['rounds']} | {cell('bound')} | {cell('gathered')} | {cell('summed')} | {cell('closed')} | "
              f"{cell('decided')} | {one['ratio']:.2f} | {cell('applied')} | {one['up_kb']:.0f} | {one['down_kb']:.0f} | {cell('carried')} | {cell('round')} |")
        print("ratios: " + " ".join(str(ratio) for ratio in one["ratios"]), file=sys.stderr)


if __name__ == "__main__":
    main()
