#!/usr/bin/env python3
"""The optimizer in hivemind's shape."""

import unittest.mock
import warnings

import kit
import dpnode

if kit.has("torch"):
    import torch
    from torch import nn


class OptimizerTest(kit.Test):
    def setUp(self):
        super().setUp()
        self.model = nn.Linear(1, 1)

    def optimizer(self, **options):
        defaults = {"optimizer": lambda params: torch.optim.SGD(params, lr=0.5), "params": self.model.named_parameters(),
                    "dir": self.dir, "timeout": 5, "batch_size_per_step": 4}
        optimizer = dpnode.Optimizer(**{**defaults, **options})
        self.addCleanup(optimizer.shutdown)
        return optimizer

    def test_a_loop_of_hivemind_trains_the_run(self):
        worker = self.worker(weights=[1, 2])
        worker.now(3, 100)
        optimizer = self.optimizer()
        self.assertEqual((self.model.bias.item(), optimizer.local_epoch), (1, 3))
        for _ in range(3):
            optimizer.zero_grad()
            self.model(torch.zeros(1, 1)).sum().backward()
            worker.due("copy")
            optimizer.step()
        self.assertEqual((worker.weights, worker.seen[-1][:3]), ([-0.5, 2], ("copy", 3, 12)))
        worker.due("add", [0.25, 0])
        optimizer.load_state_from_peers()
        self.assertEqual(self.model.bias.item(), -0.25)
        worker.over()
        optimizer.load_state_from_peers()
        self.assertEqual((optimizer.is_alive(), optimizer.should_stop), (False, True))

    def test_a_step_may_have_its_own_batch_size_and_a_closure(self):
        worker = self.worker()
        optimizer = self.optimizer(optimizer=torch.optim.SGD(self.model.parameters(), lr=0.5), params=self.model)

        def closure():
            optimizer.zero_grad()
            loss = self.model(torch.zeros(1, 1)).sum() + 3
            loss.backward()
            return loss

        bias = self.model.bias.item()
        loss = optimizer.step(closure, batch_size=7)
        self.assertEqual((loss.item(), self.model.bias.item()), (bias + 3, bias - 0.5))
        self.assertEqual(worker.header(), (1, 7, bias + 3))

    def test_a_step_that_the_scaler_skips_is_not_counted(self):
        worker = self.worker()
        optimizer = self.optimizer()
        scaler = unittest.mock.Mock()
        optimizer.step(grad_scaler=scaler)
        self.assertEqual(worker.header()[0], 0)
        scaler.step.side_effect = lambda inner: inner.step()
        optimizer.step(grad_scaler=scaler)
        self.assertEqual((worker.header()[0], scaler.step.call_args[0][0] is optimizer.inner), (1, True))

    def test_its_scheduler_counts_rounds_also_for_one_who_comes_late(self):
        worker = self.worker()
        worker.now(4, 0)
        optimizer = self.optimizer(scheduler=lambda inner: torch.optim.lr_scheduler.LambdaLR(inner, lambda n: 0.5 ** n))
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.5 * 0.5 ** 4)
        for _ in range(3):
            optimizer.step()
        worker.now(6, 0)
        optimizer.step()
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.5 * 0.5 ** 6)

    def test_it_is_an_optimizer_to_schedulers_hooks_and_checkpoints(self):
        self.worker()
        optimizer = self.optimizer(optimizer=lambda params: torch.optim.SGD(params, lr=0.5, momentum=0.9))
        self.assertIsInstance(optimizer, torch.optim.Optimizer)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)
            self.model(torch.ones(1, 1)).sum().backward()
            optimizer.step()
            schedule.step()
        self.assertAlmostEqual(optimizer.inner.param_groups[0]["lr"], 0.05)
        saved = optimizer.state_dict()
        self.assertEqual(len(saved["state"]), 2)
        optimizer.load_state_dict(saved)
        self.assertEqual(len(optimizer.state), 2)
        if hasattr(torch.optim.Optimizer, "register_step_post_hook"):
            calls = []
            optimizer.register_step_post_hook(lambda *_: calls.append(1))
            optimizer.step()
            self.assertEqual(calls, [1])
        self.assertIn("round=0", repr(optimizer))

    def test_what_cannot_be_used_is_refused(self):
        self.worker()
        self.assertIn("without names", str(self.fails(dpnode.Mismatch, self.optimizer, params=self.model.parameters())))
        self.fails(dpnode.Mismatch, self.optimizer, optimizer=3)
        self.fails(dpnode.Mismatch, self.optimizer().add_param_group, {})
        self.assertRaises(TypeError, self.optimizer, dht=None)


if __name__ == "__main__":
    kit.main(needs=["torch"])
