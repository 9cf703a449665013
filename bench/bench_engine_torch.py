#!/usr/bin/python3
"""The anchor of bench_engine: the same training steps in PyTorch on one thread, by process CPU time.

bench_engine_torch.py [--seconds S] [--engine PATH]: with --engine it runs bench_engine alternately and prints the ratios,
one JSON object per shape. Exit status 77 when PyTorch cannot be imported (Debian: python3-torch).
"""
import argparse
import json
import os
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError:
    print("bench_engine_torch: no PyTorch; install python3-torch", file=sys.stderr)
    sys.exit(77)

SHAPES = {  # name: layers, width, heads, context, vocab, rows
    "L4 C256 T256 B8 V512": (4, 256, 8, 256, 512, 8),
    "L4 C128 T128 B8 V1024 (demo)": (4, 128, 4, 128, 1024, 8),
}


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("future", torch.triu(torch.ones(context, context, dtype=torch.bool), 1))

    def forward(self, x):
        rows, length, width = x.shape
        split = self.qkv(self.norm1(x)).view(rows, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
            y = scores.masked_fill(self.future[:length, :length], float("-inf")).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(rows, length, width))
        return x + self.proj(F.gelu(self.fc(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, layers, width, heads, context, vocab):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads, context) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, x, y):
        stream = self.blocks(self.tokens(x) + self.places(torch.arange(x.shape[1])))
        logits = self.norm(stream) @ self.tokens.weight.t()
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def measure(shape, seconds):
    """Mean and best tokens per CPU second, and milliseconds of AdamW with clipping."""
    layers, width, heads, context, vocab, rows = shape
    torch.manual_seed(1)
    model = Model(layers, width, heads, context, vocab)
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    text = torch.randint(vocab, (rows, context + 1))
    spent, updating, best, steps = 0.0, 0.0, 1e30, -2
    while spent < seconds:
        start = time.process_time()
        adamw.zero_grad(set_to_none=True)
        model(text[:, :-1], text[:, 1:]).backward()
        stepped = time.process_time()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        end = time.process_time()
        steps += 1
        if steps > 0:  # The first two warm up.
            spent, updating, best = spent + end - start, updating + end - stepped, min(best, end - start)
    tokens = rows * context
    return steps * tokens / spent, tokens / best, 1e3 * updating / steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--engine")
    args = parser.parse_args()
    torch.set_num_threads(1)
    engine = {}
    if args.engine:
        command = [args.engine, "--json", "--seconds", str(args.seconds)]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            engine[json.loads(line)["shape"]] = json.loads(line)
    for name, shape in SHAPES.items():
        mean, best, update = measure(shape, args.seconds)
        result = {"shape": name, "torch": torch.__version__, "torch_tokens_per_second_core": round(mean),
                  "torch_tokens_per_second_core_best": round(best), "torch_adamw_ms": round(update, 3)}
        if name in engine:
            ours = engine[name]
            result["tokens_per_second_core"] = ours["tokens_per_second_core"]
            result["adamw_ms"] = ours["adamw_ms"]
            result["ratio"] = round(ours["tokens_per_second_core"] / mean, 3)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
