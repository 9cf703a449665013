#!/usr/bin/env python3
"""One PyTorch script in a run of dpnode, and the same script by DistributedDataParallel, by DiLoCo in plain PyTorch, and alone.

bench_script_torch.py [--binaries FOLDER] [--steps N] [--members N] [--round SECONDS] [--modes MODE,...] [--seeds N] [--every N]
[--rate X]: a character model
(2 layers, width 64, context 64) learns the King James Bible. Every member takes so many steps of AdamW with 16 sequences each; all methods see as
many tokens. Prints one JSON object per method and seed: held-out loss in nats per character, seconds, rounds, steps of a member per round, bytes that
a node has sent. The runs are real daemons with the modes' defaults. DiLoCo (Douillard et al. 2023) has the run's steps per round as H, an outer
Nesterov momentum of 0.9 and a rate of 0.7. Exit status 77 if PyTorch cannot be imported."""

import argparse
import copy
import json
import math
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "tests", "lib"), os.path.join(HERE, "..", "python")]
try:
    import torch
    from torch import nn
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(77)
import dpnode  # noqa: E402 (the path comes first)
from daemons import Folder, wait_for  # noqa: E402

CONTEXT, WIDTH, LAYERS, HEADS, ROWS, HELD_OUT = 64, 64, 2, 4, 16, 0.05
YAML = """name: characters
model: {{arch: external}}
data: {{samples: {samples}, unit: {context}}}
train: {{total_tokens: {tokens}}}
members: {{trust: members}}
vote: {{uptime: 0}}
round: {{time: {round}, mode: {mode}, steps_max: {most}}}
"""


def bible():
    """The King James Bible as a file."""
    path = os.path.join("/tmp", f"kjv-{os.getuid()}.txt")
    with open(path, "wb") as file:
        subprocess.run(["bible", "gen1:1-rev22:21"], stdout=file, check=True)
    return path


class Text(torch.utils.data.Dataset):
    """Windows of the text, as character numbers; the last part is held out."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = torch.tensor(list(file.read()))
        self.letters, data = data.unique(return_inverse=True)
        cut = int(len(data) * (1 - HELD_OUT))
        self.train, self.held_out = data[:cut], data[cut:]

    def __len__(self):
        return (len(self.train) - 1) // CONTEXT

    def __getitem__(self, index):
        at = index * CONTEXT
        return self.train[at:at + CONTEXT], self.train[at + 1:at + CONTEXT + 1]


class Model(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
                                    for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT), persistent=False)

    def forward(self, x):
        h = self.letters(x) + self.places.weight
        for block in self.blocks:
            h = block(h, src_mask=self.mask, is_causal=True)
        return self.head(self.norm(h))


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def model_of(text, seed):
    torch.manual_seed(seed)
    return Model(len(text.letters))


def held_out(model, text):
    windows = text.held_out[:(len(text.held_out) - 1) // CONTEXT * CONTEXT + 1]
    x, y = windows[:-1].view(-1, CONTEXT), windows[1:].view(-1, CONTEXT)
    with torch.no_grad():
        parts = [loss_of(model, x[at:at + 64], y[at:at + 64]).item() * len(x[at:at + 64]) for at in range(0, len(x), 64)]
    return sum(parts) / len(x)


def batches(text, seed, member, members):
    """Of one member: no window twice in a pass, and none of another member's."""
    order = torch.randperm(len(text), generator=torch.Generator().manual_seed(seed))[member::members]
    while True:
        for at in range(0, len(order) - ROWS + 1, ROWS):
            pairs = [text[int(i)] for i in order[at:at + ROWS]]
            yield torch.stack([x for x, _ in pairs]), torch.stack([y for _, y in pairs])


def optimizer_of(model, rate):
    return torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.1)


def step(model, optimizer, batch):
    loss = loss_of(model, *batch)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


def alone(text, seed, args):
    model, data = model_of(text, seed), batches(text, seed, 0, 1)
    optimizer = optimizer_of(model, args.rate)
    for _ in range(args.steps):
        step(model, optimizer, next(data))
    return model, {}


def ddp(text, seed, args):
    """The mean of the gradients, as DistributedDataParallel makes it: one batch of all members."""
    model, data = model_of(text, seed), [batches(text, seed, member, args.members) for member in range(args.members)]
    optimizer = optimizer_of(model, args.rate)
    for _ in range(args.steps):
        parts = [next(one) for one in data]
        step(model, optimizer, (torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])))
    return model, {}


def diloco(text, seed, args, every):
    theta = model_of(text, seed)
    outer = torch.optim.SGD(theta.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    models = [copy.deepcopy(theta) for _ in range(args.members)]
    inner = [optimizer_of(model, args.rate) for model in models]
    data = [batches(text, seed, member, args.members) for member in range(args.members)]
    for done in range(0, args.steps, every):
        for model, optimizer, one in zip(models, inner, data):
            model.load_state_dict(theta.state_dict())
            for _ in range(min(every, args.steps - done)):
                step(model, optimizer, next(one))
        for name, parameter in theta.named_parameters():
            parameter.grad = parameter.detach() - sum(model.get_parameter(name).detach() for model in models) / args.members
        outer.step()
    return theta, {"every": every}


def member(args):
    """The script in a run: this is all that a member does."""
    torch.set_num_threads(1)
    text = Text(args.text)
    model = model_of(text, args.seed)
    optimizer = optimizer_of(model, args.rate)
    steps = 0
    with dpnode.DiLoCo(model, optimizer, sync_every=args.every) as run:
        for batch in run.shard(text, batch_size=ROWS):
            run.loss(step(model, optimizer, batch))
            steps += 1
            if steps == args.steps:
                break


def by_run(text, seed, args, mode):
    model = model_of(text, seed)
    with Folder(args.binaries) as folder:
        first, manifest = os.path.join(folder.path, "first.safetensors"), os.path.join(folder.path, "run.yaml")
        dpnode.save_model(model, first)
        with open(manifest, "w", encoding="ascii") as file:
            file.write(YAML.format(samples=len(text), context=CONTEXT, tokens=args.members * args.steps * ROWS * CONTEXT, round=args.round,
                                   mode=mode, most=args.every or 10000))
        nodes = [folder.node("n0").start()]
        token = nodes[0].create(manifest, "--from", first)["invite"]
        for number in range(1, args.members):
            nodes.append(folder.node(f"n{number}").start())
            nodes[-1].ask("join", "-", stdin=token)
        for node in nodes:
            wait_for(lambda node=node: node.run().get("trainer") == "up", 60, f"{node.name} holds the model")
        scripts = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "--member", "--text", args.text, "--seed", str(seed), "--rate",
                                     str(args.rate), "--steps", str(args.steps)] + (["--every", str(args.every)] if args.every else []), env={**os.environ, "DPNODE_DIR": node.dir}) for node in nodes]
        assert [script.wait() for script in scripts] == [0] * args.members
        # The last steps are published with the round under way; an update that it left out is not counted by anybody any more.
        every = args.members * args.steps * ROWS
        until = time.monotonic() + 5 * args.round + 5
        while (audit := nodes[0].ask("audit"))["samples"] < every and time.monotonic() < until:
            time.sleep(0.2)
        wait_for(lambda: nodes[0].run()["applied"] == nodes[0].run()["round"], 60, "the last record is applied")
        out = os.path.join(folder.path, "out")
        exported = nodes[0].ask("ckpt", "export", out)
        assert exported["round"] == nodes[0].run()["round"], exported
        dpnode.load_model(model, out)
        run = nodes[0].run()
        counted = audit["samples"] / every
        return model, {"rounds": run["round"], "every": round(args.steps / max(run["round"], 1)), "counted": round(counted, 4),
                       "bytes_sent": run["bytes_sent"], "twice": audit["twice"]}


def measure(name, method, text, seed):
    start = time.monotonic()
    model, more = method()
    row = {"method": name, "seed": seed, "loss": round(held_out(model, text), 4), "seconds": round(time.monotonic() - start, 1), **more}
    assert math.isfinite(row["loss"])
    print(json.dumps(row), flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(HERE, "..", "build", "release"))
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--round", type=float, default=2)
    parser.add_argument("--every", type=int, help="steps of a member in each round, between which it waits (round.steps_max, sync_every)")
    parser.add_argument("--modes", default="sparse,diloco,average")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate of AdamW")
    parser.add_argument("--text")
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--member", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.member:
        return member(args)
    args.binaries = os.path.abspath(args.binaries)
    args.text = args.text or bible()
    text = Text(args.text)
    torch.set_num_threads(1)
    for seed in range(1, args.seeds + 1):
        rows = [measure(f"dpnode {mode}", lambda mode=mode: by_run(text, seed, args, mode), text, seed) for mode in args.modes.split(",")]
        measure("DiLoCo in PyTorch", lambda: diloco(text, seed, args, rows[0]["every"]), text, seed)
        measure("DDP", lambda: ddp(text, seed, args), text, seed)
        measure("one script alone", lambda: alone(text, seed, args), text, seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
