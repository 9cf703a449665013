#!/usr/bin/python3
"""The loss curve of `dpnode train` beside PyTorch's, from the same weights, batches, schedule and optimizer.

curve_torch.py [--build FOLDER] [--steps N] [--bound X] [--text FILE]: for a GPT-2 and a Llama shape, fp32 and AdamW with clipping,
runs dpnode train, takes its first checkpoint as PyTorch's weights, draws the same windows by its own implementation of compute/data/order.c,
and prints one JSON object per shape: the largest and the last difference of the losses of a step. Exit status 1 above the bound (1e-3),
77 if PyTorch cannot be imported (Debian: python3-torch). The text is this repository's documentation unless one is given.
"""
import argparse
import glob
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from bench_engine_torch import Model, torch  # noqa: E402 (ends with 77 without PyTorch)

HEAD_BYTES, ELEMENTS_AT = 388, 48  # of a checkpoint: compute/standalone/standalone_file.h
SHARD_HEAD = 32  # compute/data/shard.h
CLIP, DECAY, BETAS, EPS, RATE, FLOOR, WARM_STEPS, HELD_OUT = 1.0, 0.1, (0.9, 0.95), 1e-8, 1e-3, 0.1, 20, 0.05
SHAPES = {  # name: family, layers, width, heads, kv heads, hidden, context, vocab, rows
    "gpt2 L4 C128 T128 B8 V1024": ("gpt2", 4, 128, 4, 4, 512, 128, 1024, 8),
    "llama L4 C128 T128 B8 V1024": ("llama", 4, 128, 4, 2, 352, 128, 1024, 8),
}
MASK = (1 << 64) - 1


def mix64(value):
    """splitmix64 (Steele, Lea, Flood 2014)."""
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def window_of(seed, sample, count):
    """A Feistel network of seven rounds over the least 4^bits >= count, applied again until the result is below count."""
    bits = 1
    while (count - 1) >> 2 * bits:
        bits += 1
    half, key, value = (1 << bits) - 1, mix64(mix64(seed) ^ sample // count), sample % count
    while True:
        left, right = value >> bits, value & half
        for turn in range(7):
            left, right = right, left ^ mix64(key ^ mix64(right ^ turn << 40)) & half
        value = left << bits | right
        if value < count:
            return value


def safetensors_of(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head, body = json.loads(file.read(size)), file.read()
    found = {}
    for name, entry in head.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            flat = torch.frombuffer(bytearray(body[start:end]), dtype=torch.float32)
            found[name] = flat.reshape(entry["shape"]).clone()
    return found


def weights_of(family, layers, kept):
    """Names of Hugging Face's models to those of Model."""
    def get(name):
        return next(value for key, value in kept.items() if key == name or key.endswith("." + name))

    if family == "gpt2":
        state = {"tokens.weight": get("wte.weight"), "places.weight": get("wpe.weight"), "head.weight": get("wte.weight"),
                 "norm.weight": get("ln_f.weight"), "norm.bias": get("ln_f.bias")}
        parts = {"norm1": "ln_1", "norm2": "ln_2", "qkv": "attn.c_attn", "out": "attn.c_proj", "up": "mlp.c_fc",
                 "down": "mlp.c_proj"}
        for i in range(layers):
            for ours, theirs in parts.items():
                weight = get(f"h.{i}.{theirs}.weight")
                state[f"blocks.{i}.{ours}.weight"] = weight.T if weight.dim() == 2 else weight
                state[f"blocks.{i}.{ours}.bias"] = get(f"h.{i}.{theirs}.bias")
        return state
    state = {"tokens.weight": get("embed_tokens.weight"), "head.weight": get("lm_head.weight"),
             "norm.gain": kept["model.norm.weight"]}
    for i in range(layers):
        def of(name, i=i):
            return get(f"layers.{i}.{name}.weight")
        state.update({f"blocks.{i}.norm1.gain": of("input_layernorm"),
                      f"blocks.{i}.norm2.gain": of("post_attention_layernorm"),
                      f"blocks.{i}.qkv.weight": torch.cat([of(f"self_attn.{x}_proj") for x in "qkv"]),
                      f"blocks.{i}.out.weight": of("self_attn.o_proj"),
                      f"blocks.{i}.up.weight": torch.cat([of("mlp.gate_proj"), of("mlp.up_proj")]),
                      f"blocks.{i}.down.weight": of("mlp.down_proj")})
    return state


def train_ours(build, folder, shape, steps, text):
    """Losses of dpnode train, and its weights before the first step."""
    family, layers, width, heads, kv_heads, hidden, context, vocab, rows = shape
    model = {"arch": family, "layers": layers, "width": width, "heads": heads, "kv_heads": kv_heads, "hidden": hidden,
             "context": context, "vocab": vocab}
    train = {"batch": rows, "lr": RATE, "lr_floor": FLOOR, "warmup_tokens": WARM_STEPS * rows * context, "schedule": "cosine",
             "total_tokens": steps * rows * context, "beta1": BETAS[0], "beta2": BETAS[1], "decay": DECAY, "clip": CLIP}
    path, out = os.path.join(folder, "run.yaml"), os.path.join(folder, "out")
    with open(path, "w", encoding="utf-8") as file:
        for name, section in (("model", model), ("train", train), ("data", {"val": HELD_OUT})):
            file.write(name + ": {" + ", ".join(f"{key}: {value}" for key, value in section.items()) + "}\n")
        file.write("name: curve\n")
    done = subprocess.run([os.path.join(build, "dpnode"), "train", path, "--text", text, "--out", out, "--json", "--steps",
                           str(steps), "--save-seconds", "0"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    losses = [event["loss"] for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "step"]
    with open(sorted(glob.glob(os.path.join(out, "step-*.ckpt")))[0], "rb") as file:
        kept = file.read()
    elements = struct.unpack_from("<Q", kept, ELEMENTS_AT)[0]
    state = os.path.join(folder, "state")
    with open(state, "wb") as file:  # compute/model/state.h
        file.write(struct.pack("<4sHHQQQ", b"DPS1", 1, 0, elements, 0, 0) + kept[HEAD_BYTES:HEAD_BYTES + 4 * elements])
    subprocess.run([os.path.join(build, "dpnode-worker"), "--export", os.path.join(out, "manifest.bin"), state,
                    os.path.join(out, "data/tokenizer.json"), os.path.join(folder, "start")], check=True)
    with open(os.path.join(out, "data/tokens-00000.bin"), "rb") as file:
        tokens = torch.frombuffer(bytearray(file.read()[SHARD_HEAD:]), dtype=torch.int16).long() & 0xFFFF
    return losses, safetensors_of(os.path.join(folder, "start/model.safetensors")), tokens


def train_torch(shape, steps, kept, tokens):
    family, layers, context, rows = shape[0], shape[1], shape[6], shape[8]
    model = Model(*shape[:8])
    missing, unknown = model.load_state_dict(weights_of(family, layers, kept), strict=False)
    assert not unknown and all(name.split(".")[-1] in ("future", "cosines", "sines") for name in missing), (missing, unknown)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    adamw = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}],
                              lr=RATE, betas=BETAS, eps=EPS)
    trained = len(tokens) - int(len(tokens) * round(HELD_OUT * 1000) // 1000)
    count, losses = (trained - 1) // context, []
    for step in range(steps):
        starts = [context * window_of(1, step * rows + i, count) for i in range(rows)]
        batch = torch.stack([tokens[at:at + context + 1] for at in starts])
        if step < WARM_STEPS:
            rate = RATE * (step * rows * context + 1) / (WARM_STEPS * rows * context)
        else:
            done = (step - WARM_STEPS) / (steps - WARM_STEPS)
            rate = RATE * (FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * done)))
        for group in adamw.param_groups:
            group["lr"] = rate
        adamw.zero_grad(set_to_none=True)
        loss = model(batch[:, :-1], batch[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        adamw.step()
        losses.append(float(loss))
    return losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build", "release"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--bound", type=float, default=1e-3)
    parser.add_argument("--text")
    args = parser.parse_args()
    torch.set_num_threads(1)
    worst = 0.0
    for name, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            text = args.text or os.path.join(folder, "text")
            if not args.text:
                with open(text, "wb") as file:
                    for path in sorted(glob.glob(os.path.join(HERE, "..", "docs", "*.md"))):
                        with open(path, "rb") as source:
                            file.write(source.read())
            ours, kept, tokens = train_ours(args.build, folder, shape, args.steps, text)
        theirs = train_torch(shape, args.steps, kept, tokens)
        apart = [abs(a - b) for a, b in zip(ours, theirs)]
        worst = max([worst, *apart])
        print(json.dumps({"shape": name, "steps": len(ours), "torch": torch.__version__, "first": ours[0],
                          "last": ours[-1], "last_torch": theirs[-1], "apart_first": apart[0], "apart_most": max(apart),
                          "apart_last": apart[-1]}), flush=True)
    return 1 if not worst <= args.bound else 0


if __name__ == "__main__":
    sys.exit(main())
