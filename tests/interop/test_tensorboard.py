#!/usr/bin/env python3
"""Event files that `dpnode train --tensorboard` writes open in TensorBoard, with the values of --metrics, also after a resume.
test_tensorboard.py FOLDER_OF_BINARIES; says what is missing and ends with 77 where tensorboard is not installed."""

import json
import os
import subprocess
import sys
import tempfile

MANIFEST = """name: small
model: {layers: 1, width: 32, heads: 2, context: 32, vocab: 300}
train: {batch: 4, lr: 3e-3, total_tokens: 15360}
"""


def main(binaries):
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        metrics, events = os.path.join(folder, "m.jsonl"), os.path.join(folder, "tb", "run")
        for name, text in (("run.yaml", MANIFEST), ("text", "the light and the darkness over the deep waters " * 900)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        start = [os.path.join(folder, "run.yaml"), "--text", os.path.join(folder, "text")]
        for words, steps in ((start, "6"), (["--resume"], "10")):
            subprocess.run([os.path.join(binaries, "dpnode"), "train", *words, "--out", os.path.join(folder, "run"), "--steps", steps,
                            "--val-steps", "3", "--metrics", metrics, "--tensorboard", events],
                           check=True, stdout=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"}, timeout=120)
        with open(metrics, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        read = EventAccumulator(events, size_guidance={"scalars": 0})
        read.Reload()
        for tag, event, key in (("train/loss", "step", "loss"), ("train/lr", "step", "lr"), ("train/grad_norm", "step", "norm"),
                                ("val/loss", "validation", "loss"), ("val/bits_per_byte", "validation", "bits_per_byte")):
            ours = {line["step"]: line[key] for line in lines if line["event"] == event}
            theirs = {point.step: point.value for point in read.Scalars(tag)}
            assert sorted(ours) == sorted(theirs), (tag, ours, theirs)
            assert all(abs(theirs[step] - value) <= 1e-6 * abs(value) for step, value in ours.items()), tag
        assert [point.step for point in read.Scalars("train/loss")] == list(range(1, 11))
    print("tensorboard reads what was written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
