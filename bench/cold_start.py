#!/usr/bin/python3
"""From nothing to the first optimizer step of GPT-2 124M: `dpnode train` in a new folder and `--resume`d, beside PyTorch.

cold_start.py [--build FOLDER] [--turns N] [--preset NAME] [--context T] [--rows B] [--backend NAME] [--json]: alternately, N times each (3), with
data tokenized beforehand: dpnode train until it reports its first step; the same resumed from its checkpoint; a Python process that
imports torch, initializes the same model and makes one step. Prints medians of wall seconds until then, of CPU seconds of the whole
call (ours with the last checkpoint and the exported model), and the ratio of wall times to PyTorch's; without PyTorch (Debian: python3-torch) only
ours. Files go to a folder in --folder (/dev/shm), which is removed.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS, WIDTH, HEADS, VOCAB = 12, 768, 12, 50257  # of gpt2-124m, for PyTorch
DATA_VOCAB = 512


def torch_step(context, rows):
    """The PyTorch side, in a process of its own."""
    sys.path.insert(0, HERE)
    from bench_engine_torch import Model, torch

    model = Model("gpt2", LAYERS, WIDTH, HEADS, HEADS, 4 * WIDTH, context, VOCAB)
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randint(0, DATA_VOCAB, (rows, context + 1))
    model(x[:, :-1], x[:, 1:]).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    adamw.step()
    print("step", flush=True)


def until_step(command):
    """Wall seconds from exec until the output reports a step, and CPU seconds until the end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wall = None
        for line in process.stdout:
            if wall is None and (line == "step\n" or '"step"' in line and json.loads(line).get("event") == "step"):
                wall = time.monotonic() - start
        words = process.stderr.read()
    if process.returncode != 0 or wall is None:
        return None, words
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), words


def prepare(options, folder):
    """A manifest and tokenized data; the documentation is the text."""
    text, data, path = (os.path.join(folder, name) for name in ("text.txt", "data", "run.yaml"))
    with open(text, "w", encoding="utf-8") as file:
        for name in ("ARCHITECTURE", "PROTOCOL", "FORMATS", "RELIABILITY", "BENCHMARKS"):
            with open(os.path.join(HERE, "..", "docs", name + ".md"), encoding="utf-8") as part:
                file.write(part.read())
    subprocess.run([os.path.join(options.build, "dpnode"), "data", "tokenize", text, "--out", data, "--vocab", str(DATA_VOCAB)],
                   check=True, stdout=subprocess.DEVNULL)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"name: cold\ntext: {data}\nmodel: {{preset: {options.preset}, context: {options.context}}}\n"
                   f"train: {{batch: {options.rows}, lr: 1e-3, total_tokens: 10000000, precision: {options.precision}}}\n")
    backend = ["--backend", options.backend] if options.backend else []
    return [os.path.join(options.build, "dpnode"), "train", path, "--json", "--save-seconds", "0", "--rows", str(options.rows), *backend]


def measure(options, folder):
    train = prepare(options, folder)
    took = {"new": [], "resumed": [], "torch": []}
    for turn in range(options.turns):
        out = ["--out", os.path.join(folder, f"out{turn}")]
        commands = {"new": [*train, *out, "--steps", "1"], "resumed": [*train, *out, "--resume", "--steps", "2"],
                    "torch": [sys.executable, os.path.abspath(__file__), "--torch-step", "--context", str(options.context),
                              "--rows", str(options.rows)]}
        if options.alone:
            del commands["torch"]
        for name, command in commands.items():
            result, words = until_step(command)
            if result is None and name != "torch":
                sys.exit(f"cold_start: {' '.join(command)}: {words.strip()}")
            took[name] += [result] if result is not None else []
        subprocess.run(["rm", "-rf", out[1]], check=True)
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build", "release"))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--preset", default="gpt2-124m")
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--backend", help="who computes ours; the CPU computes PyTorch's all the same")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--torch-step", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch_step:
        torch_step(options.context, options.rows)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        took = measure(options, folder)
    told = {}
    for name, pairs in took.items():
        if pairs:
            told[name + "_wall_s"] = round(statistics.median(wall for wall, _ in pairs), 3)
            told[name + "_cpu_s"] = round(statistics.median(cpu for _, cpu in pairs), 3)
    for name in ("new", "resumed"):
        if "torch_wall_s" in told and options.preset == "gpt2-124m":
            told[name + "_ratio"] = round(told["torch_wall_s"] / told[name + "_wall_s"], 2)
    print(json.dumps(told) if options.json else "\n".join(f"{key:16} {value}" for key, value in told.items()))


if __name__ == "__main__":
    main()
