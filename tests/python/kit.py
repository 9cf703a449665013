"""Shared by the tests of python/dpnode: where it is, a worker that is played, tensors without a framework, and the start.

Status 77 if a test needs PyTorch and no Python here has it. Debian's PyTorch needs Debian's Python, so that one is tried too.
"""

import array
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")
sys.path[:0] = [PACKAGE, HERE]
sys.dont_write_bytecode = True

from played_worker import PlayedWorker  # noqa: E402,F401 (for the tests)
import dpnode  # noqa: E402
from dpnode import table  # noqa: E402


def has(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def main(needs=()):
    """Runs the tests of the calling script."""
    missing = [module for module in needs if not has(module)]
    if missing:
        debian = "/usr/bin/python3"
        probe = [debian, "-c", "import " + ", ".join(needs)]
        if (os.path.realpath(sys.executable) != os.path.realpath(debian) and os.path.exists(debian)
                and subprocess.run(probe, check=False, capture_output=True).returncode == 0):
            os.execv(debian, [debian, *sys.argv])
        print(f"skipped: {', '.join(missing)} is not installed")
        sys.exit(77)
    if "torch" in needs:
        import torch

        torch.set_num_threads(1)
    # ctest gives the folder of the binaries, which no test here uses.
    unittest.main(argv=[sys.argv[0]] + [word for word in sys.argv[1:] if not os.path.isdir(word)])


class Floats:
    """Tensors of a session without a framework: lists of numbers."""

    def __init__(self, **tensors):
        self.tensors = {name: list(numbers) for name, numbers in tensors.items()}
        self.rows = table.sort(table.Row(name, table.F32, (len(numbers),)) for name, numbers in self.tensors.items())
        self.calls = []
        self.bad = []

    def _all(self):
        return [number for row in self.rows for number in self.tensors[row.name]]

    def _set(self, numbers):
        at = 0
        for row in self.rows:
            self.tensors[row.name] = list(numbers[at:at + row.elements])
            at += row.elements

    def assign(self, floats):
        self.calls.append("assign")
        self._set(floats.tolist())

    def add(self, floats):
        self.calls.append("add")
        self._set([one + other for one, other in zip(self._all(), floats)])

    def copy(self, floats):
        self.calls.append("copy")
        floats[:] = memoryview(array.array("f", self._all()))

    def not_finite(self):
        return self.bad


class Test(unittest.TestCase):
    """A test with a folder of its own, in which a worker can be played."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dpnode-test-")
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def worker(self, **options):
        worker = PlayedWorker(self.dir, **options)
        self.addCleanup(worker.close)
        return worker

    def fails(self, kind, call, *arguments, **named):
        """The error that the call raises, which has a sentence for each of its parts."""
        with self.assertRaises(kind) as caught:
            call(*arguments, **named)
        self.assertIsInstance(caught.exception, dpnode.Error)
        self.assertTrue(caught.exception.what)
        return caught.exception
