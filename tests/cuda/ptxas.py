#!/usr/bin/env python3
"""The report of ptxas on each kernel: registers, shared memory, and bytes that did not fit into registers (spills).

ptxas.py compile COMMAND...   runs a compilation (the launcher of compute/cuda's .cu files); what ptxas says of kernels goes to OBJECT.ptxas
ptxas.py report FOLDER...     reads those below the folders; --table prints every kernel. Exit status 1 when one spills more than its bound,
                              77 where there are none.
ptxas.py self-test            reads what was written for it
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

SPILL_BYTES_MAX = 16  # stores of one thread: a word or two that wait outside of the loops
ALLOWED = [  # file, part of the kernel's name, bytes, why
    ("norm.cu", "backward_kernel.*Li4E", 480, "rows wider than 8192, which no published model has"),
    ("norm.cu", "backward_kernel.*Li2E", 40, "rows wider than 4096, on sm_120 alone"),
    ("attention_mma.cu", "forward_kernel.*fp16_by8Li128E", 64, "heads of 104 and 120 channels in fp16, on sm_100 alone"),
    ("attention_mma.cu", "keys_kernel.*Li64E", 48, "outside of the products; warpgroups take its place on sm_90a"),
]
WHOLE = [  # file, part of the kernel's name, registers that it begins with: setmaxnreg shares them out, and of fewer one would wait for ever
    ("attention_wgmma.cu", "forward_kernel.*Li64E", 128),
    ("attention_wgmma", "kernel", 168),
]
# Products of warpgroups that wait for each other because the compiler could not keep their sums apart, setmaxnreg that it leaves out.
LOSS = re.compile(r"Potential Performance Loss: (.*)")
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers.*?(?:, (\d+) bytes smem)?(?:,|$)")


def compile_one(command):
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line.strip()]
    kernels = [i for i, line in enumerate(said) if line.startswith("ptxas info") or SPILLS.search(line)]
    if "-o" in command:
        with open(command[command.index("-o") + 1] + ".ptxas", "w", encoding="utf-8") as file:
            file.writelines(said[i] + "\n" for i in kernels)
    sys.stderr.writelines(line + "\n" for i, line in enumerate(said) if i not in kernels)
    return done.returncode


def kernels_of(path):
    """(name, arch, stack, spill stores, registers) of each kernel, and what it says is lost."""
    found, lost, name, arch, spills = [], [], "", "", (0, 0, 0)
    with open(path, encoding="utf-8") as file:
        for line in file:
            if match := LOSS.search(line):
                lost.append(match[1])
            elif match := ENTRY.search(line):
                name, arch, spills = match[1], match[2], (0, 0, 0)
            elif match := SPILLS.search(line):
                spills = tuple(int(n) for n in match.groups())
            elif match := USED.search(line):
                found.append((name, arch, spills[0], spills[1], int(match[1])))
    return found, lost


def bound_of(source, name):
    return next((most for file, part, most, _ in ALLOWED if file == source and re.search(part, name)), SPILL_BYTES_MAX)


def whole_of(source, name, arch):
    """Registers that a kernel must begin with; 0: any number."""
    return next((n for file, part, n in WHOLE if arch == "sm_90a" and source.startswith(file) and re.search(part, name)), 0)


def report(folders, table):
    paths = sorted(p for folder in folders for p in glob.glob(os.path.join(folder, "**", "*.cu.o.ptxas"), recursive=True)
                   if os.path.exists(p[:-len(".ptxas")]))
    bad, count, most = [], 0, {}
    for path in paths:
        source = os.path.basename(path)[:-len(".o.ptxas")]
        kernels, lost = kernels_of(path)
        bad += [f"{source}: {what}" for what in lost]
        for name, arch, stack, spilled, registers in kernels:
            count += 1
            if table:
                print(f"{source:22} {arch:8} {registers:3} registers {stack:5} stack {spilled:5} spilled  {name}")
            if spilled > most.get(arch, (0, ""))[0]:
                most[arch] = (spilled, f"{source}: {name}")
            if spilled > bound_of(source, name):
                bad.append(f"{source}: {name} for {arch} spills {spilled} bytes; its bound is {bound_of(source, name)}")
            if registers != (whole_of(source, name, arch) or registers):
                bad.append(f"{source}: {name} begins with {registers} registers, not {whole_of(source, name, arch)}")
    if count == 0:
        print("ptxas: no kernel was compiled by nvcc here")
        return 77
    print(f"{count} kernels; most spilled: " + (", ".join(f"{a} {n} bytes ({k})" for a, (n, k) in sorted(most.items())) or "none"))
    print("\n".join(bad), file=sys.stderr)
    return 1 if bad else 0


def self_test():
    said = """ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to calls in the function 'slow'
ptxas info    : Compiling entry function 'slow' for 'sm_90a'
    8 bytes stack frame, %d bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8 bytes cumulative stack size
"""
    with tempfile.TemporaryDirectory() as folder:
        assert report([folder], False) == 77
        for spilled, lost, wanted in ((16, False, 0), (20, False, 1), (0, True, 1)):
            text = (said if lost else said[said.index("\n") + 1:]) % spilled
            echo = [sys.executable, "-c", f"import sys; sys.stderr.write({text!r} + 'a warning\\n')", "-o", folder + "/a.cu.o"]
            with open(folder + "/a.cu.o", "w", encoding="utf-8"):
                assert compile_one(echo) == 0
            assert kernels_of(folder + "/a.cu.o.ptxas")[0] == [("slow", "sm_90a", 8, spilled, 40)]
            assert report([folder], False) == wanted, (spilled, lost)
    assert whole_of("attention_wgmma.cu", "forward_kernelI7dp_bf16Li64EE", "sm_90a") == 128
    assert whole_of("attention_wgmma_back.cu", "keys_kernelILi64EE", "sm_90a") == 168
    assert whole_of("attention_wgmma_back.cu", "keys_kernelILi64EE", "sm_80") == 0
    print("ptxas: finds what is wrong")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["self-test"]:
        sys.exit(self_test())
    if len(sys.argv) > 2 and sys.argv[1] == "compile":
        sys.exit(compile_one(sys.argv[2:]))
    if len(sys.argv) > 2 and sys.argv[1] == "report":
        sys.exit(report([a for a in sys.argv[2:] if a != "--table"], "--table" in sys.argv))
    print(__doc__, file=sys.stderr)
    sys.exit(64)
