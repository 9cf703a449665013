"""Shared by the comparisons with Hugging Face's transformers: our engine's answers, their class for a folder, and the start."""

import json
import os
import subprocess

LIMIT = 1e-4


def ready():
    """Whether they are installed; says what is missing, and makes them quiet."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as missing:
        print(f"skipped: {missing}")
        return False
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return True


def engine(binaries, *arguments):
    """The engine's tokens and logits."""
    done = subprocess.run([os.path.join(binaries, "engine_logits"), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"engine_logits {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def class_of(path):
    """Their class for a config.json and its words; None instead of the class where this version has no such one."""
    import transformers

    with open(path, encoding="utf-8") as file:
        words = json.load(file)
    return getattr(transformers, words["architectures"][0], None), words


def apart(model, ours):
    """The largest difference of a logit."""
    import torch

    with torch.no_grad():
        theirs = model.eval()(torch.tensor([ours["tokens"]])).logits[0]
    return float((theirs - torch.tensor(ours["logits"])).abs().max())
