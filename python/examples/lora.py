#!/usr/bin/env python3
"""Fine-tuning by LoRA (Hu et al. 2021): the model of one run is the frozen base of another, whose members train adapters.

    dpnode ckpt export base                                                # of the run that made the base
    DPNODE_FIRST_WEIGHTS=first.safetensors python3 lora.py base new.txt    # once: the first adapters
    dpnode run create lora.yaml --from first.safetensors                   # says how long the data are
    python3 lora.py base new.txt                                           # on each machine of the run
    dpnode ckpt export adapters
    python3 lora.py base new.txt --merge adapters --out merged             # a whole model for transformers

base is a folder in Hugging Face's layout: GPT-2, Llama or Qwen3. Every machine has it; only the adapters travel.
"""

import argparse
import math

import torch
from torch import nn
import transformers

import dpnode

TARGETS = ("c_attn", "q_proj", "v_proj")  # of GPT-2, and of Llama and Qwen3


class Adapted(nn.Module):
    """A frozen linear layer and beside it x A B, of a small rank: y = layer(x) + scale x A B. B begins with zeros."""

    def __init__(self, layer, rank, scale):
        super().__init__()
        self.layer, self.scale = layer, scale
        # The Conv1D of GPT-2 has its weight as [in][out], nn.Linear as [out][in].
        self.turned = isinstance(layer, nn.Linear)
        n_in, n_out = reversed(layer.weight.shape) if self.turned else layer.weight.shape
        self.A = nn.Parameter(torch.randn(n_in, rank) / math.sqrt(n_in))
        self.B = nn.Parameter(torch.zeros(rank, n_out))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A @ self.B)

    def merged(self):
        change = self.scale * (self.A @ self.B)
        self.layer.weight += change.T if self.turned else change
        return self.layer


def adapters_of(model):
    return [(name, module) for name, module in model.named_modules() if isinstance(module, Adapted)]


def replace(model, name, module):
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, module)


def load(folder, rank):
    """The base with adapters, of which alone the parameters have requires_grad."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).float()
    model.requires_grad_(False)
    for name, module in list(model.named_modules()):
        if name.rpartition(".")[2] in TARGETS:
            replace(model, name, Adapted(module, rank, scale=2.0))
    return model


def windows_of(path, tokenizer, length):
    """The tokens of a text in pieces of the same length: those to train on, and one of ten that is held out."""
    with open(path, encoding="utf-8") as file:
        tokens = torch.tensor(tokenizer(file.read()).input_ids)
    windows = tokens[:len(tokens) // length * length].view(-1, length)
    return windows[torch.arange(len(windows)) % 10 > 0], windows[::10]


@torch.no_grad()
def held_out_loss(model, windows, given):
    losses = [model(input_ids=part, labels=part).loss.item() for part in windows.to(given.device).split(given.batch)]
    return sum(losses) / len(losses)


def train(model, windows, held_out, given):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=given.lr)
    print(f"held-out loss before: {held_out_loss(model, held_out, given):.3f}", flush=True)
    with dpnode.DiLoCo(model, optimizer, offline=given.offline) as run:
        run.on("round", lambda number: print(f"round {number}: loss {loss.item():.3f}", flush=True))
        for tokens in run.shard(windows, batch_size=given.batch):
            tokens = tokens.to(given.device)
            loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            run.loss(loss)
            optimizer.step()
            optimizer.zero_grad()
            if run.should_stop:
                break
    print(f"held-out loss after: {held_out_loss(model, held_out, given):.3f}", flush=True)


@torch.no_grad()
def merge(model, adapters, base, out):
    dpnode.load_model(model, adapters)
    for name, adapted in adapters_of(model):
        replace(model, name, adapted.merged())
    model.save_pretrained(out)
    transformers.AutoTokenizer.from_pretrained(base).save_pretrained(out)


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("base", help="the folder of dpnode ckpt export")
    words.add_argument("text", help="a file of UTF-8")
    words.add_argument("--rank", type=int, default=8)
    words.add_argument("--lr", type=float, default=1e-3)
    words.add_argument("--batch", type=int, default=8)
    words.add_argument("--length", type=int, default=256, help="tokens of a sample; data.unit of the run")
    words.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    words.add_argument("--offline", action="store_true", help="without a node")
    words.add_argument("--merge", metavar="ADAPTERS", help="add these to the base instead of training")
    words.add_argument("--out", default="merged")
    given = words.parse_args()

    model = load(given.base, given.rank).to(given.device)
    if given.merge:
        return merge(model, given.merge, given.base, given.out)
    windows, held_out = windows_of(given.text, transformers.AutoTokenizer.from_pretrained(given.base), given.length)
    print(f"data: {{samples: {len(windows)}, unit: {given.length}}}", flush=True)
    return train(model, windows, held_out, given)


if __name__ == "__main__":
    main()
