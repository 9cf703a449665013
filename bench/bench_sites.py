#!/usr/bin/env python3
"""What a round of parts costs the lines between two sites: real daemons in hosts of tests/lib/netlab.sh (root), with results that cross to a
site once and with every node fetching each from its owner (dpnoded --one-level), in turn. Takes the options of bench_wan.py.

    python3 bench/bench_sites.py --binaries build/release [--nodes 6] [--sites 2] [--wan 100mbit] [--delay 10ms] [--turns 1] [--rounds 5] [--json]

  once, each   kB that a node's line to other sites carried downwards per round, IP headers and all, the mean of all nodes
  ratio        once / each
  formula      the same from what must cross: of N nodes at S sites each gets (N - N/S)/N of an update to add up, and besides the results of
               the others, as much again; with results once, that divided by N/S
  shared       results that a node had of somebody near to it, per round (of N - N/S from afar all but S - 1)
  between      seconds from one record to the next, the median of the turns, once and each"""
import json
import os
import statistics
import sys

from bench_wan import arguments, in_lab, run


def main():
    parser = arguments()
    parser.set_defaults(nodes=6, sites=2, delay="10ms", steps=4, rounds=5, mode="diloco", reduce="parts",
                        model="layers=4,width=192,heads=4,context=64,vocab=512", batch=2)
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench_sites: hosts of netlab.sh take root")
    if options.sites < 2 or options.nodes % options.sites != 0:
        parser.error("--sites wants at least 2, and as many nodes at each")
    given = options.arguments
    seen = {"": [], "--one-level": []}
    for turn in range(2 * options.turns):
        more = ("", "--one-level")[turn % 2]
        options.arguments = f"{given} {more}"
        seen[more].append(in_lab(options, lambda folder: run(options, folder, False)))
    down = {more: statistics.median(one["down_kb"] for one in runs) for more, runs in seen.items()}
    between = {more: statistics.median(one["between_s"] for one in runs) for more, runs in seen.items()}
    near = options.nodes // options.sites
    all_of = {"nodes": options.nodes, "sites": options.sites, "parameters": seen[""][0]["parameters"], "once_kb": down[""],
              "each_kb": down["--one-level"], "ratio": down[""] / down["--one-level"], "formula": (1 + 1 / near) / 2,
              "once_s": between[""], "each_s": between["--one-level"],
              "shared": statistics.median(one["results_near"] for one in seen[""]),
              "counted": min(one["counted"] for runs in seen.values() for one in runs)}
    if options.json:
        print(json.dumps(all_of))
        return
    print("| nodes | sites | parameters | once, kB | each, kB | ratio | formula | shared | once, s | each, s |\n|" + " --- |" * 10)
    print(f"| {all_of['nodes']} | {all_of['sites']} | {all_of['parameters']} | {all_of['once_kb']:.0f} | {all_of['each_kb']:.0f} | "
          f"{all_of['ratio']:.2f} | {all_of['formula']:.2f} | {all_of['shared']:.1f} | {all_of['once_s']:.2f} | {all_of['each_s']:.2f} |")


if __name__ == "__main__":
    main()
