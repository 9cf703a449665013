#!/usr/bin/env python3
"""A training loop in PyTorch as a member of a run: hooks, counts, losses, data, and what goes wrong."""

import contextlib
import gc
import io
import os
import pickle
import time
import unittest.mock
import warnings

import kit
import dpnode

if kit.has("torch"):
    import torch
    from torch import nn


class Pairs:
    """A data set of 100 items; each is its own index."""

    def __init__(self, length=100):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.tensor([float(index)])


class DiLoCoTest(kit.Test):
    def setUp(self):
        super().setUp()
        self.model = nn.Linear(1, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)

    def run_of(self, *arguments, **options):
        run = dpnode.DiLoCo(*(arguments or (self.model, self.optimizer)), **{"dir": self.dir, "timeout": 5, **options})
        self.addCleanup(run.close)
        return run

    def train(self, batch):
        loss = self.model(batch).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


class Loop(DiLoCoTest):
    def test_the_loop_of_the_guide_trains_the_run(self):
        worker = self.worker(weights=[1, 2], unit=3, tokens_total=500)
        seen = []
        with self.run_of() as run:
            self.assertEqual((self.model.bias.item(), self.model.weight.item()), (1, 2))
            self.assertEqual((run.unit, run.tokens_total, run.should_stop), (3, 500, False))
            for batch in run.shard(Pairs(), batch_size=4):
                loss = self.train(batch)
                run.loss(loss)
                seen.append(batch.flatten().tolist())
                if len(seen) == 5:
                    worker.due("copy")
                if len(seen) == 6:
                    worker.now(9, 500) # all that the run was planned for
                if run.should_stop:
                    break
        self.assertEqual(len(seen), 6)
        self.assertEqual(seen[0] + seen[1], [0, 7, 14, 21, 28, 35, 42, 49])
        copy = next(one for one in worker.seen if one[0] == "copy")
        self.assertEqual(copy[1:3], (6, 24)) # The word was set after the fifth look.
        # Each step moves the bias by -0.5, and the weight by -0.5 * mean(batch).
        self.assertEqual(worker.weights[0], 1 - 6 * 0.5)

    def test_gradient_accumulation_counts_all_its_samples_and_the_mean_of_its_losses(self):
        worker = self.worker()
        with self.run_of() as run:
            batches = iter(run.shard(Pairs(), batch_size=2))
            for value in (1.0, 2.0, 6.0):
                self.model(next(batches)).mean().backward()
                run.loss(value)
            worker.due("copy")
            self.optimizer.step()
        self.assertIn(("copy", 1, 6, 3.0), worker.seen)

    def test_rounds_come_in_at_the_end_of_a_step(self):
        worker = self.worker()
        rounds = []
        with self.run_of(samples_per_step=1) as run:
            run.on("round", rounds.append)
            self.assertEqual(run.rate, 0.0)
            worker.now(2, 64, rate=0.25)
            worker.due("add", [0.25, 100])
            bias = self.model.bias.item()
            self.train(torch.zeros(1, 1))
            self.assertEqual((rounds, run.round, run.tokens, run.rate), ([2], 2, 64, 0.25))
            self.assertEqual(self.model.bias.item(), bias - 0.5 + 0.25)

    def test_an_optimizer_with_masters_of_its_own_hears_when_to_make_them_anew(self):
        worker = self.worker(weights=[1, 2])
        masters = [parameter.detach().clone() for parameter in self.model.parameters()]
        run = self.run_of(self.model)

        def refresh(_):
            for master, parameter in zip(masters, self.model.parameters()):
                master.copy_(parameter.detach())

        def step():
            self.model.zero_grad()
            self.model(torch.zeros(1, 1)).sum().backward()
            for master, parameter in zip(masters, self.model.parameters()):
                master.sub_(0.5 * parameter.grad)
                parameter.data.copy_(master)
            run.step(0)

        run.on("weights", refresh)
        with run:
            worker.due("add", [100, 0])
            step()
            step()
            self.assertEqual(self.model.bias.item(), 1 - 0.5 + 100 - 0.5)

    def test_after_the_end_the_optimizer_is_the_scripts_alone(self):
        worker = self.worker()
        with self.run_of(samples_per_step=1):
            self.train(torch.zeros(1, 1))
        del worker.seen[:]
        self.train(torch.zeros(1, 1))
        self.assertEqual(worker.seen, [])
        with self.run_of(samples_per_step=1):
            self.train(torch.zeros(1, 1))
            self.assertEqual(worker.header()[0], 1)

    def test_a_schedule_of_the_learning_rate_works_beside_the_hook(self):
        worker = self.worker()
        worker.now(1, 1000)
        for before in (True, False):
            optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0)
            made = [torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 0.5)] if before else []
            with self.run_of(self.model, optimizer, samples_per_step=2) as run, warnings.catch_warnings():
                warnings.simplefilter("error")
                schedule = made[0] if made else torch.optim.lr_scheduler.LambdaLR(
                    optimizer, lambda _: 1.0 - run.tokens / 4000)
                optimizer.step()
                schedule.step()
                self.assertEqual(worker.header()[:2], (1, 2))
                self.assertEqual(optimizer.param_groups[0]["lr"], 0.5 if before else 0.75)

    def test_of_several_optimizers_the_last_one_looks(self):
        worker = self.worker()
        other = torch.optim.SGD([self.model.weight], lr=0.1)
        with self.run_of(self.model, [other, self.optimizer], samples_per_step=2):
            for _ in range(3):
                other.step()
                self.optimizer.step()
        self.assertEqual(worker.header()[:2], (3, 6))

    def test_a_step_that_the_scaler_skips_is_not_counted(self):
        worker = self.worker()
        with self.run_of(samples_per_step=2):
            skipped = unittest.mock.Mock()
            skipped.step.side_effect = lambda optimizer: None # As GradScaler.step with gradients of inf.
            skipped.step(self.optimizer)
            self.optimizer.step()
        self.assertEqual(worker.header()[:2], (1, 2))

    def test_a_loop_may_count_its_steps_itself(self):
        worker = self.worker()
        with self.run_of(self.model) as run:
            run.step(8, 0.5)
            run.step(loss=1.0, samples=8)
            self.assertEqual(worker.header(), (2, 16, 1.5))
        with self.run_of() as run:
            self.assertIn("twice", str(self.fails(dpnode.Error, run.step, 8)))

    def test_the_form_without_a_hook_does_the_same(self):
        """PyTorch before 2.0."""
        from dpnode.hooks import _wrap

        calls = []
        end = _wrap(self.optimizer, lambda: calls.append(self.model.bias.item()))
        schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda _: 1.0)
        self.model.bias.grad = torch.ones(1)
        before = self.model.bias.item()
        result = self.optimizer.step(lambda: torch.tensor(7.0))
        schedule.step()
        self.assertEqual((calls, result.item()), ([before - 0.5], 7))
        end()
        self.optimizer.step()
        self.assertEqual(len(calls), 1)


class Losses(DiLoCoTest):
    def losses(self, *told):
        """The header's sum of losses after a step for each of these."""
        worker = self.worker()
        with self.run_of(self.model) as run:
            for values in told:
                for value in values:
                    run.loss(value)
                run.step(1)
            return worker.header()[2]

    def test_a_step_without_a_loss_counts_with_the_last_one(self):
        self.assertEqual(self.losses([], [2.0], [], [4.0]), 0 + 2 + 2 + 4)

    def test_tensors_and_numbers_are_losses_and_what_is_not_finite_is_none(self):
        self.assertEqual(self.losses([torch.tensor(2.0, requires_grad=True)], [float("nan")], [1, float("inf"), 3]), 2 + 2 + 2)


class Data(DiLoCoTest):
    def test_workers_of_the_loader_get_the_nodes_samples_in_order(self):
        for context in ("fork", "spawn"):
            worker = self.worker()
            with self.run_of() as run:
                shard = run.shard(Pairs(), batch_size=4, num_workers=2, multiprocessing_context=context, shuffle=True)
                seen = []
                for batch in shard:
                    seen += batch.flatten().tolist()
                    self.train(batch)
                    if len(seen) == 24:
                        break
                self.assertEqual(seen, [(7 * i) % 100 for i in range(24)])
                self.assertEqual(worker.header()[:2], (6, 24))
                del shard
            worker.close()

    def test_a_data_set_that_holds_the_run_cannot_use_it_in_a_loaders_worker(self):
        self.worker()

        class Bad(Pairs):
            def __getitem__(self, index):
                run.look()

        with self.run_of() as run:
            with self.assertRaises(dpnode.Error) as caught:
                next(iter(run.shard(Bad(), num_workers=1, multiprocessing_context="fork")))
            self.assertIn("did not open the run", str(caught.exception))
            self.assertRaises(dpnode.Error, pickle.dumps, run)

    def test_an_iteration_of_n_batches_goes_on_where_the_last_one_stopped(self):
        self.worker()
        with self.run_of() as run:
            shard = run.shard(Pairs(), batch_size=2, batches=2)
            epochs = [[batch.flatten().tolist() for batch in shard] for _ in range(2)]
            self.assertEqual((epochs, len(shard)), ([[[0, 7], [14, 21]], [[28, 35], [42, 49]]], 2))
            self.assertRaises(TypeError, len, run.shard(Pairs()))

    def test_a_batch_that_cannot_be_loaded_is_passed_over(self):
        worker = self.worker()

        class Bad(Pairs):
            def __getitem__(self, index):
                if index == 28:
                    raise ValueError("this file is broken")
                return super().__getitem__(index)

        seen = []
        with self.run_of() as run:
            for workers in (0, 2):
                shard = run.shard(Bad(), batch_size=2, num_workers=workers)
                while len(seen) < 8:
                    try:
                        for batch in shard:
                            seen += batch.flatten().tolist()
                            self.train(batch)
                            if len(seen) == 8:
                                break
                    except ValueError:
                        pass
                self.assertEqual(seen, [(7 * i) % 100 for i in (0, 1, 2, 3, 6, 7, 8, 9)])
                del seen[:], shard
                run.close()
                worker.next_index = 0
                run.open()

    def test_a_collate_function_and_a_batch_of_one_are_those_of_a_loader(self):
        self.worker()
        with self.run_of() as run:
            self.assertEqual(next(iter(run.shard(Pairs(), collate_fn=len))), 1)

    def test_randint_gives_leased_numbers_in_the_place_of_random_ones(self):
        worker = self.worker(samples=100)
        run = self.run_of().open()
        first, second = run.randint(100, (4,)), run.randint(100, (2, 3))
        self.assertEqual((first.tolist(), second.tolist()), ([0, 7, 14, 21], [[28, 35, 42], [49, 56, 63]]))
        self.assertEqual(first.dtype, torch.randint(100, (4,)).dtype)
        self.train(torch.ones(1, 1))
        self.assertEqual(worker.header()[:2], (1, 10)) # The step has the samples of both.
        self.assertIn("99 items", str(self.fails(dpnode.Mismatch, run.randint, 99, (4,))))
        for wrong in ((100, 4), (100.0, (4,)), (0, (4,))):
            self.fails(dpnode.Mismatch, run.randint, *wrong)
        worker.over()
        run._session._timeout = 0.1
        self.train(torch.ones(1, 1))
        last = run.randint(100, (400,)) # A loop that ends only at its head needs numbers all the same.
        self.assertTrue(run.should_stop and 0 <= last.min() and last.max() < 100)
        run.close()

    def test_data_that_do_not_fit_are_refused(self):
        self.worker(samples=100)

        class Endless(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(range(9))

        with self.run_of() as run:
            for dataset, options, words in ((Pairs(99), {}, "99 items"), (Endless(), {}, "samples_per_step"),
                                            (Pairs(), {"sampler": [1]}, "sampler"), (Pairs(), {"drop_last": True}, "drop_last"),
                                            (Pairs(), {"in_order": False}, "in_order"), (Pairs(), {"batches": 0}, "batches"),
                                            (Pairs(), {"batches": 1.5}, "batches"),
                                            (Pairs(), {"batch_size": 0}, "batch_size")):
                self.assertIn(words, str(self.fails(dpnode.Mismatch, run.shard, dataset, **options)))

    def test_samples_can_be_had_between_the_beginning_and_the_end_only(self):
        self.worker()
        run = self.run_of()
        self.assertIn("not open", str(self.fails(dpnode.Error, run.shard, Pairs())))
        with run:
            going = iter(run.shard(Pairs(), batch_size=300))
            next(going)
        self.assertIn("not open", str(self.fails(dpnode.Error, next, going)))
        with run: # And a run may begin again.
            self.train(next(iter(run.shard(Pairs()))))

    def test_batches_of_before_a_restart_of_the_node_are_not_trained_on(self):
        worker = self.worker()
        with self.run_of() as run:
            going = iter(run.shard(Pairs(), batch_size=4, num_workers=1, multiprocessing_context="fork", prefetch_factor=4))
            self.train(next(going))
            worker.vanish()
            worker.next_index = 1000
            worker.listen()
            run.look()
            worker.next_index += 1 # Each index of the new connection shows itself: 7 * 1001 and on.
            batch = next(going)
            self.assertEqual(batch.flatten().tolist()[0], 7 * 1001 % 100)
            self.train(batch)
            self.assertEqual(worker.header()[:2], (1, 4))
            del going
        gc.collect()


class Troubles(DiLoCoTest):
    def test_a_node_that_restarts_under_the_script_goes_on(self):
        worker = self.worker(weights=[1, 2])
        with self.run_of(samples_per_step=4) as run:
            self.train(torch.zeros(1, 1))
            worker.vanish()
            worker.listen()
            run.look()
            self.assertEqual(self.model.weight.item(), 2)
            worker.due("copy")
            self.train(torch.ones(1, 1))
            self.assertEqual(worker.seen[-1][:3], ("copy", 1, 4))

    def test_a_step_on_samples_of_before_a_restart_is_not_counted(self):
        worker = self.worker()
        with self.run_of() as run:
            going = iter(run.shard(Pairs(), batch_size=4))
            batch = next(going)
            worker.vanish()
            worker.listen()
            run.look()
            worker.due("copy")
            self.train(batch)
            self.assertEqual((worker.connections, worker.header()[:2]), (2, (0, 0)))
            self.train(next(going))
            self.assertEqual(worker.seen[-1][:3], ("copy", 1, 4))

    def test_weights_that_are_not_finite_name_their_parameter(self):
        worker = self.worker()
        with self.run_of(samples_per_step=1):
            with torch.no_grad():
                self.model.bias.fill_(float("nan"))
            worker.refusal = (7, "weights are not finite")
            worker.due("copy")
            error = self.fails(dpnode.Refused, self.optimizer.step)
        self.assertEqual(error.code, 7)
        self.assertIn("bias", error.why)

    def test_a_parameter_that_was_replaced_ends_the_connection_with_its_name(self):
        worker = self.worker()
        with self.run_of(samples_per_step=1):
            self.model.weight = nn.Parameter(torch.ones(1, 1))
            worker.due("add", [1, 1])
            self.assertIn("weight was replaced", str(self.fails(dpnode.Mismatch, self.optimizer.step)))

    def test_the_end_of_the_node_is_told_from_the_end_of_the_run(self):
        for tokens, node_ends in ((900, False), (100, True)):
            worker = self.worker(tokens_total=900)
            with self.run_of(timeout=0.3) as run:
                worker.now(3, tokens)
                if node_ends:
                    worker.over()
                run.look()
                self.assertTrue(run.should_stop)
            self.assertEqual((run.should_stop, run.node_ended, run.tokens), (True, node_ends, tokens))
            worker.close()

    def test_an_exception_in_the_loop_closes_the_connection(self):
        worker = self.worker()
        said = io.StringIO()
        with self.assertRaises(KeyboardInterrupt), contextlib.redirect_stderr(said):
            with self.run_of():
                raise KeyboardInterrupt
        self.assertRegex(said.getvalue(), "^dpnode: interrupted: 0 of 0 steps [^\\n]*\\n$")
        deadline = time.monotonic() + 5
        while worker._connection is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertIsNone(worker._connection)

    def test_without_a_node_the_next_step_is_named(self):
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("DPNODE_TOKEN", None)
            os.environ.pop("DPNODE_TOKEN_FILE", None)
            self.assertIn("dpnode join TOKEN", self.fails(dpnode.Offline, self.run_of().__enter__).fix)

    def test_arguments_that_cannot_be_used_are_refused(self):
        self.fails(dpnode.Mismatch, self.run_of, timeout=0)
        self.fails(dpnode.Mismatch, self.run_of, buffers="average")
        self.fails(dpnode.Mismatch, self.run_of, samples_per_step=8.0)
        self.assertIn("run.step(samples)", self.fails(dpnode.Mismatch, self.run_of, self.model, []).fix)
        self.worker()
        self.fails(dpnode.Mismatch, self.run_of(self.model, object()).__enter__)
        with self.run_of() as run:
            self.fails(dpnode.Mismatch, run.on, "sunset", print)
            self.fails(dpnode.Error, run.__enter__)
        with self.run_of(self.model) as run:
            for samples in (8.0, -1, "8"):
                self.fails(dpnode.Mismatch, run.step, samples)
            run.step(torch.tensor(8))


class FirstWeights(DiLoCoTest):
    def test_a_script_writes_the_first_weights_of_its_run_and_ends(self):
        path = os.path.join(self.dir, "first.safetensors")
        self.model.bias.requires_grad_(False)
        for options in ({}, {"offline": True}):
            with unittest.mock.patch.dict(os.environ, DPNODE_FIRST_WEIGHTS=path), self.assertRaises(SystemExit) as ended, \
                    contextlib.redirect_stdout(io.StringIO()) as said:
                self.run_of(**options).open()
            self.assertFalse(ended.exception.code)
            self.assertIn(f"--from {path}", said.getvalue())
            other = nn.Linear(1, 1)
            other.bias.requires_grad_(False)
            dpnode.load_model(other, path)
            self.assertEqual(other.weight, self.model.weight)
            os.unlink(path)


class Offline(DiLoCoTest):
    def test_everything_works_without_a_node(self):
        with self.run_of(offline=True, unit=3) as run:
            first = []
            for batch in run.shard(Pairs(10), batch_size=5, num_workers=1):
                first += batch.flatten().tolist()
                run.loss(self.train(batch))
                if len(first) == 20:
                    break
            run.look()
            self.assertEqual((sorted(first[:10]), sorted(first[10:])), ([float(i) for i in range(10)],) * 2)
            self.assertEqual((run.round, run.tokens, run.tokens_total, run.should_stop, run.paused), (0, 60, 0, False, False))


if __name__ == "__main__":
    kit.main(needs=["torch"])
