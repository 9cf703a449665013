#!/usr/bin/env python3
"""The bytes that a thin uplink sends of its own update: real daemons, each in a host of tests/lib/netlab.sh (root).

    python3 bench/bench_relay.py --binaries build/release [--nodes 4,8] [--wan 32mbit] [--thin 8mbit] [--thin-down 32mbit] [--delay 20ms] [--width 320]
                                 [--seconds 60] [--json]

The line of the last node carries --thin up and --thin-down down, that of all others --wan in both directions; updates are int8, 10 chunks with
--width 320. In --seconds after three rounds that counted all, and one more:
  rounds, counted  records per hour, and those of them that count the thin node
  most       of them, if its line carried its update up once, and those of the others down, and nothing took time besides
  copies     bytes that the thin node sent per round / bytes of an update on the wire: 1 is the least; nodes - 1 without relays
  per counted  the same per update of its that was counted
  others     copies of the other nodes, their mean
  hedged     share of the chunks that came anywhere that were asked of a second holder
Without a measured uplink nobody is thin: the rounds before the first that is measured are for that too."""
import argparse
import json
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))

import bench_wan  # noqa: E402
from bench_scaling import write_text  # noqa: E402
from daemons import wait_for  # noqa: E402

bench_wan.LAB = "benchrelay"
WARM = 3
MANIFEST = """name: relay
text: {text}
model: {{layers: 2, width: {width}, heads: 5, context: 16, vocab: 300}}
train: {{batch: 1, warmup_tokens: 4000, total_tokens: 1000000000}}
round: {{time: {longest}, steps_max: 1, codec: int8}}
vote: {{uptime: 0}}
"""


def run(options, n, folder):
    text = os.path.join(folder, "text")
    manifest = os.path.join(folder, "run.yaml")
    write_text(text, 60000)
    with open(manifest, "w", encoding="utf-8") as out:
        out.write(MANIFEST.format(text=text, width=options.width, longest=options.longest))
    nodes = [bench_wan.Host(options.binaries, folder, i + 1) for i in range(n)]
    rounds = None
    try:
        rounds = bench_wan.joined(nodes, manifest, text, timeout=options.patience)
        wait_for(lambda: len([r for r in rounds.all() if r.get("listed") == n]) >= WARM, options.patience, f"{WARM} rounds that count all")
        first = rounds.last()
        wait_for(lambda: rounds.last() > first, options.patience, "the round after them")
        before, begun = [node.run() for node in nodes], time.monotonic()
        time.sleep(options.seconds)
        after, took = [node.run() for node in nodes], time.monotonic() - begun
        copy = max(r["wire_bytes_per_copy"] for r in rounds.all())
    finally:
        if rounds is not None:
            rounds.end()
        for node in nodes:
            node.end()

    def grown(name, of=None):
        return sum(b.get(name, 0) - a.get(name, 0) for a, b in (zip(before, after) if of is None else [(before[of], after[of])]))

    counted = grown("counted", -1)
    down = min(options.thin_down, options.wan)
    return {"nodes": n, "copy_bytes": copy, "rounds_per_hour": grown("round", 0) * 3600 / took, "counted_per_hour": counted * 3600 / took,
            "most_per_hour": 3600 / max(8 * copy / options.thin, 8 * copy * (n - 1) / down),
            "copies": grown("bytes_sent", -1) / copy / max(1, grown("round", -1)), "copies_per_counted": grown("bytes_sent", -1) / copy / max(1, counted),
            "others": sum(grown("bytes_sent", i) / max(1, grown("round", i)) for i in range(n - 1)) / copy / (n - 1), "hedged": grown("chunks_hedged") / max(1, grown("chunks"))}


def bits(text):
    for unit, times in (("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
        if text.endswith(unit):
            return int(float(text[:-len(unit)]) * times)
    raise argparse.ArgumentTypeError(f"{text} is no rate such as 16mbit")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default="build/release")
    parser.add_argument("--nodes", default="4,8", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--wan", default="32mbit", type=bits)
    parser.add_argument("--thin", default="8mbit", type=bits)
    parser.add_argument("--thin-down", default="32mbit", type=bits)
    parser.add_argument("--delay", default="20ms")
    parser.add_argument("--width", type=int, default=320, help="a multiple of 5")
    parser.add_argument("--seconds", type=int, default=60, help="that are measured")
    parser.add_argument("--longest", type=int, default=60, help="round.time: a round ends when all are ready, not by this")
    parser.add_argument("--patience", type=int, default=300, help="seconds that all may take before they count as stuck")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench_relay: hosts of netlab.sh take root")
    if not options.json:
        print("| nodes | rounds/h | counted/h | most/h | copies | per counted | others | hedged |\n|" + " --- |" * 8)
    for n in options.nodes:
        folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        bench_wan.netlab("up", str(n), "--rate", f"{options.wan}bit", "--delay", options.delay)
        bench_wan.netlab("set", str(n), "--rate", f"{options.thin}bit", "--down", f"{options.thin_down}bit")
        try:
            one = run(options, n, folder)
        finally:
            bench_wan.netlab("down")
            shutil.rmtree(folder, ignore_errors=True)
        print(json.dumps(one) if options.json else
              f"| {one['nodes']} | {one['rounds_per_hour']:.0f} | {one['counted_per_hour']:.0f} | {one['most_per_hour']:.0f} | {one['copies']:.2f} | {one['copies_per_counted']:.2f} | {one['others']:.2f} | {one['hedged']:.3f} |",
              flush=True)


if __name__ == "__main__":
    main()
