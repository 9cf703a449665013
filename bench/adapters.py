#!/usr/bin/env python3
"""A run of adapters at the shape of a published model, with several members on this machine: memory of each trainer, bytes of a round.

    python3 bench/adapters.py --binaries build/release [--members 3] [--base bf16] [--rank 8] [--context 256] [--batch 4] [--rounds 2] [--keep 64]
                              [--preset qwen3-0.6b] [--folder FOLDER] [--json]

The weights are random ones of the preset's shape in bf16, which a folder of Hugging Face's would have; the text is the documentation.
Prints for each member the largest resident memory of its trainer, base included (VmHWM: shared pages count whole), and its
proportional part (Pss: of pages that several processes share, its share); the bytes of the base; and of each round after the first
the bytes of an update, and these for each adapter parameter."""
import argparse
import array
import json
import os
import random
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))

from daemons import Node, children_of, wait_for  # noqa: E402

# Shapes as transformers name them: width, hidden, layers, heads, heads of k and v, their width, vocabulary.
SHAPES = {"qwen3-0.6b": (1024, 3072, 28, 16, 8, 128, 151936), "qwen3-tiny": (128, 384, 4, 4, 2, 32, 1024)}
PATTERN = 1_000_003  # values that are drawn; a tensor repeats them
MANIFEST = """name: adapters
text: {text}
model: {{from: {weights}, context: {context}, adapt: {{rank: {rank}, base: {base}}}}}
train: {{batch: {batch}, lr: 2e-4, precision: bf16, decay: 0, warmup_tokens: 1, total_tokens: 1000000000}}
round: {{time: {seconds}, steps_max: {steps}, codec_keep: {keep}}}
vote: {{uptime: 0}}
"""


def tensors_of(shape):
    """Names and shapes of Qwen3ForCausalLM with a tied head."""
    width, hidden, layers, heads, kv, head, vocab = shape
    found = {"model.embed_tokens.weight": (vocab, width), "model.norm.weight": (width,)}
    for i in range(layers):
        front = f"model.layers.{i}."
        for name, dims in (("input_layernorm", (width,)), ("post_attention_layernorm", (width,)), ("self_attn.q_norm", (head,)),
                           ("self_attn.k_norm", (head,)), ("self_attn.q_proj", (heads * head, width)),
                           ("self_attn.k_proj", (kv * head, width)), ("self_attn.v_proj", (kv * head, width)),
                           ("self_attn.o_proj", (width, heads * head)), ("mlp.gate_proj", (hidden, width)),
                           ("mlp.up_proj", (hidden, width)), ("mlp.down_proj", (width, hidden))):
            found[front + name + ".weight"] = dims
    return found


def write_weights(folder, shape):
    width, hidden, layers, heads, kv, head, vocab = shape
    chance = random.Random(1)
    floats = array.array("f", (chance.gauss(0, 0.02) for _ in range(PATTERN)))
    halves = array.array("H", (bits >> 16 for bits in array.array("I", floats.tobytes()))).tobytes()
    ones = array.array("H", [0x3F80]).tobytes()
    header, offset = {}, 0
    tensors = tensors_of(shape)
    for name, dims in tensors.items():
        size = 2 * dims[0] * (dims[1] if len(dims) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": list(dims), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, about in header.items():
            left = about["data_offsets"][1] - about["data_offsets"][0]
            piece = ones * (left // 2) if len(tensors[name]) == 1 else halves
            while left > 0:
                file.write(piece[:left])
                left -= min(left, len(piece))
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": width, "intermediate_size": hidden,
                   "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": head,
                   "vocab_size": vocab, "max_position_embeddings": 16384, "rms_norm_eps": 1e-6, "rope_theta": 1000000,
                   "tie_word_embeddings": True, "hidden_act": "silu", "attention_bias": False}, file)
    shutil.copy(os.path.join(HERE, "..", "tests", "golden", "tokenizer_qwen.json"), os.path.join(folder, "tokenizer.json"))


def memory(node):
    """Bytes of a node's trainer: the most that was resident, and its proportional part now."""
    pid = node.run().get("trainer_pid") or children_of(node.process.pid)[0]
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        most = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        part = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return most * 1024, part * 1024


def measure(options, folder):
    weights, text, manifest = (os.path.join(folder, name) for name in ("weights", "text", "run.yaml"))
    write_weights(weights, SHAPES[options.preset])
    with open(text, "w", encoding="utf-8") as file:
        for name in ("ARCHITECTURE", "PROTOCOL", "FORMATS", "RELIABILITY"):
            with open(os.path.join(HERE, "..", "docs", name + ".md"), encoding="utf-8") as part:
                file.write(part.read())
    with open(manifest, "w", encoding="utf-8") as file:
        file.write(MANIFEST.format(text=text, weights=weights, context=options.context, rank=options.rank, base=options.base,
                                   batch=options.batch, seconds=options.seconds, steps=options.steps, keep=options.keep))
    nodes = [Node(options.binaries, folder, f"n{i + 1}") for i in range(options.members)]
    try:
        token = nodes[0].start().create(manifest, timeout=options.patience)["invite"]
        shutil.rmtree(weights)  # Only the founder's store has the base.
        for node in nodes[1:]:
            node.start().ask("join", "-", stdin=token, timeout=options.patience)
        for node in nodes:
            wait_for(lambda node=node: node.run().get("counted", 0) >= options.rounds, options.patience, f"{node.name} is counted")
        base = next(item["bytes"] for item in nodes[0].ask("data")["data"] if item["kind"] == "base")
        rounds = [line for line in nodes[0].lines("rounds") if line.get("wire_bytes_per_copy")]
        return {"base_bytes": base, "elements": nodes[0].run()["elements"], "loss": nodes[0].run().get("loss"),
                "members": [dict(zip(("most", "part"), memory(node))) for node in nodes],
                "update_bytes": [line["wire_bytes_per_copy"] for line in rounds]}
    finally:
        for node in nodes:
            if node.process is not None:
                node.signal_all(9)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default="build/release")
    parser.add_argument("--preset", choices=SHAPES, default="qwen3-0.6b")
    parser.add_argument("--base", choices=("bf16", "int8", "nf4"), default="bf16")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--json", action="store_true")
    for name, standard in (("members", 3), ("rank", 8), ("context", 256), ("batch", 4), ("rounds", 2), ("steps", 2), ("seconds", 3600), ("keep", 64),
                           ("patience", 3600)):
        parser.add_argument(f"--{name}", type=int, default=standard)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = measure(options, folder)
    found["options"] = vars(options)
    if options.json:
        print(json.dumps(found))
        return
    mib = 1 << 20
    print(f"{options.preset}, {options.base}, rank {options.rank}: base {found['base_bytes'] / mib:.0f} MiB, "
          f"{found['elements']} elements of adapters")
    for index, member in enumerate(found["members"]):
        print(f"member {index + 1}: trainer {member['most'] / mib:.0f} MiB at most, {member['part'] / mib:.0f} MiB in proportion")
    for size in found["update_bytes"]:
        print(f"update: {size} bytes, {size / found['elements']:.4f} for each element")


if __name__ == "__main__":
    main()
