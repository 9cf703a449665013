#!/usr/bin/env python3
"""The golden curves of the optimizers equal the output of their script, and PyTorch's AdamW gives the same curve.

Skipped (77) after the first part where PyTorch is not installed. The argument, the folder of the binaries, is not used.
"""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "tests/golden/make_optim.py")


def main():
    made = subprocess.run([sys.executable, SCRIPT], check=True, capture_output=True, text=True).stdout
    with open(os.path.join(ROOT, "tests/golden/optim.txt"), encoding="utf-8") as file:
        kept = file.read()
    if made != kept:
        print("tests/golden/optim.txt is not what make_optim.py prints")
        return 1
    # Debian's PyTorch needs Debian's Python.
    status = 77
    for python in (sys.executable, "/usr/bin/python3"):
        if status == 77 and os.path.exists(python):
            status = subprocess.run([python, SCRIPT, "--torch"], check=False).returncode
    return status


sys.exit(main())
