#!/usr/bin/env python3
"""The share of their time in which trainers compute behind slow lines: real daemons, each in a host of tests/lib/netlab.sh (root).

    python3 bench/bench_wan.py --binaries build/release [--nodes 4] [--wan 100mbit] [--delay 50ms] [--steps 30] [--rounds 5]
                               [--model KEY=VALUE,...] [--batch 8] [--text FILE] [--mode sparse] [--settle N] [--sites N] [--json]
                               [--keep 32] [--span --longest SECONDS]

A round ends after --steps optimizer steps of each node. Over so many rounds after the first three in which all are counted:
  utilisation  share of its training time in which a trainer computed local steps, from its totals, per node (null: its trainer was down at the
               end); besides steps: the other uses of the time of a round, in ms (trainer_ms of dpnode status, docs/FORMATS.md), the mean of the nodes
  between      seconds from one record to the next
  counted      share of the publications that their round counted
  up, down     kB that a node's line carried in each direction per round, IP headers and all, the mean of all nodes
  keep         updates were of one element of so many, in the last round; error: the part of the norm that the codec dropped, the mean over the last
               updates of the nodes; loss: of the last round; it depends on the amount of training
Without --keep updates have 1 of 32 to 1 of 128 elements, depending on the lines. With --span it runs twice, with --keep and then without, and
prints the ratios; a line is slow compared with round.time, which is --longest. --settle: rounds behind slow lines that are not measured, in which
densities adapt; until then lines have the rate --joining, so that new nodes get the state soon. --sites: hosts are distributed over so many sites,
with unlimited lines inside a site.
All nodes share this machine's processors, so a step takes longer than on a machine of its own; --steps and --model set its length."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))

from daemons import Node, Rounds, wait_for  # noqa: E402
from bench_scaling import write_text  # noqa: E402
from trainer_time import grown, mean_of, share  # noqa: E402

NETLAB = os.path.join(HERE, "..", "tests", "lib", "netlab.sh")
LAB = os.environ.get("NETLAB", "benchwan") # several labs can coexist
PORT = 7801
WARM = 3 # rounds in which all are counted, before the first that is measured
MODEL = "layers=6,width=384,heads=6,context=256,vocab=512"
MANIFEST = """name: wan
text: {text}
model: {{{model}}}
train: {{batch: {batch}, warmup_tokens: 4000, total_tokens: 1000000000}}
round: {{time: {longest}, steps_max: {steps}, mode: {mode}{density}}}
vote: {{uptime: 0}}
members: {{trust: {trust}}}
"""


def netlab(*words):
    done = subprocess.run([NETLAB, *words], env=dict(os.environ, NETLAB=LAB), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench_wan: netlab.sh {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Host(Node):
    """A daemon in a host of the lab. Its control socket is a file, which every host sees."""

    def __init__(self, binaries, folder, number, arguments=()):
        super().__init__(binaries, folder, f"n{number}", arguments)
        self.host = f"10.77.0.{number}"
        self.port = PORT # no other program is in that host
        inside = os.path.join(folder, f"in{number}")
        with open(inside, "w", encoding="utf-8") as script:
            script.write(f"#!/bin/sh\nNETLAB={LAB} exec '{NETLAB}' exec {number} '{os.path.join(os.path.abspath(binaries), 'dpnoded')}' \"$@\"\n")
        os.chmod(inside, 0o755)
        self.program = inside # an absolute path: os.path.join leaves it


def joined(nodes, manifest, text, **more):
    """Starts the nodes; the first creates the run, the others join it. Returns the rounds that it reports."""
    for node in nodes:
        node.start()
    created = nodes[0].create(manifest, "--text", text, "--name", "n1")
    for node in nodes[1:]:
        node.ask("join", "-", "--name", node.name, stdin=created["invite"], **more)
    return Rounds(nodes[0])


def density_of(options, span):
    return "" if options.keep is None or span else f", codec_keep: {options.keep}"


def manifest_of(options, text, span=False):
    return MANIFEST.format(text=text, model=options.model.replace("=", ": ").replace(",", ", "), batch=options.batch, steps=options.steps,
                           longest=options.longest, mode=options.mode, trust=options.trust,
                           density=density_of(options, span))


def run(options, folder, span):
    text = options.text or os.path.join(folder, "text")
    manifest = os.path.join(folder, "run.yaml")
    if options.text is None:
        write_text(text, 60000)
    with open(manifest, "w", encoding="utf-8") as out:
        out.write(manifest_of(options, text, span))
    nodes = [Host(options.binaries, folder, i + 1, options.arguments.split()) for i in range(options.nodes)]
    netlab("set", "all", "--rate", options.joining or options.wan)
    rounds = None
    try:
        rounds = joined(nodes, manifest, text)
        full = lambda: [r for r in rounds.all() if r.get("listed") == options.nodes] # noqa: E731
        wait_for(lambda: len(full()) >= WARM, options.patience, f"{WARM} rounds that count all")
        netlab("set", "all", "--rate", options.wan)
        begin = rounds.last()
        wait_for(lambda: rounds.last() >= begin + options.settle, options.patience * (1 + options.settle), "the rounds before")
        first = rounds.last()
        netlab("stats", "--reset")
        before = [node.run() for node in nodes]
        wait_for(lambda: rounds.last() >= first + options.rounds, options.patience * options.rounds, "the rounds that are measured")
        carried = netlab("stats")
        after = [node.run() for node in nodes]
        measured = [r for r in rounds.all() if first < r["round"] <= first + options.rounds]
    finally:
        if rounds is not None:
            rounds.end()
        for node in nodes:
            node.end()
    return row(options, before, after, measured, carried)


def carried_by(stats):
    """Bytes up and down, the mean of all hosts. A line of stats: host, packets and bytes sent, packets and bytes received, drops."""
    hosts = [[int(word) for word in line.split()] for line in stats.splitlines() if line[:1].isdigit()]
    return sum(host[2] for host in hosts) / len(hosts), sum(host[4] for host in hosts) / len(hosts)


def besides(before, after):
    """ms per round and node that were not steps, by their use."""
    pairs = [(a, b) for a, b in zip(before, after) if share(a, b) is not None]
    each = sum(max(b["round"] - a["round"], 1) for a, b in pairs) or 1
    total = lambda key: sum(grown(a, b, key) for a, b in pairs) / each # noqa: E731
    parts = {key: total(key) for key in ("data", "publish", "apply", "state", "tell")}
    parts["other"] = total("trained") - total("computed") - sum(parts.values())
    return {key: round(value, 1) for key, value in parts.items()}


def row(options, before, after, measured, stats):
    passed = [b["round"] - a["round"] for a, b in zip(before, after)]
    times = [record["time_ms"] / 1000 for record in measured]
    up, down = carried_by(stats)
    return {"nodes": options.nodes, "parameters": after[0]["elements"], "rounds": len(measured),
            "utilisation": [None if one is None else round(one, 4) for one in (share(a, b) for a, b in zip(before, after))], "besides_steps_ms": besides(before, after),
            "between_s": (times[-1] - times[0]) / (len(times) - 1),
            "counted": sum((b["counted"] - a["counted"]) / max(k, 1) for a, b, k in zip(before, after, passed)) / options.nodes,
            "results_near": sum(b.get("results_near", 0) - a.get("results_near", 0) for a, b in zip(before, after)) / sum(max(k, 1) for k in passed),
            "sums_taken": sum(b.get("sums_taken", 0) - a.get("sums_taken", 0) for a, b in zip(before, after)) / sum(max(k, 1) for k in passed),
            "up_kb": up / len(measured) / 1000, "down_kb": down / len(measured) / 1000, "keep": measured[-1].get("keep", options.keep),
            "error": statistics.mean(one.get("update_error", 0) for one in after), "loss": measured[-1].get("loss")}


def table(rows):
    print("| span | between s | counted | up kB | down kB | 1 of | left over | loss | utilisation |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, one in rows:
        print(f"| {name} | {one['between_s']:.1f} | {100 * one['counted']:.0f} % | {one['up_kb']:.0f} | {one['down_kb']:.0f} | {one['keep']} | "
              f"{100 * one['error']:.0f} % | {one['loss']} | {100 * (mean_of(one['utilisation']) or 0):.1f} % |")


def compare(options, folder):
    """The span beside the fixed density, in one call."""
    rows = []
    for name, span in (("without", False), ("with", True)):
        place = os.path.join(folder, name)
        os.mkdir(place)
        rows.append((name, run(options, place, span)))
    ratios = {key: rows[1][1][key] / rows[0][1][key] for key in ("between_s", "counted", "up_kb", "down_kb")}
    if options.json:
        print(json.dumps({**dict(rows), "ratios": ratios}))
    else:
        table(rows)
        print("with the span / without: " + ", ".join(f"{key} {value:.2f}" for key, value in ratios.items()))


def in_lab(options, measure):
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    netlab("up", str(options.nodes), "--rate", options.wan, "--delay", options.delay, "--loss", options.loss, "--queue", options.queue,
           *(["--cc", options.cc] if options.cc else []))
    for i in range(options.nodes if options.sites > 0 else 0):
        netlab("site", str(i + 1), str(1 + i % options.sites))
    try:
        return measure(folder)
    finally:
        netlab("down")
        shutil.rmtree(folder, ignore_errors=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default="build/release")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--wan", default="100mbit")
    parser.add_argument("--delay", default="50ms")
    parser.add_argument("--loss", default="0")
    parser.add_argument("--queue", default="100ms", help="backlog that a line holds; of a thin line, a few packets at least")
    parser.add_argument("--cc", help="congestion control inside the hosts; standard: the machine's")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5, help="at least 2")
    parser.add_argument("--longest", type=int, default=120, help="round.time: a round ends by its steps, not by this")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--text")
    parser.add_argument("--mode", default="sparse")
    parser.add_argument("--settle", type=int, default=0)
    parser.add_argument("--sites", type=int, default=0)
    parser.add_argument("--joining", help="rate of lines until all are counted; standard: as --wan")
    parser.add_argument("--keep", type=int, help="round.codec_keep")
    parser.add_argument("--span", action="store_true", help="with --keep, and then without")
    parser.add_argument("--trust", default="open", choices=["open", "members"], help="members.trust; with members, and modes other than sparse and "
                        "stale, owners add up parts of updates")
    parser.add_argument("--arguments", default="", help="of every dpnoded, besides")
    parser.add_argument("--patience", type=int, default=300, help="seconds that a round may take before it counts as stuck")
    parser.add_argument("--json", action="store_true")
    return parser


def main():
    parser = arguments()
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds wants at least 2")
    if os.geteuid() != 0:
        sys.exit("bench_wan: hosts of netlab.sh take root")
    if options.span:
        if options.keep is None:
            parser.error("--span is compared with a --keep")
        in_lab(options, lambda folder: compare(options, folder))
        return
    one = in_lab(options, lambda folder: run(options, folder, False))
    if options.json:
        print(json.dumps(one))
        return
    print("| nodes | parameters | between, s | utilisation | counted | up, kB | down, kB |\n|" + " --- |" * 7)
    print(f"| {one['nodes']} | {one['parameters']} | {one['between_s']:.1f} | {', '.join('down' if u is None else f'{u:.3f}' for u in one['utilisation'])} | "
          f"{one['counted']:.3f} | {one['up_kb']:.0f} | {one['down_kb']:.0f} |")
    print("besides steps, ms per round and node: " + ", ".join(f"{key} {value}" for key, value in one["besides_steps_ms"].items()))


if __name__ == "__main__":
    main()
