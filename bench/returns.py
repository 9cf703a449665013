#!/usr/bin/env python3
"""The effect of a return from gossip on a model, and the value of the work of that time: real daemons, three trainers, of which one, two or
all are without a majority of voters for a while (tests/lib/returning.py).

    python3 bench/returns.py --binaries build/release [--modes sparse,diloco,average,stale] [--away 1,2,3] [--seconds 5,25] [--text FILE]

  before, after  loss of the last round before the fault, and of the first one that was trained on the model with the returned work
  worst          the highest of the five rounds behind it
  work           did a round count the work done without a majority? Its weight falls with the number of missed rounds (PROTOCOL.md)
  gain           from the mean loss of the five rounds before the fault to that of the five behind the return, as a share of the gain of a run
                 without a fault that starts at that loss and has as many rounds as fit in this time
A row breaks the rule when after > before or gain < 2/3. Exit status 1 then. Rounds last as long as the time of local work, so on a machine that is
busy at times a round has fewer tokens and gains less: run nothing else beside it.
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
SMOOTH = 5 # rounds; the noise of the loss of one round is as large as the gain of five


def king_james(folder):
    path = os.path.join(folder, "kjv.txt")
    with open(path, "w", encoding="utf-8") as file:
        subprocess.run(["bible", "gen1:1-rev22:21"], stdout=file, check=True)
    return path


def curve(args, mode, text, rounds):
    """Losses of a run without a fault, round by round from WARM_TOKENS on."""
    run = Run(args.binaries, mode, 3, text)
    try:
        run.settle(WARM_TOKENS)
        first = len(run.rounds.all())
        run.wait_for_rounds(first + rounds)
        return [record["loss"] for record in run.rounds.all()]
    finally:
        run.end()


def mean(values):
    return sum(values) / len(values)


def fair_gain(curve_losses, before, rounds):
    """Starts at the first point at which the loss is that low, interpolated between means of rounds."""
    losses = [mean(curve_losses[i:i + SMOOTH]) for i in range(len(curve_losses) - SMOOTH + 1)]
    at = next((i for i, loss in enumerate(losses) if loss <= before), len(losses) - 1)
    begin = at if at == 0 or losses[at] == losses[at - 1] else at - (before - losses[at]) / (losses[at - 1] - losses[at])
    end = begin + rounds
    if end > len(losses) - 1:
        raise SystemExit(f"the run without a fault is {end - len(losses) + 1:.0f} rounds too short")
    low = int(end)
    high = min(low + 1, len(losses) - 1)
    return before - (losses[low] + (losses[high] - losses[low]) * (end - low))


def case(args, mode, away, seconds, text):
    run = Run(args.binaries, mode, away, text)
    try:
        run.settle(WARM_TOKENS)
        run.part()
        usual = run.rounds.all()[-10:]
        before = usual[-1]
        run.sleep(seconds)
        exchanges = len(run.rounds.exchanges)
        run.heal()
        back = run.returned(before["round"])
        run.settle(0, 300) # Five rounds behind it.
        later = [r for r in run.rounds.all() if r["round"] > back["round"]][:SMOOTH]
        period = (before["time_ms"] - usual[0]["time_ms"]) / (len(usual) - 1)
        ago = mean([r["time_ms"] for r in later]) - mean([r["time_ms"] for r in usual[-SMOOTH:]])
        from_loss = mean([r["loss"] for r in usual[-SMOOTH:]])
        return {"before": before["loss"], "after": later[0]["loss"], "worst": max(r["loss"] for r in later),
                "from": from_loss, "gained": from_loss - mean([r["loss"] for r in later]), "rounds": ago / period, "exchanges": exchanges,
                "counts": back["tokens"] > 2 * mean([r["tokens"] for r in usual])}
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
        print("| mode | away | s | exchanges | rounds | work | before | after | worst of 5 | gain |\n|---|---|---|---|---|---|---|---|---|---|")
        for mode in args.modes.split(","):
            rows = [(away, seconds, case(args, mode, away, seconds, text)) for away in map(int, args.away.split(","))
                    for seconds in map(float, args.seconds.split(","))]
            losses = curve(args, mode, text, int(1.3 * max(row["rounds"] for _, _, row in rows)) + 20)
            for away, seconds, row in rows:
                gain = row["gained"] / fair_gain(losses, row["from"], row["rounds"])
                wrong = row["after"] > row["before"] or gain < LEAST_GAIN
                failed |= wrong
                print(f"| {mode} | {away} of 3 | {seconds:g} | {row['exchanges']} | {row['rounds']:.1f} | {'counts' if row['counts'] else 'too old'} "
                      f"| {row['before']:.3f} "
                      f"| {row['after']:.3f} | {row['worst']:.3f} | {gain:.2f}{' !' if wrong else ''} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
