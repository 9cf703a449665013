#!/usr/bin/env python3
"""Every preset has the tensors, shapes and count of parameters that Hugging Face's transformers give its config.json, and a layer
of the widest ones the same logits. test_presets.py FOLDER_OF_BINARIES; says what is missing and ends with 77 where
transformers are not installed."""

import os
import sys
import tempfile

from transformers_kit import LIMIT, apart, class_of, engine, ready

WIDE = ("llama-1b", "gpt2-1.5b", "qwen3-0.6b")  # one layer each, a few hundred MB


def of_config(path):
    """The model of a config.json without its numbers; None where this version of transformers has no such class."""
    import torch

    theirs, words = class_of(path)
    if theirs is None:
        return None
    with torch.device("meta"):
        return theirs(theirs.config_class(**words))


def differences(ours, model):
    """Sentences about what is not the same."""
    # transformers 5 call the head of GPT-NeoX lm_head, but not in files.
    names = {"lm_head.weight": "embed_out.weight"} if "embed_out.weight" in ours["tensors"] else {}
    theirs = {names.get(name, name): list(weight.shape) for name, weight in model.named_parameters()}
    said = [f"{name}: {ours['tensors'].get(name)} here, {theirs.get(name)} there"
            for name in sorted(set(theirs) | set(ours["tensors"])) if ours["tensors"].get(name) != theirs.get(name)]
    count = sum(weight.numel() for weight in model.parameters())
    if count != ours["parameters"]:
        said.append(f"{ours['parameters']} parameters here, {count} there")
    return said


def shapes(binaries, folder):
    """How many presets differ."""
    failed = 0
    for name, ours in engine(binaries, "presets", folder).items():
        model = of_config(os.path.join(folder, f"{name}.json"))
        said = [] if model is None else differences(ours, model)
        failed += bool(said)
        print(f"{name:28} " + ("no such class in this version" if model is None else f"{ours['parameters']} parameters"), *said[:5],
              sep="\n    " if said else "")
    return failed


def logits(binaries, name, folder):
    """Whether those of one layer differ; as a share of the largest, since wide sums are large."""
    import torch

    ours = engine(binaries, name, folder)
    theirs, _ = class_of(os.path.join(folder, "config.json"))
    if theirs is None:
        print(f"{name:28} no such class in this version")
        return False
    model = theirs.from_pretrained(folder, torch_dtype=torch.float32)
    largest = max(abs(value) for row in ours["logits"] for value in row)
    off = apart(model, ours) / max(1.0, largest)
    print(f"{name:28} one layer, largest difference {off:.2e} of {largest:.1f}", "" if off <= LIMIT else f"ABOVE {LIMIT}")
    return not off <= LIMIT


def main():
    if not ready():
        return 77
    with tempfile.TemporaryDirectory() as folder:
        failed = shapes(sys.argv[1], folder)
    for name in WIDE:
        with tempfile.TemporaryDirectory() as folder:
            failed += logits(sys.argv[1], name, folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
