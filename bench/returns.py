#!/usr/bin/env python3
"""What a return from gossip does to a model, and what the work of that time was worth: real daemons, three trainers, of which one, two or all
are without a majority of voters for a while (tests/lib/returning.py).

    python3 bench/returns.py --binaries build/release [--modes sparse,diloco,average,stale] [--away 1,2,3] [--seconds 5,25] [--text FILE]

  before, after  loss of the last round before the fault, and of the first one that was trained on the model with the returned work
  worst          the highest of the five rounds behind it
  gain           before - after, as a share of what a run without a fault gains with as many tokens from the same number of tokens on
A row breaks the rule when after > before or gain < 2/3. Exit status 1 then.
The loss of a round is the mean over the tokens of all that it lists, on text that most of them see for the first time."""
import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
from returning import Run  # noqa: E402

WARM_TOKENS = 1500000
LEAST_GAIN = 2 / 3


def king_james(folder):
    path = os.path.join(folder, "kjv.txt")
    with open(path, "w", encoding="utf-8") as file:
        subprocess.run(["bible", "gen1:1-rev22:21"], stdout=file, check=True)
    return path


def curve(args, mode, text, tokens):
    """(tokens committed, loss) of a run without a fault, up to so many."""
    run = Run(args.binaries, mode, 3, text)
    try:
        run.settle(tokens, 1200)
        points, done = [], 0
        for record in run.rounds.all():
            points.append((done, record["loss"])) # What it tells of is the model of the rounds before it.
            done += record["tokens"]
        return points
    finally:
        run.end()


def loss_at(points, tokens):
    """Between two rounds in a straight line."""
    for (x, at_x), (y, at_y) in zip(points, points[1:]):
        if x <= tokens <= y:
            return at_x + (at_y - at_x) * (tokens - x) / (y - x)
    raise SystemExit(f"the run without a fault has no round at {tokens} tokens")


def case(args, mode, away, seconds, text):
    run = Run(args.binaries, mode, away, text)
    try:
        run.settle(WARM_TOKENS)
        run.part()
        before = run.rounds.all()[-1]
        start = run.committed() - before["tokens"] # Of the model that its loss is of.
        run.sleep(seconds)
        exchanges = len(run.rounds.exchanges)
        run.heal()
        back = run.returned(before["round"])
        run.settle(0, 300) # SETTLED rounds behind it, so that five are there.
        records = run.rounds.all()
        later = [r["loss"] for r in records if r["round"] > back["round"]][:5]
        done = sum(r["tokens"] for r in records if r["round"] <= back["round"])
        return {"before": before["loss"], "after": later[0], "worst": max(later), "from": start, "to": done,
                "exchanges": exchanges}
    finally:
        run.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--modes", default="sparse,diloco,average,stale")
    parser.add_argument("--away", default="1,2,3")
    parser.add_argument("--seconds", default="5,25")
    parser.add_argument("--text")
    args = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        text = args.text or king_james(folder)
        print("| mode | away | s | exchanges | tokens | before | after | worst of 5 | gain |\n|---|---|---|---|---|---|---|---|---|")
        for mode in args.modes.split(","):
            rows = [(away, seconds, case(args, mode, away, seconds, text)) for away in map(int, args.away.split(","))
                    for seconds in map(float, args.seconds.split(","))]
            points = curve(args, mode, text, 1.2 * max(row["to"] for _, _, row in rows))
            for away, seconds, row in rows:
                fair = loss_at(points, row["from"]) - loss_at(points, row["to"])
                gain = (row["before"] - row["after"]) / fair
                wrong = row["after"] > row["before"] or gain < LEAST_GAIN
                failed |= wrong
                print(f"| {mode} | {away} of 3 | {seconds:g} | {row['exchanges']} | {(row['to'] - row['from']) / 1000:.0f} k | {row['before']:.3f} "
                      f"| {row['after']:.3f} | {row['worst']:.3f} | {gain:.2f}{' !' if wrong else ''} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
