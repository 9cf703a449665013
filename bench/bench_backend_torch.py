#!/usr/bin/env python3
"""The anchor of bench_backend on a GPU: the same training steps in PyTorch, compiled, in bf16 autocast with its own attention and fused
AdamW, as nanoGPT has them.

bench_backend_torch.py [--seconds S] [--only TEXT]: one JSON object per shape, tokens per second by the median step. Exit status 77 if PyTorch or a
GPU is missing.
"""
import argparse
import json
import statistics
import sys
import time

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError:
    print("bench_backend_torch: no PyTorch", file=sys.stderr)
    sys.exit(77)

SHAPES = {  # as in bench_backend.c: layers, width, heads, context, vocab, rows
    "gpt2-124m T1024 B32": (12, 768, 12, 1024, 50304, 32),
    "gpt2-1558m T1024 B16": (48, 1600, 25, 1024, 50304, 16),
}
WARM_UP = 5


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, layers, width, heads, context, vocab):
        super().__init__()
        self.embed, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, x, y):
        h = self.embed(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        logits = self.norm(h) @ self.embed.weight.t()
        return F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())


def measure(shape, seconds):
    layers, width, heads, context, vocab, rows = shape
    torch.manual_seed(7)
    torch.set_float32_matmul_precision("high")
    model = Model(layers, width, heads, context, vocab).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = torch.randint(vocab, (rows, context + 1), device="cuda")
    compiled = torch.compile(model)

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()  # like our engine, which reports the loss of each step

    begin = time.monotonic()
    step()
    first = time.monotonic() - begin
    for _ in range(WARM_UP):
        step()
    times, start = [], time.monotonic()
    while time.monotonic() - start < seconds:
        begin = time.monotonic()
        step()
        times.append(time.monotonic() - begin)
    return rows * context / statistics.median(times), first


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("bench_backend_torch: PyTorch sees no GPU", file=sys.stderr)
        sys.exit(77)
    for name, shape in SHAPES.items():
        if arguments.only in name:
            speed, first = measure(shape, arguments.seconds)
            print(json.dumps({"shape": name, "torch": torch.__version__, "device": torch.cuda.get_device_name(),
                              "tokens_per_s": round(speed), "first_step_s": round(first, 2)}), flush=True)


if __name__ == "__main__":
    main()
