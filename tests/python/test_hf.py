#!/usr/bin/env python3
"""Hugging Face's Trainer as a member of a run."""

import os
import socket
import tempfile

import kit
import dpnode
from rank_kit import Group

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", WANDB_DISABLED="true", CUDA_VISIBLE_DEVICES="")
if kit.has("torch") and kit.has("transformers"):
    import torch
    import transformers


class Numbers:
    def __init__(self, length):
        self.length = length
        self.taken = []

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.taken.append(index)
        return {"x": torch.tensor([float(index % 3)])}


def network():
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, x):
            return {"loss": (self.layer(x) ** 2).mean()}

    return Network()


class Trainer(kit.Test):
    def trainer(self, length=100, callback=None, eval_dataset=False, **options):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        arguments = transformers.TrainingArguments(
            folder.name, **{"max_steps": 6, "per_device_train_batch_size": 4, "logging_steps": 2, "learning_rate": 1e-3,
                            "report_to": [], "save_strategy": "no", "disable_tqdm": True, **options})
        self.made = transformers.Trainer(network(), arguments, train_dataset=Numbers(length),
                                         eval_dataset=Numbers(4) if eval_dataset else None,
                                         callbacks=[callback or dpnode.hf.Callback(dir=self.dir, timeout=5)])
        return self.made

    def test_a_trainer_takes_the_runs_weights_samples_and_rounds(self):
        worker = self.worker(weights=[0.5, 0.25], samples=100)

        class Asks(transformers.TrainerCallback):
            def on_step_begin(self, args, state, control, **kwargs):
                if state.global_step == 3:
                    worker.due("copy")

        trainer = self.trainer(gradient_accumulation_steps=2)
        trainer.add_callback(Asks())
        trainer.train()
        self.assertEqual(trainer.train_dataset.taken[:48], [(7 * i) % 100 for i in range(48)])
        copy = next(one for one in worker.seen if one[0] == "copy")
        self.assertEqual(copy[1:3], (4, 32))
        self.assertEqual(worker.header()[:2], (6, 48))
        self.assertGreater(worker.header()[2], 0) # The logged loss.

    def test_epochs_of_leased_samples_have_the_length_of_the_data(self):
        worker = self.worker(samples=10)
        trainer = self.trainer(length=10, max_steps=-1, num_train_epochs=2)
        trainer.train()
        self.assertEqual(len(trainer.train_dataset.taken), 20)
        self.assertEqual(worker.header()[:2], (6, 20)) # 4 + 4 + 2, twice

    def test_an_epoch_without_its_incomplete_batch_draws_no_samples_for_it(self):
        worker = self.worker(samples=10)
        self.trainer(length=10, max_steps=-1, num_train_epochs=2, dataloader_drop_last=True).train()
        self.assertEqual((worker.header()[:2], worker.next_index), ((4, 16), 256))
        self.assertEqual(len(self.made.train_dataset.taken), 16)
        self.assertEqual(self.made.train_dataset.taken[8], 56 % 10)

    def test_a_run_that_ends_stops_the_trainer(self):
        worker = self.worker()

        class Ends(transformers.TrainerCallback):
            def on_step_end(self, args, state, control, **kwargs):
                if state.global_step == 2:
                    worker.over()

        trainer = self.trainer()
        trainer.add_callback(Ends())
        trainer.train()
        self.assertEqual(trainer.state.global_step, 3)

    def test_data_of_another_length_are_refused_unless_the_trainer_keeps_its_order(self):
        worker = self.worker(samples=99)
        self.assertIn("100 items", str(self.fails(dpnode.Mismatch, self.trainer().train)))
        callback = dpnode.hf.Callback(leases=False, dir=self.dir, timeout=5)
        self.trainer(callback=callback).train()
        self.assertEqual(worker.header()[:2], (6, 24))


    def test_a_training_that_is_resumed_goes_on_with_the_next_samples_of_the_run(self):
        worker = self.worker(samples=100)
        trainer = self.trainer(max_steps=3, save_strategy="steps", save_steps=3)
        trainer.train()
        worker.next_index = 12  # What was drawn ahead is drawn again.
        trainer.args.max_steps = 6
        del trainer.train_dataset.taken[:]
        trainer.train(resume_from_checkpoint=True)
        self.assertEqual(trainer.state.global_step, 6)
        self.assertEqual(trainer.train_dataset.taken[:12], [(7 * i) % 100 for i in range(12, 24)])
        self.assertEqual(worker.header()[:2], (3, 12))

    def test_a_smaller_batch_size_that_the_trainer_finds_is_counted(self):
        worker = self.worker(samples=100)
        trainer = self.trainer(per_device_train_batch_size=8, auto_find_batch_size=True)
        forward = trainer.model.forward

        def narrow(x):
            if len(x) > 4:
                raise RuntimeError("CUDA out of memory.")
            return forward(x)

        trainer.model.forward = narrow
        trainer.train()
        self.assertEqual(worker.header()[:2], (6, 24))

    def test_a_training_that_raised_can_begin_again(self):
        worker = self.worker()

        class Raises(transformers.TrainerCallback):
            times = 0

            def on_step_begin(self, args, state, control, **kwargs):
                self.times += 1
                if self.times == 3:
                    raise ZeroDivisionError

        callback = dpnode.hf.Callback(dir=self.dir, timeout=5)
        trainer = self.trainer(callback=callback)
        trainer.add_callback(Raises())
        self.assertRaises(ZeroDivisionError, trainer.train)
        held = callback.run # As a notebook does, which keeps what an exception has seen.
        given = [one for one in worker.seen if one[0] == "copy"]
        trainer.train()
        self.assertIsNot(callback.run, held)
        self.assertEqual((given, worker.header()[0]), ([], 6))

    def test_the_weights_of_the_best_checkpoint_are_not_handed_in(self):
        worker = self.worker(samples=100)
        trainer = self.trainer(load_best_model_at_end=True, eval_strategy="steps", save_strategy="steps", eval_steps=2, save_steps=2,
                               label_names=["x"], eval_dataset=True)
        trainer.train()
        self.assertEqual(worker.header()[0], 6)
        self.assertEqual([one for one in worker.seen if one[0] == "copy"], [])
        self.trainer().train()
        self.assertEqual([one[:2] for one in worker.seen if one[0] == "copy"], [("copy", 6)])


class Ranks(kit.Test):
    def ranks(self, length, **options):
        """What each of two ranks of a Trainer has taken, and its weights."""
        with socket.socket() as some:
            some.bind(("127.0.0.1", 0))
            port = some.getsockname()[1]

        def body(rank):
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
                              MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            torch.set_num_threads(1)
            arguments = transformers.TrainingArguments(
                os.path.join(self.dir, "out"), per_device_train_batch_size=4, logging_steps=2, learning_rate=1e-3, report_to=[],
                save_strategy="no", disable_tqdm=True, use_cpu=True, ddp_backend="gloo", **options)
            trainer = transformers.Trainer(network(), arguments, train_dataset=Numbers(length),
                                           callbacks=[dpnode.hf.Callback(dir=self.dir, timeout=20)])
            trainer.train()
            yield trainer.train_dataset.taken, [tensor.tolist() for tensor in trainer.model.parameters()]

        zero, one = values = Group(self, 2, body).turn()
        for value in values:
            self.assertIsInstance(value, tuple, value)
        self.assertEqual(zero[1], one[1])
        return zero[0], one[0]

    def test_the_ranks_of_a_trainer_are_one_member_with_samples_of_their_own(self):
        worker = self.worker(weights=[0.5, 0.25], samples=100)
        zero, one = self.ranks(100, max_steps=6, gradient_accumulation_steps=2)
        self.assertEqual(sorted(zero[:48] + one[:48]), sorted((7 * i) % 100 for i in range(96)))
        self.assertEqual((worker.seen[-1][:3], worker.connections), (("copy", 6, 96), 1))
        self.assertGreater(worker.seen[-1][3], 0)

    def test_epochs_of_ranks_have_as_many_samples_in_each(self):
        worker = self.worker(weights=[0.5, 0.25], samples=11)
        zero, one = self.ranks(11, max_steps=-1, num_train_epochs=2)
        self.assertEqual((len(zero), len(one)), (10, 10)) # 4 + 1, twice
        self.assertEqual(worker.seen[-1][:3], ("copy", 4, 20))


if __name__ == "__main__":
    kit.main(needs=["torch", "transformers"])
