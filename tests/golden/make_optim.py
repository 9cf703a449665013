#!/usr/bin/env python3
"""Curves of the optimizers on a small quadratic, from their definitions in plain Python floats (IEEE double).

Usage: tests/golden/make_optim.py > tests/golden/optim.txt
       tests/golden/make_optim.py --torch    # compares with PyTorch where it is installed; 77 where it is not

f(x) = sum a (x - t)^2 / 2 over three tensors, one after another: a matrix inside a block [4][6], an embedding [5][4], a vector
[4]. Element i over all: a = 1/4 + (7 i mod 11)/8, t = ((5 i mod 13) - 6)/8, start ((3 i mod 7) - 3)/4, the vector at 0. Each line of
the output: optimizer, step, f before the step. tests/unit/compute/model/test_optim_golden.c walks the same way with compute/model/optim.c.
"""

import math
import sys

SHAPES = [(4, 6), (5, 4), (4, 1)]
SIZES = [rows * columns for rows, columns in SHAPES]
STARTS = [0, 24, 44]
N = sum(SIZES)
STEPS = 60
BETA1, BETA2, EPS, DECAY, CLIP, MOMENTUM = 0.9, 0.95, 1e-6, 0.015625, 1.0, 0.95
RATES = {"adamw": 0.03125, "lamb": 0.03125, "lars": 1.0, "muon": 0.03125}


def curvature(i):
    return 0.25 + (7 * i % 11) / 8


def target(i):
    return ((5 * i % 13) - 6) / 8


def start(i):
    return ((3 * i % 7) - 3) / 4 if i < STARTS[2] else 0.0


def norm(values):
    return math.sqrt(sum(v * v for v in values))


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def orthogonal(values, rows, columns):
    """Five quintic Newton-Schulz steps."""
    length = norm(values) + 1e-7
    x = [[values[r * columns + c] / length for c in range(columns)] for r in range(rows)]
    for _ in range(5):
        gram = product(x, [list(column) for column in zip(*x)])
        square = product(gram, gram)
        poly = [[-4.7750 * g + 2.0315 * s for g, s in zip(*rows_)] for rows_ in zip(gram, square)]
        more = product(poly, x)
        x = [[3.4445 * u + v for u, v in zip(*rows_)] for rows_ in zip(x, more)]
    return [v for row in x for v in row]


class Optimizer:
    def __init__(self, kind):
        self.kind = kind
        self.rate = RATES[kind]
        self.m = [0.0] * N
        self.v = [0.0] * N
        self.t = 0

    def adam(self, i, g):
        self.m[i] = BETA1 * self.m[i] + (1 - BETA1) * g
        self.v[i] = BETA2 * self.v[i] + (1 - BETA2) * g * g
        return self.m[i] / (1 - BETA1**self.t) / (math.sqrt(self.v[i] / (1 - BETA2**self.t)) + EPS)

    def tensor(self, k, x, g):
        """Changes of one tensor; x and g are its values."""
        rows, columns = SHAPES[k]
        first = STARTS[k]
        matrix = k < 2
        decay = DECAY if matrix else 0.0
        if self.kind == "adamw" or (self.kind == "muon" and k > 0):
            return [self.rate * (self.adam(first + i, gi) + decay * xi) for i, (xi, gi) in enumerate(zip(x, g))]
        if self.kind == "lamb":
            u = [self.adam(first + i, gi) + decay * xi for i, (xi, gi) in enumerate(zip(x, g))]
            ratio = min(norm(x), 10.0) / norm(u) if matrix and norm(x) > 0 and norm(u) > 0 else 1.0
            return [self.rate * ratio * ui for ui in u]
        if self.kind == "lars":
            local = norm(x) / (norm(g) + decay * norm(x)) if matrix and norm(x) > 0 and norm(g) > 0 else 1.0
            for i, (xi, gi) in enumerate(zip(x, g)):
                self.m[first + i] = MOMENTUM * self.m[first + i] + self.rate * 0.001 * local * (gi + decay * xi)
            return self.m[first:first + len(x)]
        for i, gi in enumerate(g):
            self.m[first + i] = MOMENTUM * self.m[first + i] + gi
        o = orthogonal([gi + MOMENTUM * self.m[first + i] for i, gi in enumerate(g)], rows, columns)
        unit = 0.2 * math.sqrt(max(rows, columns))
        return [self.rate * (unit * oi + decay * xi) for xi, oi in zip(x, o)]

    def step(self, x, g):
        self.t += 1
        for k, (first, size) in enumerate(zip(STARTS, SIZES)):
            change = self.tensor(k, x[first:first + size], g[first:first + size])
            for i, c in enumerate(change):
                x[first + i] -= c


def slope(x):
    g = [curvature(i) * (x[i] - target(i)) for i in range(N)]
    length = norm(g)
    return [v * min(1.0, CLIP / length) for v in g]


def loss(x):
    return sum(curvature(i) * (x[i] - target(i))**2 / 2 for i in range(N))


def curve(kind):
    optimizer = Optimizer(kind)
    x = [start(i) for i in range(N)]
    for _ in range(STEPS):
        yield loss(x)
        optimizer.step(x, slope(x))


def torch_curve(torch, kind):
    """The same walk by PyTorch's own optimizers."""
    tensors = [torch.tensor([start(first + i) for i in range(size)], dtype=torch.float64).reshape(shape).requires_grad_()
               for first, size, shape in zip(STARTS, SIZES, SHAPES)]
    a = torch.tensor([curvature(i) for i in range(N)], dtype=torch.float64)
    t = torch.tensor([target(i) for i in range(N)], dtype=torch.float64)
    first = 0 if kind == "adamw" else 1
    adamw = torch.optim.AdamW([{"params": tensors[first:2], "weight_decay": DECAY},
                               {"params": tensors[2:], "weight_decay": 0.0}],
                              lr=RATES[kind], betas=(BETA1, BETA2), eps=EPS)
    steppers = [adamw]
    if kind == "muon":
        steppers.append(torch.optim.Muon(tensors[:1], lr=RATES[kind], weight_decay=DECAY, momentum=MOMENTUM,
                                         adjust_lr_fn="match_rms_adamw"))
    for _ in range(STEPS):
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        value = (a * (flat - t)**2 / 2).sum()
        for stepper in steppers:
            stepper.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(tensors, CLIP)
        for stepper in steppers:
            stepper.step()
        yield value.item()


def compare():
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed")
        return 77
    # PyTorch's Muon multiplies in bf16; its clipping adds 1e-6 to the norm.
    bounds = {"adamw": 1e-5}
    if hasattr(torch.optim, "Muon"):
        bounds["muon"] = 0.05
    worst = 0
    for kind, bound in bounds.items():
        difference = max(abs(p - q) / p for p, q in zip(curve(kind), torch_curve(torch, kind)))
        print(f"{kind}: largest relative difference to torch {torch.__version__}: {difference:.2g}, bound {bound:g}")
        worst = max(worst, difference / bound)
    return 0 if worst <= 1 else 1


def main():
    if "--torch" in sys.argv[1:]:
        sys.exit(compare())
    for kind in RATES:
        for step, value in enumerate(curve(kind)):
            print(f"{kind} {step} {value:.12g}")


main()
