#!/usr/bin/env python3
"""Models that we write give the same logits in Hugging Face's transformers, and models that it writes give the same in our
engine, from one file or many, in fp32, bf16 and fp16. test_transformers.py FOLDER_OF_BINARIES; says what is missing and ends
with 77 where transformers are not installed."""

import os
import sys
import tempfile

from transformers_kit import LIMIT, apart, class_of, engine, ready

KINDS = ("gpt2", "gpt2-untied", "llama", "llama-gqa", "llama-tied", "llama3", "qwen2", "smollm3", "mistral", "phi3", "olmo2", "gemma2",
         "gemma3", "neox", "phi4", "qwen3", "qwen3-untied")
SIZES = {"vocab_size": 271, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 32}
# Class of their configuration, and what of it is not as in SIZES.
THEIRS = {
    "gpt2": ("GPT2Config", {"hidden_size": 48}),
    "llama": ("LlamaConfig", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2}),
    "llama-tied": ("LlamaConfig", {"hidden_size": 32, "intermediate_size": 70, "tie_word_embeddings": True}),
    "llama3": ("LlamaConfig", {"hidden_size": 64, "intermediate_size": 70, "rope_theta": 10000.0, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}}),
    "llama-linear": ("LlamaConfig", {"hidden_size": 48, "intermediate_size": 70, "rope_theta": 10000.0,
                                     "rope_scaling": {"rope_type": "linear", "factor": 2.5}}),
    "smollm3": ("SmolLM3Config", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2, "num_hidden_layers": 5,
                                  "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}),
    "mistral": ("MistralConfig", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2, "sliding_window": 5}),
    "phi3": ("Phi3Config", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2, "pad_token_id": 0,
                            "sliding_window": 7}),
    "olmo2": ("Olmo2Config", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2}),
    "gemma2": ("Gemma2Config", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2, "head_dim": 16,
                                "sliding_window": 5, "query_pre_attn_scalar": 24, "num_hidden_layers": 3}),
    "gemma3": ("Gemma3TextConfig", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 1, "head_dim": 16,
                                    "sliding_window": 5, "query_pre_attn_scalar": 16, "num_hidden_layers": 7}),
    "neox": ("GPTNeoXConfig", {"hidden_size": 64, "intermediate_size": 70}),
    "phi4": ("Phi3Config", {"hidden_size": 64, "intermediate_size": 70, "num_key_value_heads": 2, "pad_token_id": 0,
                            "partial_rotary_factor": 0.75}),
    "qwen2": ("Qwen2Config", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2}),
    "qwen3": ("Qwen3Config", {"hidden_size": 48, "intermediate_size": 70, "num_key_value_heads": 2, "head_dim": 16,
                              "tie_word_embeddings": True}),
    "qwen3-untied": ("Qwen3Config", {"hidden_size": 40, "intermediate_size": 70, "num_key_value_heads": 1, "head_dim": 8}),
}


def of_ours(binaries, kind, folder):
    """From a folder that we wrote; None where this version of transformers has no such class."""
    import torch

    ours = engine(binaries, kind, folder)
    theirs, _ = class_of(os.path.join(folder, "config.json"))
    if theirs is None:
        return None
    model, about = theirs.from_pretrained(folder, output_loading_info=True, torch_dtype=torch.float32)
    unread = about["missing_keys"] or about["unexpected_keys"] or about["mismatched_keys"]
    if unread:
        raise SystemExit(f"{kind}: weights do not match: {about}")
    return apart(model, ours)


def of_theirs(binaries, kind, dtype, folder):
    """From a folder that they wrote, in several files where it is fp32."""
    import torch
    import transformers

    name, more = THEIRS[kind]
    if not hasattr(transformers, name):
        return None
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, name)(**{**SIZES, **more}))
    with torch.no_grad():
        for weight in model.parameters():  # Far from a fresh model's, so that nothing hides.
            weight.add_(0.15 * (2 * torch.rand_like(weight) - 1))
    model.to(dtype).save_pretrained(folder, max_shard_size="60KB" if dtype == torch.float32 else "1GB")
    files = sum(name.endswith(".safetensors") for name in os.listdir(folder))
    if (files > 1) != (dtype == torch.float32):
        raise SystemExit(f"{kind}: {files} files of weights")
    # Read again: to() has rounded the angles of the rotary embedding too, which no file holds.
    model = type(model).from_pretrained(folder, torch_dtype=torch.float32)
    return apart(model, engine(binaries, "import", folder))


def cases(binaries):
    """The comparisons, each with the call that does it."""
    import torch

    for kind in KINDS:
        yield f"ours {kind}", lambda folder, kind=kind: of_ours(binaries, kind, folder)
    for kind in THEIRS:
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            name = str(dtype).split(".")[1]
            yield f"theirs {kind} {name}", lambda folder, kind=kind, dtype=dtype: of_theirs(binaries, kind, dtype, folder)


def main():
    if not ready():
        return 77
    failed = 0
    for name, compare in cases(sys.argv[1]):
        with tempfile.TemporaryDirectory() as folder:
            off = compare(folder)
        good = off is None or off <= LIMIT
        failed += not good
        print(f"{name:28} " + ("no such class in this version" if off is None else f"largest difference {off:.2e}"),
              "" if good else f"ABOVE {LIMIT}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
