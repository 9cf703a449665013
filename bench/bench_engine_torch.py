#!/usr/bin/python3
"""The anchor of bench_engine: the same training steps in PyTorch on one thread, by process CPU time.

bench_engine_torch.py [--seconds S] [--turns N] [--engine PATH] [--large] [--only TEXT] [--precision fp32|bf16] [--compile] [--llmc FOLDER]: with --engine
bench_engine and PyTorch take turns for each shape and precision; the ratio is the median over turns, since the speed of a shared
processor changes from one second to the next. One JSON object per shape and precision; times are medians over steps. bf16 is
torch.autocast; AdamW is fused and attention scaled_dot_product_attention where this PyTorch has them. --compile also measures
torch.compile (it needs a C++ compiler and a minute a shape) and takes the faster. --large adds the shapes that take minutes, --only
selects those whose name contains TEXT. --llmc names a checkout of llm.c with train_gpt2 built and its starter files beside it: with
--large its steps of GPT-2 124M, 4 x 64 tokens, fp32, on one thread, by the wall time that it prints.
Exit status 77 when PyTorch cannot be imported (Debian: python3-torch).
PyTorch computes fp32 products with the installed BLAS: without libopenblas0-pthread Debian's is a plain loop, a twentieth as fast, and the script
reports it.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
    if "avx512bw" in cpuinfo.read():
        # OpenBLAS 0.3.21 does not detect AVX-512 on processors newer than itself, which halves its speed.
        os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError:
    print("bench_engine_torch: no PyTorch; install python3-torch", file=sys.stderr)
    sys.exit(77)

SHAPES = {  # name: family, layers, width, heads, kv heads, hidden, context, vocab, rows, large
    "gpt2 L4 C256 T256 B8 V512": ("gpt2", 4, 256, 8, 8, 1024, 256, 512, 8, False),
    "gpt2 L4 C128 T128 B8 V1024": ("gpt2", 4, 128, 4, 4, 512, 128, 1024, 8, False),
    "llama L4 C256 T256 B8 V512": ("llama", 4, 256, 8, 4, 704, 256, 512, 8, False),
    "gpt2 L6 C384 T256 B8 V4096": ("gpt2", 6, 384, 6, 6, 1536, 256, 4096, 8, True),
    "gpt2 L4 C384 T1024 B2 V4096": ("gpt2", 4, 384, 6, 6, 1536, 1024, 4096, 2, True),
    "llama L8 C512 T512 B4 V4096": ("llama", 8, 512, 8, 2, 1408, 512, 4096, 4, True),
    "gpt2-124m T64 B4": ("gpt2", 12, 768, 12, 12, 3072, 64, 50257, 4, True),
    "llama L12 C768 T64 B4 V32000": ("llama", 12, 768, 12, 4, 2048, 64, 32000, 4, True),
}
PRECISIONS = ("fp32", "bf16")


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        if hasattr(F, "rms_norm"):
            return F.rms_norm(x, self.gain.shape, self.gain, 1e-5)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.gain


def turned(x, cosines, sines):
    """Rotary positions of x [rows][heads][length][head], in halves."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cosines - b * sines, b * cosines + a * sines), -1)


class Block(nn.Module):
    def __init__(self, family, width, heads, kv_heads, hidden, context):
        super().__init__()
        self.llama, self.heads, self.kv_heads, self.head = family == "llama", heads, kv_heads, width // heads
        norm, bias = (RMSNorm, False) if self.llama else (nn.LayerNorm, True)
        self.norm1, self.norm2 = norm(width), norm(width)
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * self.head, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.up = nn.Linear(width, 2 * hidden if self.llama else hidden, bias=bias)
        self.down = nn.Linear(hidden, width, bias=bias)
        self.register_buffer("future", torch.triu(torch.ones(context, context, dtype=torch.bool), 1))
        turns = torch.outer(torch.arange(context), 10000.0 ** -(torch.arange(0, self.head, 2) / self.head))
        self.register_buffer("cosines", turns.cos())
        self.register_buffer("sines", turns.sin())

    def attend(self, x):
        rows, length, width = x.shape
        split = self.qkv(x).view(rows, length, self.heads + 2 * self.kv_heads, self.head).transpose(1, 2)
        q, k, v = split.split((self.heads, self.kv_heads, self.kv_heads), 1)
        if self.llama:
            q = turned(q, self.cosines[:length], self.sines[:length])
            k = turned(k, self.cosines[:length], self.sines[:length])
            k = k.repeat_interleave(self.heads // self.kv_heads, 1)
            v = v.repeat_interleave(self.heads // self.kv_heads, 1)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) * self.head ** -0.5
            y = scores.masked_fill(self.future[:length, :length], float("-inf")).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(rows, length, width))

    def feed(self, x):
        if not self.llama:
            return self.down(F.gelu(self.up(x), approximate="tanh"))
        gate, up = self.up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.feed(self.norm2(x))


class Model(nn.Module):
    def __init__(self, family, layers, width, heads, kv_heads, hidden, context, vocab):
        super().__init__()
        llama = family == "llama"
        self.tokens = nn.Embedding(vocab, width)
        self.places = None if llama else nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(family, width, heads, kv_heads, hidden, context) for _ in range(layers)])
        self.norm = RMSNorm(width) if llama else nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        if not llama:
            self.head.weight = self.tokens.weight

    def forward(self, x, y):
        stream = self.tokens(x)
        if self.places is not None:
            stream = stream + self.places(torch.arange(x.shape[1]))
        logits = self.head(self.norm(self.blocks(stream)))
        return F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())


def blas():
    """The library with which PyTorch computes fp32 products."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        names = {os.path.realpath(line.split()[-1]) for line in maps if "blas" in line}
    return next((name for name in sorted(names) if "openblas" in os.path.basename(name)), ",".join(sorted(names)))


def median(values):
    return sorted(values)[len(values) // 2]


def fused_adamw(model):
    """With one pass over all tensors, where this PyTorch has it on CPUs (2.4)."""
    settings = {"lr": 1e-3, "betas": (0.9, 0.95), "weight_decay": 0.1}
    try:
        return torch.optim.AdamW(model.parameters(), fused=True, **settings)
    except (RuntimeError, TypeError):
        return torch.optim.AdamW(model.parameters(), **settings)


def measure(shape, precision, seconds, compiled=False):
    """Tokens per CPU second, median and best step, and milliseconds of AdamW with clipping."""
    context, vocab, rows = shape[6:9]
    torch.manual_seed(1)
    model = Model(*shape[:8])
    adamw = fused_adamw(model)
    step = torch.compile(model) if compiled else model
    text = torch.randint(vocab, (rows, context + 1))
    steps, updates, warm = [], [], 2
    while sum(steps) < seconds:
        start = time.process_time()
        adamw.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = step(text[:, :-1], text[:, 1:])
        loss.backward()
        stepped = time.process_time()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        end = time.process_time()
        if warm > 0:
            warm -= 1
            continue
        steps.append(end - start)
        updates.append(end - stepped)
    tokens = rows * context
    return tokens / median(steps), tokens / min(steps), 1e3 * median(updates)


def engine_result(path, name, precision, seconds):
    command = [path, "--json", "--large", "--seconds", str(seconds), "--precision", precision, "--only", name]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return json.loads(lines[0])


def llmc_result(folder, steps=6):
    """Tokens per second of llm.c's CPU program, which prints the wall time of each step; median. It is stopped after a few steps."""
    run = subprocess.Popen(["./train_gpt2"], cwd=folder, stdout=subprocess.PIPE, text=True)
    times = []
    try:
        for line in run.stdout:
            found = re.match(r"step (\d+): train loss .*\(took ([0-9.]+) ms\)", line)
            if found and int(found.group(1)) > 0:
                times.append(float(found.group(2)))
            if len(times) == steps:
                break
    finally:
        run.kill()
        run.wait()
    if not times:
        raise RuntimeError(f"{folder}/train_gpt2 told no step")
    return 4 * 64 / (1e-3 * median(times))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--engine")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--precision", choices=PRECISIONS)
    parser.add_argument("--llmc")
    args = parser.parse_args()
    torch.set_num_threads(1)
    library = os.path.basename(blas())
    if "openblas" not in library:
        print(f"bench_engine_torch: fp32 products by {library}, no anchor: install libopenblas0-pthread", file=sys.stderr)
    for name, shape in SHAPES.items():
        if (shape[-1] and not args.large) or args.only not in name:
            continue
        for precision in [args.precision] if args.precision else PRECISIONS:
            turns = []
            for _ in range(args.turns):
                ours = engine_result(args.engine, name, precision, args.seconds) if args.engine else None
                theirs = [measure(shape, precision, args.seconds)]
                if args.compile:
                    theirs.append(measure(shape, precision, args.seconds, compiled=True))
                turns.append((ours, max(theirs)))
            rate, best, update = (median([turn[1][i] for turn in turns]) for i in range(3))
            result = {"shape": name, "precision": precision, "torch": torch.__version__, "blas": library,
                      "torch_tokens_per_second_core": round(rate, 1),
                      "torch_tokens_per_second_core_best": round(best, 1), "torch_adamw_ms": round(update, 3)}
            if args.engine:
                result["ops"] = turns[0][0]["ops"]
                for key in ("tokens_per_second_core", "gflops_core", "gflops_peak", "share", "optimizer_ms"):
                    result[key] = median([turn[0][key] for turn in turns])
                ratios = sorted(turn[0]["tokens_per_second_core"] / turn[1][0] for turn in turns)
                result["ratio"] = round(median(ratios), 3)
                result["ratios"] = [round(ratio, 3) for ratio in ratios]
            if args.llmc and name == "gpt2-124m T64 B4" and precision == "fp32":
                result["llmc_tokens_per_second_wall"] = round(llmc_result(args.llmc), 1)
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
