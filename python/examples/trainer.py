#!/usr/bin/env python3
"""Hugging Face's Trainer as a member of a run: a small GPT-2 over the bytes of a text.

    DPNODE_FIRST_WEIGHTS=first.safetensors python3 trainer.py input.txt
    dpnode run create trainer.yaml --from first.safetensors   # data: {samples: len(Windows), unit: 64}
    python3 trainer.py input.txt                              # on each machine of the run
"""

import argparse

import torch
import transformers

import dpnode


class Windows(torch.utils.data.Dataset):
    """The bytes of a text in pieces of the same length."""

    def __init__(self, path, length):
        with open(path, "rb") as file:
            self.text = torch.tensor(list(file.read()))
        self.length = length

    def __len__(self):
        return len(self.text) // self.length

    def __getitem__(self, index):
        window = self.text[index * self.length:(index + 1) * self.length]
        return {"input_ids": window, "labels": window}


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("text")
    words.add_argument("--out", default="trainer-out", help="folder of the Trainer")
    words.add_argument("--steps", type=int, default=100_000, help="at most; the end of the run ends the Trainer before")
    words.add_argument("--length", type=int, default=64)
    given = words.parse_args()

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=256, n_positions=given.length, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0))
    arguments = transformers.TrainingArguments(
        given.out, max_steps=given.steps, per_device_train_batch_size=8, learning_rate=2e-3, logging_steps=10,
        lr_scheduler_type="constant_with_warmup", warmup_steps=20, save_strategy="no", report_to=[], disable_tqdm=True)
    trainer = transformers.Trainer(model, arguments, train_dataset=Windows(given.text, given.length),
                                   callbacks=[dpnode.hf.Callback()])
    trainer.train()


if __name__ == "__main__":
    main()
