#!/usr/bin/env python3
"""Adapters beside Hugging Face's peft: the same losses on the same batches, an export that peft opens, and a merged model that
computes the same as base and adapter in peft. test_peft.py FOLDER_OF_BINARIES [steps]; says what is missing and ends with 77
where torch, transformers or peft are not installed."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

from transformers_kit import class_of, ready

STEPS = 200
CONTEXT = 32
LOSS_LIMIT = 0.01  # of peft's loss, for every step
LOGIT_LIMIT = 2e-3
TEXT = ("In the beginning God created the heaven and the earth. And the earth was without form, and void; and darkness was "
        "upon the face of the deep. And the Spirit of God moved upon the face of the waters. And God said, Let there be "
        "light: and there was light. And God saw the light, that it was good: and God divided the light from the darkness. "
        "And God called the light Day, and the darkness he called Night. And the evening and the morning were the first day.")
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}
# Class of the configuration, what of it is not as in SIZES, and the lines of model.adapt.
CASES = {
    "qwen3": ("Qwen3Config", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2, "head_dim": 16,
                              "tie_word_embeddings": True}, "rank: 4, alpha: 8"),
    "llama": ("LlamaConfig", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2},
              "rank: 6, alpha: 3, targets: [q_proj, v_proj, down_proj]"),
    "gpt2": ("GPT2Config", {"n_embd": 48, "max_position_embeddings": 32}, "rank: 3, alpha: 4.5"),
}


def tool(binaries, *arguments):
    done = subprocess.run([os.path.join(binaries, "dpnode"), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"dpnode {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout


def make_base(kind, folder, tokenizer):
    """A model of theirs with weights far from a fresh model's."""
    import torch
    import transformers

    name, more, _ = CASES[kind]
    if not hasattr(transformers, name):
        return False
    words = json.load(open(tokenizer, encoding="utf-8"))
    size = len(words["model"]["vocab"]) + len(words["added_tokens"])
    more = {**SIZES, **more, "vocab_size": size, "bos_token_id": None, "eos_token_id": None}
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, name)(**more))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.05 * (2 * torch.rand_like(weight) - 1))
    model.save_pretrained(folder)
    shutil.copy(tokenizer, os.path.join(folder, "tokenizer.json"))
    return True


def manifest(work, kind, base, batch):
    path = os.path.join(work, f"{kind}-{base}-{batch}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"name: adapters\ntext: text.txt\n"
                   f"model: {{from: {kind}, context: {CONTEXT}, adapt: {{{CASES[kind][2]}, base: {base}}}}}\n"
                   f"data: {{val: 0}}\n"
                   f"train: {{batch: {batch}, lr: 5e-3, schedule: constant, warmup_tokens: 1, decay: 0, clip: 0, "
                   f"spike: 0, total_tokens: 1000000000}}\n")
    return path


def windows(folder):
    """The samples of a pass, as the trainer cuts them from its shard."""
    with open(os.path.join(folder, "data", "tokens-00000.bin"), "rb") as file:
        data = file.read()
    tokens, = struct.unpack_from("<Q", data, 16)
    ids = struct.unpack_from(f"<{tokens}H", data, 32)
    return [ids[i * CONTEXT:i * CONTEXT + CONTEXT + 1] for i in range((tokens - 1) // CONTEXT)]


def losses_of_ours(binaries, work, kind, base, batch, steps):
    """The loss of each step, the adapters before the first step, and those after the last."""
    path = manifest(work, kind, base, batch)
    folder = os.path.join(work, f"{kind}-{base}-run")
    first = os.path.join(work, f"{kind}-{base}-first")
    last = os.path.join(work, f"{kind}-{base}-last")
    tool(binaries, "train", path, "--out", folder, "--steps", "1", "--json")
    os.rename(os.path.join(folder, "step-000000000001.ckpt"), os.path.join(work, "kept"))
    tool(binaries, "ckpt", "export", first, "--from", folder)
    lines = tool(binaries, "train", "--resume", "--out", folder, "--steps", str(steps), "--json").splitlines()
    told = [json.loads(line) for line in lines if line.startswith("{")]
    tool(binaries, "ckpt", "export", last, "--from", folder)
    tool(binaries, "ckpt", "export", last + "-merged", "--from", folder, "--merged")
    return [event["loss"] for event in told if event.get("event") == "step"], first, last


def check_logits(base, adapter, merged, sample):
    """What peft computes with the base and the adapter, and transformers with the merged model."""
    import peft
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    model = peft.PeftModel.from_pretrained(model, adapter).eval()
    theirs, _ = class_of(os.path.join(merged, "config.json"))
    ids = torch.tensor([sample[:CONTEXT]])
    with torch.no_grad():
        return float((model(ids).logits - theirs.from_pretrained(merged).eval()(ids).logits).abs().max())


def losses_of_theirs(base, adapter, samples, steps):
    import peft
    import torch
    import transformers

    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    model = peft.PeftModel.from_pretrained(model, adapter, is_trainable=True)
    model.eval()  # Their GPT-2 has dropout.
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=5e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0)
    ids = torch.tensor([sample[:CONTEXT] for sample in samples])
    wanted = torch.tensor([sample[1:] for sample in samples])
    losses = []
    for _ in range(steps):
        logits = model(ids).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def compare(binaries, work, kind, steps):
    base = os.path.join(work, kind)
    probe = os.path.join(work, f"{kind}-probe")
    tool(binaries, "train", manifest(work, kind, "fp32", 1), "--out", probe, "--steps", "1")
    samples = windows(probe)
    # Every step sees every window, so their order does not matter.
    ours, first, last = losses_of_ours(binaries, work, kind, "fp32", len(samples), steps)
    theirs = losses_of_theirs(base, first, samples, len(ours))
    worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
    logits = check_logits(base, last, last + "-merged", samples[0])
    print(f"{kind}: {len(ours)} steps, loss {ours[0]:.4f} to {ours[-1]:.4f}, beside peft's {theirs[-1]:.4f}, "
          f"at most {worst:.1e} of it apart; merged logits {logits:.1e} apart")
    if len(ours) != steps or not worst <= LOSS_LIMIT or not logits <= LOGIT_LIMIT or not ours[-1] < ours[0]:
        raise SystemExit(f"{kind}: too far apart")


def main():
    if not ready():
        return 77
    try:
        import peft  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    binaries = sys.argv[1]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS
    tokenizer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tokenizer_qwen.json")
    with tempfile.TemporaryDirectory() as work:
        with open(os.path.join(work, "text.txt"), "w", encoding="utf-8") as file:
            file.write(TEXT)
        for kind in CASES:
            if make_base(kind, os.path.join(work, kind), tokenizer):
                compare(binaries, work, kind, steps)
            else:
                print(f"{kind}: these transformers have no such class")
    return 0


if __name__ == "__main__":
    sys.exit(main())
