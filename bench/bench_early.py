#!/usr/bin/env python3
"""How much of the exchange of gradients is hidden behind backward: steps of mode ddp in rounds of parts behind slow lines, with parts told
while backward goes on and without (dpnoded --late-parts), in turn; hosts of tests/lib/netlab.sh (root). Takes the options of bench_wan.py.

    python3 bench/bench_early.py --binaries build/release [--nodes 2] [--wan 100mbit] [--delay 5ms] [--turns 2] [--rounds 8] [--json]

  early, late  seconds from one record to the next: the median of the turns
  ratio        early / late
  computing    seconds of them in which trainers computed, without parts told early, the mean of all nodes
  hidden       (late - early) / (late - computing): the share of the exchange that is gone
  in time      share of the parts told early that were right and with their owner when READY came
All nodes share this machine's processors: where these are the bottleneck nothing can be hidden."""
import json
import os
import statistics
import sys

from bench_wan import arguments, in_lab, run
from trainer_time import mean_of


def main():
    parser = arguments()
    parser.set_defaults(nodes=2, delay="5ms", steps=1, rounds=8, mode="ddp", reduce="parts",
                        model="layers=8,width=256,heads=4,context=256,vocab=512", batch=4)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench_early: hosts of netlab.sh take root")
    given = options.arguments
    told = {"": [], "--late-parts": []}
    for turn in range(2 * options.turns):
        more = ("", "--late-parts")[turn % 2]
        options.arguments = f"{given} {more}"
        told[more].append(in_lab(options, lambda folder: run(options, folder, False)))
    early, late = (statistics.median(one["between_s"] for one in told[key]) for key in ("", "--late-parts"))
    computing = statistics.median(one["between_s"] * (mean_of(one["utilisation"]) or 0) for one in told["--late-parts"])
    named = sum(one["early_told"] for one in told[""])
    here = sum(one["early_here"] for one in told[""])
    all_of = {"nodes": options.nodes, "parameters": told[""][0]["parameters"], "early_s": early, "late_s": late, "ratio": early / late,
              "computing_s": computing, "hidden": (late - early) / (late - computing) if late > computing else 0,
              "in_time": here / named if named > 0 else 0}
    if options.json:
        print(json.dumps(all_of))
        return
    print("| nodes | parameters | early, s | late, s | ratio | computing, s | hidden | in time |\n|" + " --- |" * 8)
    print(f"| {all_of['nodes']} | {all_of['parameters']} | {early:.2f} | {late:.2f} | {early / late:.2f} | {computing:.2f} | "
          f"{all_of['hidden']:.2f} | {all_of['in_time']:.2f} |")


if __name__ == "__main__":
    main()
