#!/usr/bin/env python3
"""Issue slots of an H200's schedulers that a kernel needs per element, counted in its machine code, beside the slots that are available at full
memory speed: no clock, no card. Needs nvcc and nvdisasm.

issue_slots.py [--nvdisasm PROGRAM] [--json] [NAME...]: one line per kernel of the table below whose name has one of the words

The counted path is the shortest from the entry of the kernel to an exit that contains the instructions of its row, with the number of loop rounds
of its row; the slow paths of a division, edges and bad input are longer and not counted. One issue slot is a cycle of one scheduler. An instruction
occupies its pipe for as many slots as the throughput table of the CUDA programming guide gives it at 9.0 (128 results of a processor's four
schedulers: 1; 64: 2; 16: 8), copies and shuffles those of the processor's one port for 128 bytes. The result is that of the busiest pipe, or of
issuing itself. At full memory speed there are 132 processors x 4 schedulers x 1.7 GHz x 32 lanes / 4.8 TB/s = 6 slots of a lane per byte. Waiting
is not counted.
"""
import argparse
import heapq
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
SLOTS_OF_A_BYTE = 132 * 4 * 1.7e9 * 32 / 4.8e12
EXACT = ("vectors", "codecs", "outer", "optim")  # files that are compiled without contraction

# name, file, what the mangled name has, what the path meets in order, rounds of each loop on it (the rest once), elements of a thread, bytes of an element
ROWS = []


def row(name, source, kernel, meets, elements, size, loops=()):
    ROWS.append({"name": name, "source": source, "kernel": kernel, "meets": meets, "elements": elements, "bytes": size, "loops": loops})


KINDS = {"int8": (3, 8), "int4": (6, 4)}  # dp_codec_kind, bits
BLOCKS = {"int8": (256, 1024), "int4": (64, 256)}
for kind, (number, bits) in KINDS.items():
    for block in BLOCKS[kind]:
        row(f"encode {kind} {block}", "codecs_blocks", f"write_blocksIL13dp_codec_kind{number}ELj{block}E",
            [r"LDG\.E\.128", "MUFU.RCP", "STS", "BAR.SYNC", "STG"], 32, 4 + bits / 8 + 2 / block)

# Patterns that distinguish the codes of a codec from others in a kernel that reads them all.
CODES = {"int8": r"LDG\.E\.U16.*0x1a\]", "int4": r"LOP3.* 0x8080808,"}
for kind, block in (("int8", 256), ("int4", 64)):
    size = KINDS[kind][1] / 8 + 2 / block
    row(f"decode {kind} {block}", "outer_dense", "decode_dense", [CODES[kind], r"STG\.E\.128"], 16, 4 + size)
    row(f"settle {kind} {block}", "outer_dense", "settle_dense", [r"LDG\.E\.128", CODES[kind], r"STG\.E\.128"], 16, 8 + size)
    for peers in (1, 8, 32):
        row(f"step {kind} {block}, {peers} peers", "outer_dense", f"plain_denseIL13dp_codec_kind{KINDS[kind][0]}ELj{block}E", [r"LDG\.E\.128", CODES[kind], r"STG\.E\.128"], 16, 8 + peers * size, (peers,))

# The operations of a step on activations of bf16, eight elements to a thread, and on weights. A norm's gain and bias stay in the cache.
IN, OUT = r"LDG\.E\.128", r"STG\.E\.128"
MEAN = ["SHFL", "BAR"]
row("layer norm, residual", "norm", "forward_kernelI7dp_bf16S0_Li1E", [IN, IN, OUT, *MEAN, *MEAN, "MUFU", OUT], 8, 8)
row("norm back", "norm", "backward_kernelI7dp_bf16S0_Li1ELb0E", [IN, IN, IN, *MEAN, OUT], 8, 8)
for kind, inputs in (("gelu", 1), ("relu2", 1), ("swiglu", 2)):
    name = f"{len(kind)}{kind}7dp_bf16"
    row(kind, "act", f"forward_kernelI{name}E", [IN, OUT], 8, 2 * (inputs + 1))
    row(f"{kind} back", "act", f"backward_kernelI{name}E", [IN, IN, OUT], 8, 2 * (2 * inputs + 1))
row("rope", "rope", "forward_kernelI7dp_bf16E", [IN, IN, OUT, OUT], 16, 4)
row("rope back", "rope", "backward_kernelI7dp_bf16E", [IN, IN, OUT, OUT], 16, 4)
row("adamw", "optim", "5adamw", [IN, OUT], 4, 28)
row("squares", "optim", "7squares", [r"LDG\.E\b.*0x3400\]", "BRA"], 256, 4, (16,))
row("masters", "optim", "7masters", [IN, IN], 4, 8)
row("nearest", "optim", "7nearest", [IN, OUT], 4, 8)
row("chance", "optim", "6chance", [IN, IN, OUT, OUT], 8, 8)
row("lamb, first", "optim_layer", "9lamb_look", [IN, OUT, "BRA"], 256, 28, (64,))
row("lamb, second", "optim_layer", "9lamb_move", [IN, OUT], 4, 12)
row("lars, first", "optim_layer", "9lars_look", [IN, IN, *["F2F"] * 8], 4, 8)
row("lars, second", "optim_layer", "9lars_move", [IN, OUT], 4, 20)
row("add", "vectors", "6changeI6sum_ofE", [IN, IN, OUT], 4, 12)
row("snapshot", "vectors", "8snapshot", [IN, IN, IN, OUT], 4, 16)
row("look", "vectors", "4look", [IN], 4, 4)
row("encode fp32", "codecs", "12write_floats", [IN, r"STG\.E\.64", r"STG\.E\.64"], 4, 8)

PIPES = [  # pattern of the opcode, pipe, slots
    (r"IMAD\.(WIDE|HI)", "fma", 4),
    (r"IMAD", "fma", 2),
    (r"(FADD|FMUL|FFMA|HADD2|HFMA2|HMUL2|FFMA32I|FADD32I|FMUL32I)\b", "fma", 1),
    (r"(MUFU|F2I|I2F|F2F|POPC|FLO|BREV|FRND)\b", "xu", 8),
    (r"(DADD|DMUL|DFMA|DSETP|DMNMX)\b", "fp64", 2),
    (r"(LDG|STG|LD|ST|LDS|STS|LDL|STL)\b.*\.128", "port", 16),
    (r"(LDG|STG|LD|ST|LDS|STS|LDL|STL)\b.*\.64", "port", 8),
    (r"(LDG|STG|LD|ST|LDS|STS|LDL|STL|SHFL|ATOMS|ATOMG|RED|LDSM|ATOM)\b", "port", 4),
    (r"(IADD3|IADD|LOP3|LOP|SHF|ISETP|SEL|IMNMX|VIMNMX3?|FMNMX|FSETP|FSEL|PRMT|LEA|VIADD|VIADDMNMX|PLOP3|FCHK|I2FP|IABS|VOTE|BMSK|SGXT|FSET|HMNMX2|F2FP|I2IP|R2P|P2R|ISCADD)\b", "alu", 2),
]
LABEL = re.compile(r"^(\.L_x_\d+):")
LINE = re.compile(r"^\s*/\*([0-9a-f]+)\*/\s+(@!?U?P\d+\s+)?([A-Z0-9_.]+)\s*(.*?)\s*;")


def build(source, folder):
    """The machine code of a file of compute/cuda for sm_90a."""
    out = os.path.join(folder, source + ".cubin")
    exact = ["--fmad=false"] if source.startswith(EXACT) else []
    if not os.path.exists(out):
        nvcc = "nvcc" if not os.path.exists("/usr/local/cuda/bin/nvcc") else "/usr/local/cuda/bin/nvcc"
        subprocess.run([nvcc, "-std=c++17", "-O3", *exact, "-I", ROOT, "-arch=sm_90a", "-cubin", "-o", out,
                        os.path.join(ROOT, "compute", "cuda", source + ".cu")], check=True)
    return out


def kernels_of(text):
    """Mangled name -> list of (guard, opcode, operands, indices that it may branch to)."""
    found, name, labels, lines = {}, None, {}, []

    def close():
        if name is not None:
            found[name] = [(guard, op, rest, [labels[t] for t in targets if t in labels]) for guard, op, rest, targets in lines]

    for line in text.splitlines():
        if line.startswith(".text."):
            close()
            name, labels, lines = line[6:].rstrip(":"), {}, []
        elif name is None:
            continue
        elif line.startswith(".section"):
            close()
            name = None
        elif match := LABEL.match(line):
            labels[match[1]] = len(lines)
        elif match := LINE.match(line):
            lines.append((match[2] or "", match[3], match[4], re.findall(r"\.L_x_\d+", match[4])))
    close()
    return found


def next_of(code, at):
    """The possible successors of an instruction."""
    guard, op, operands, targets = code[at]
    if op.startswith("BRX"):
        return targets
    if op.startswith("BRA") and targets:
        always = not guard and operands.startswith("`")
        return targets if always else [at + 1, *targets]
    if op == "EXIT" and not guard:
        return []
    return [at + 1] if at + 1 < len(code) else []


def shortest(code, start, wanted):
    """Indices from start to the nearest later instruction that wanted(at) accepts."""
    queue, seen = [(0, start, None)], {}
    while queue:
        cost, at, before = heapq.heappop(queue)
        if at in seen:
            continue
        seen[at] = before
        if wanted(at) and before is not None:
            path = []
            while at is not None:
                path.append(at)
                at = seen[at]
            return path[::-1]
        for follows in next_of(code, at):
            heapq.heappush(queue, (cost + 1 + (20 if code[at][1].startswith("CALL") else 0), follows, at))
    return None


def path_of(code, meets):
    path, at = [], 0
    for meet in [*meets, "EXIT"]:
        part = shortest(code, at, lambda i, m=meet: re.match(m, f"{code[i][1]} {code[i][2]}") and (m != "EXIT" or not code[i][0]))
        if part is None:
            raise ValueError(f"no way to {meet}")
        path += part[1:] if path else part
        at = path[-1]
    return path


def loops_on(code, path):
    """(first, last) of loops whose end the path meets, in order."""
    return sorted({(target, at) for at in path if code[at][1].startswith("BRA") for target in code[at][3] if target <= at})


def count(code, entry):
    path = path_of(code, entry["meets"])
    loops = loops_on(code, path)
    pipes = {"issue": 0.0}
    for at in path:
        times = 1.0
        for i, (first, last) in enumerate(loops):
            if first <= at <= last and i < len(entry["loops"]):
                times *= entry["loops"][i]
        op = code[at][1]
        pipes["issue"] += times
        for pattern, pipe, slots in PIPES:
            if re.match(pattern, op):
                pipes[pipe] = pipes.get(pipe, 0) + times * slots
                break
    return {pipe: slots / entry["elements"] for pipe, slots in pipes.items()}, len(loops)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--path", action="store_true", help="print the instructions that were counted")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    found, codes = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for entry in ROWS:
            if options.names and not any(name in entry["name"] for name in options.names):
                continue
            source = entry["source"]
            if source not in codes:
                text = subprocess.run([options.nvdisasm, "-c", build(source, folder)], check=True, capture_output=True, text=True).stdout
                codes[source] = kernels_of(text)
            code = next((c for name, c in codes[source].items() if re.search(entry["kernel"], name)), None)
            if code is None:
                raise SystemExit(f"{source}.cu has no kernel like {entry['kernel']}")
            if options.path:
                for at in path_of(code, entry["meets"]):
                    print(at, *code[at][:3])
            try:
                slots, loops = count(code, entry)
            except ValueError as why:
                raise SystemExit(f"{entry['name']}: {why}") from why
            busiest = max(slots, key=slots.get)
            left = SLOTS_OF_A_BYTE * entry["bytes"]
            found.append({"kernel": entry["name"], "instructions": round(slots["issue"], 1), "slots": round(slots[busiest], 1), "pipe": busiest,
                          "left": round(left, 1), "share": round(min(1.0, left / slots[busiest]), 2), "loops": loops,
                          "pipes": {k: round(v, 1) for k, v in slots.items()}})
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        print()
        return
    print("kernel                     instructions  slots  of     memory leaves  of its speed")
    for f in found:
        print(f"{f['kernel']:26} {f['instructions']:12} {f['slots']:6}  {f['pipe']:6} {f['left']:12}  {f['share']:12.2f}")


if __name__ == "__main__":
    main()
