#!/usr/bin/env python3
"""The package itself: no import but PyTorch, and that one late; errors with a next step."""

import ast
import os
import subprocess
import sys

import kit
import dpnode

SOURCES = os.path.join(kit.PACKAGE, "dpnode")
WITH_TORCH = {"diloco.py", "files.py", "hf.py", "loader.py", "meeting.py", "optimizer.py", "parameters.py", "pieces.py",
              "windows.py"}


def imports(path):
    """The first names of what a module imports from elsewhere."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


class Package(kit.Test):
    def test_nothing_but_torch_and_the_standard_library_is_imported(self):
        for name in sorted(os.listdir(SOURCES)):
            if name.endswith(".py"):
                allowed = set(sys.stdlib_module_names) if hasattr(sys, "stdlib_module_names") else set(imports(
                    os.path.join(SOURCES, name))) - {"torch", "transformers", "numpy", "pyarrow"}
                allowed |= {"torch"} if name in WITH_TORCH else set()
                allowed |= {"transformers"} if name == "hf.py" else set()
                allowed |= {"pyarrow"} if name == "dataset_files.py" else set()
                self.assertEqual(set(imports(os.path.join(SOURCES, name))) - allowed, set(), name)

    def test_importing_it_imports_no_torch(self):
        code = "import sys, dpnode, dpnode.session, dpnode.batches; sys.exit('torch' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": kit.PACKAGE}, check=False)
        self.assertEqual(done.returncode, 0)

    def test_without_torch_its_classes_say_what_is_missing(self):
        code = ("import sys, dpnode; sys.modules['torch'] = None\n"
                "try:\n    dpnode.DiLoCo\nexcept dpnode.Error as error:\n    assert 'pip install torch' in error.fix\n"
                "else:\n    sys.exit(1)")
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": kit.PACKAGE}, check=False)
        self.assertEqual(done.returncode, 0)

    def test_an_error_has_what_why_and_fix(self):
        self.assertEqual(str(dpnode.Error("it failed", "no reason", "try again")), "it failed: no reason\nfix: try again")
        self.assertEqual(str(dpnode.Error("it failed")), "it failed")
        self.assertEqual(str(dpnode.Refused(3, "the tensors")), "the tensors")
        for kind in (dpnode.Refused, dpnode.Timeout, dpnode.Offline, dpnode.Mismatch, dpnode.WrongProcess):
            self.assertTrue(issubclass(kind, dpnode.Error))


if __name__ == "__main__":
    kit.main()
