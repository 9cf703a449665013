#!/usr/bin/env python3
"""Models that we write give the same logits in Hugging Face's transformers. test_transformers.py FOLDER_OF_BINARIES; says
what is missing and ends with 77 where transformers are not installed."""

import json
import os
import subprocess
import sys
import tempfile

KINDS = ("gpt2", "gpt2-untied", "llama", "llama-gqa", "llama-tied", "qwen3")
LIMIT = 1e-4


def difference(binaries, kind, folder):
    """The largest difference of a logit, or None where this version of transformers has no such class."""
    import torch
    import transformers

    done = subprocess.run([os.path.join(binaries, "engine_logits"), kind, folder], capture_output=True, check=True)
    ours = json.loads(done.stdout)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        name = json.load(file)["architectures"][0]
    if not hasattr(transformers, name):
        return None
    model, about = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    unread = about["missing_keys"] or about["unexpected_keys"] or about["mismatched_keys"]
    if unread:
        raise SystemExit(f"{kind}: weights do not match: {about}")
    with torch.no_grad():
        theirs = model.eval()(torch.tensor([ours["tokens"]])).logits[0]
    return float((theirs - torch.tensor(ours["logits"])).abs().max())


def main():
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    transformers.logging.set_verbosity_error()
    failed = 0
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            off = difference(sys.argv[1], kind, folder)
        good = off is None or off <= LIMIT
        failed += not good
        print(f"{kind:12} " + ("no such class in this version" if off is None else f"largest difference {off:.2e}"),
              "" if good else f"ABOVE {LIMIT}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
