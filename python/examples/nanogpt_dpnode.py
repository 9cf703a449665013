#!/usr/bin/env python3
"""A GPT over the bytes of a text: model, data, schedule and training loop in one file.

Words of the command line change the configuration: text=FILE max_iters=500 device=cuda
"""

import math
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
import dpnode

# Data and output.
text = "input.txt"
val_part = 0.1
checkpoint = "nanogpt.pt"
# Model.
block_size = 128
n_layer = 4
n_head = 4
n_embd = 128
dropout = 0.0
# Optimizer and its schedule.
batch_size = 12
gradient_accumulation_steps = 2
learning_rate = 2e-3
min_lr = 2e-4
warmup_iters = 50
max_iters = 2000
weight_decay = 0.1
grad_clip = 1.0
# The rest.
eval_interval = 200
eval_iters = 20
log_interval = 10
seed = 1337
device = "cpu"

for word in sys.argv[1:]:
    name, value = word.split("=", 1)
    globals()[name] = type(globals()[name])(value)

tokens_per_iter = gradient_accumulation_steps * batch_size * block_size
torch.manual_seed(seed)

# The text stays on the disk; torch.from_file maps it.
data = torch.from_file(text, size=os.path.getsize(text), dtype=torch.uint8)
n_train = int(len(data) * (1 - val_part))
train_data, val_data = data[:n_train], data[n_train:]
print(f"{tokens_per_iter} tokens per iteration, {len(train_data) - block_size} windows to train on")


def get_batch(split, randint=torch.randint):
    data = train_data if split == "train" else val_data
    ix = randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i:i + block_size].long() for i in ix])
    y = torch.stack([data[i + 1:i + 1 + block_size].long() for i in ix])
    return x.to(device), y.to(device)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv, self.proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(dropout))
        self.register_buffer("past", torch.ones(block_size, block_size).tril().bool(), persistent=False)

    def attention(self, x):
        B, T, C = x.shape
        q, k, v = (part.view(B, T, n_head, C // n_head).transpose(1, 2) for part in self.qkv(x).split(n_embd, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(C // n_head)
        weights = F.softmax(scores.masked_fill(~self.past[:T, :T], -math.inf), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        x = x + F.dropout(self.attention(self.ln_1(x)), dropout, self.training)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, n_embd), nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.norm, self.head = nn.LayerNorm(n_embd), nn.Linear(n_embd, 256, bias=False)
        self.apply(self.initialize)
        self.head.weight = self.tokens.weight

    def initialize(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, x, y):
        logits = self.head(self.norm(self.blocks(self.tokens(x) + self.places.weight[:x.shape[1]])))
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = {split: sum(model(*get_batch(split)).item() for _ in range(eval_iters)) / eval_iters for split in ("train", "val")}
    model.train()
    return losses


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    done = min(1.0, (it - warmup_iters) / max(1, max_iters - warmup_iters))
    return min_lr + 0.5 * (1 + math.cos(math.pi * done)) * (learning_rate - min_lr)


model = GPT().to(device)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}],
                              lr=learning_rate, betas=(0.9, 0.95))

run = dpnode.DiLoCo(model, optimizer).open()
iter_num = 0
best_val_loss = math.inf
t0 = time.time()
while True:
    lr = min(get_lr(iter_num), get_lr(max(iter_num, run.tokens // tokens_per_iter)))
    for group in optimizer.param_groups:
        group["lr"] = lr

    if iter_num % eval_interval == 0:
        losses = estimate_loss()
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}", flush=True)
        if losses["val"] < best_val_loss and iter_num > 0:
            best_val_loss = losses["val"]
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": iter_num}, checkpoint)

    for micro_step in range(gradient_accumulation_steps):
        X, Y = get_batch("train", run.randint)
        loss = model(X, Y) / gradient_accumulation_steps
        loss.backward()
        run.loss(loss * gradient_accumulation_steps)
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

    if iter_num % log_interval == 0:
        t1 = time.time()
        print(f"iter {iter_num}: loss {loss.item() * gradient_accumulation_steps:.4f}, {t1 - t0:.1f} s", flush=True)
    iter_num += 1
    if run.should_stop:
        break
run.close()
