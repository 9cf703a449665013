#!/usr/bin/env python3
"""Learning against bytes for a reader who trains models: bench_quality at larger scales, with settings of its own for each method.

    python3 bench/learning.py --binaries build/release --scale small|1m|10m [--nodes 2,4,8,16] [--inner 15,30,100,300] [--seeds 3]
        [--methods ddp,diloco,shipped,average,single] [--optimizers adamw,muon] [--texts FILE,FILE] [--split alike|parts]
        [--lr-factors 0.5,1,2] [--outer 0.5/0.8,0.7/0.8,0.7/0.9] [--sweep-share 0.25] [--widen 2]
        [--tokens N] [--jobs N] [--budget-minutes M] [--results FILE] [--plot FOLDER]

  small  the defaults of bench_quality: 120,576 parameters, context 64, 16 tokens per parameter
  1m     1,057,152 parameters (5 layers, width 128), context 256, 21 tokens per parameter
  10m    10,028,160 parameters (8 layers, width 320), context 256, 21 tokens per parameter
All are GPT-2 over bytes. The tokens are of all nodes together, and the same for any number of nodes; single is one node alone, with
its share of them. ddp is one trainer with the batch of all nodes (H = 1 up to rounding).

Each method has a sweep for itself in each table: one seed, --sweep-share of the length, the learning rate at --lr-factors of the
scale's, and for diloco pairs of --outer (eta/mu). The rate rises as in a run
without train.warmup_tokens: for 200 steps, in the table and in a sweep of at least 800. Where the best rate is the least
or the greatest that was tried, the next one is tried too, --widen times. The table runs with the best. "!": it is still at an edge, so
a wider sweep might find a better one.

  sent   MB that one node sends, as dpnode does by default: each update to every other node
  least  the same, but whole vectors (ddp, diloco, average) go by an all-reduce: 2 (n - 1) / n copies
  wall   computed, not measured: steps times the CPU time of a node's step (one core, measured, without the evaluation), plus "least"
         over a line of that rate. Nothing overlaps, and lines have no delay. The nodes of ddp share one optimizer step here, so its
         time is a few percent too short.
Each finished cell is a line in the results file. A run that was interrupted goes on there; delete the file after a change of the trainer.
Losses differ by about 0.005 to 0.02 between runs of one seed at the scale small: one seed is a look, not a result."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from learning_cells import SCALES, Group, Row, Sweep, command, keep_result, key_of, read_results, wanted  # noqa: E402
from learning_report import found_in, plots, report, say_setting  # noqa: E402

METHODS = "ddp,diloco,shipped,average,single"
OWN_TEXT = "bible"


class Texts:
    """Names of texts for cells: the file's name and what it holds, so that a changed file is another text."""

    def __init__(self, words):
        self.paths = {}
        for path in words.split(",") if words else []:
            with open(path, "rb") as file:
                self.paths[f"{os.path.basename(path)}-{hashlib.sha256(file.read()).hexdigest()[:8]}"] = path
        self.names = list(self.paths) or [OWN_TEXT]


class Runs:
    """Starts cells, some at a time, and keeps what they give."""

    def __init__(self, args, texts):
        self.args, self.texts = args, texts
        self.program = os.path.join(args.binaries, "bench_quality")
        with open(self.program, "rb") as file:
            self.binary = hashlib.sha256(file.read()).hexdigest()[:12]
        self.results = read_results(args.results)
        self.children = set()
        self.lock = threading.Lock()
        self.ending = False

    def start(self, cell):
        with self.lock:
            if self.ending:
                raise RuntimeError("the bench ends")
            child = subprocess.Popen(command(self.program, cell, self.texts.paths), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.children.add(child)
        out, err = child.communicate()
        with self.lock:
            self.children.discard(child)
        return result_of(cell, child.returncode, out, err)

    def end(self):
        with self.lock:
            self.ending = True
            for child in self.children:
                child.kill()

    def keep(self, cell, result, seconds):
        result |= {"binary": self.binary, "date": time.strftime("%Y-%m-%d")}
        self.results[key_of(cell)] = result
        keep_result(self.args.results, cell, result)
        said = f"loss {result['losses'][0]:.4f}" if "losses" in result else f"failed: {result['failed']}"
        sys.stderr.write(f"{cell['only']}, {cell.get('nodes', 1)} nodes, rounds of {cell['inner']}, {cell['steps']} steps, {cell['optimizer']}, "
                         f"rate {say_setting(cell)}, seed {cell['seed']}: {said}, {seconds:.0f} s\n")

    def all(self, rows, scale, sweep, seeds):
        """Until nothing is wanted or the time for starting cells is over. False: the latter."""
        until = time.monotonic() + 60 * self.args.budget_minutes if self.args.budget_minutes else float("inf")
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            running = {}
            try:
                while True:
                    busy = {key_of(cell) for cell, _ in running.values()}
                    new = (cell for cell in wanted(rows, scale, sweep, seeds, self.results, self.args.split) if key_of(cell) not in busy)
                    while len(running) < self.args.jobs and time.monotonic() < until and (cell := next(new, None)) is not None:
                        running[pool.submit(self.start, cell)] = (cell, time.monotonic())
                    if not running:
                        break
                    done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                    for future in done:
                        cell, began = running.pop(future)
                        self.keep(cell, future.result(), time.monotonic() - began)
            except BaseException:
                self.end()
                raise
        return next(wanted(rows, scale, sweep, seeds, self.results, self.args.split), None) is None


def result_of(cell, status, out, err):
    """The line of the configuration, whatever its claims say. A run that diverges is a result; any other failure ends the bench."""
    for text in out.splitlines():
        row = json.loads(text)
        if row.get("configuration") == cell["only"]:
            return row
    last = err.strip().splitlines()[-1:] or [""]
    if status == 1 and f"{cell['only']}, seed " in last[0]:
        return {"failed": last[0].split(": ")[-1]}
    sys.exit(f"learning: bench_quality ended with {status}: {last[0]}; the cell was {json.dumps(cell)}")


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((text.split(":")[1].strip() for text in file if text.startswith("model name")), "unknown")


def numbers(words, kind=int):
    return tuple(kind(word) for word in words.split(","))


def arguments(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--scale", choices=sorted(SCALES), default="small")
    parser.add_argument("--nodes", default="4", help="2 to 16 each")
    parser.add_argument("--inner", help="steps of a round; without it 15 at small, else 30")
    parser.add_argument("--methods", default=METHODS, help="any configurations of bench_quality")
    parser.add_argument("--texts", help="files; without it the King James Bible")
    parser.add_argument("--split", choices=("alike", "parts"), default="alike", help="parts: each node has a part of the text of its own")
    parser.add_argument("--optimizers", default="adamw")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time")
    parser.add_argument("--budget-minutes", type=float, default=0, help="no cell is started after so many; 0: no limit")
    parser.add_argument("--sweep-share", type=float, default=0.25)
    parser.add_argument("--widen", type=int, default=2, help="further learning rates of a sweep, at most")
    parser.add_argument("--lr-factors", default="0.5,1,2")
    parser.add_argument("--outer", default="0.5/0.8,0.7/0.8,0.7/0.9")
    parser.add_argument("--tokens", type=int, default=0, help="of all nodes, instead of the scale's")
    parser.add_argument("--results", help="without it learning-SCALE.jsonl in the folder of the binaries")
    parser.add_argument("--plot", metavar="FOLDER", help="SVG files of loss against bytes, tokens and computed wall time")
    args = parser.parse_args(words)
    args.results = args.results or os.path.join(args.binaries, f"learning-{args.scale}.jsonl")
    return args


def main(words=None):
    args = arguments(words)
    scale = SCALES[args.scale]
    scale = type(scale)(**{**vars(scale), "tokens": args.tokens or scale.tokens})
    sweep = Sweep(numbers(args.lr_factors, float), tuple(numbers(pair.replace("/", ","), float) for pair in args.outer.split(",")),
                  args.sweep_share, args.widen)
    texts = Texts(args.texts)
    methods = args.methods.split(",")
    seeds = range(1, args.seeds + 1)
    groups = [Group(text, optimizer, nodes, inner) for text in texts.names for optimizer in args.optimizers.split(",")
              for nodes in numbers(args.nodes) for inner in numbers(args.inner or scale.inner)]
    runs = Runs(args, texts)
    complete = runs.all([Row(group, method) for group in groups for method in methods], scale, sweep, seeds)
    print(f"scale {args.scale}, {time.strftime('%Y-%m-%d')}, {processor()}, {args.jobs} cells at a time, "
          f"{'one seed' if args.seeds == 1 else f'{args.seeds} seeds'}\n")
    for group in groups:
        print("\n".join(report(group, methods, Row, scale, sweep, seeds, runs.results, args.split)))
        if args.plot:
            for path in plots(args.plot, group, found_in(group, methods, Row, scale, sweep, seeds, runs.results, args.split)):
                sys.stderr.write(f"{path}\n")
    binaries = {result.get("binary") for result in runs.results.values()}
    if len(binaries) > 1:
        print(f"The results file has cells of {len(binaries)} builds of bench_quality.")
    if not complete:
        print("The time for starting cells was over before all had run.")
    return 0 if complete else 3


if __name__ == "__main__":
    sys.exit(main())
