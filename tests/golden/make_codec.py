#!/usr/bin/env python3
"""Makes codec.txt: update blobs by a second, plain implementation of the formats in compute/codec.h.

Usage: tests/golden/make_codec.py > tests/golden/codec.txt
Each line: codec, elements, seed, energy and blob in hexadecimal. Element i of the input is drawn from splitmix64, see
value(); all inputs are exact floats, and every sum here is exact, so no rounding of Python's own can matter.
"""

import math
import struct
from fractions import Fraction

MASK = (1 << 64) - 1


def mix64(value):
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def value(seed, i):
    """A multiple of 2^-30 below 2^-10; one in eight is zero, so that ties and short runs occur."""
    bits = mix64(seed * 1000003 + i)
    return 0.0 if bits & 7 == 0 else ((bits >> 43) - (1 << 20)) * 2.0**-30


def half(x):
    return struct.unpack("<H", struct.pack("<e", x))[0]


def half_value(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def half_up(x):
    bits = half(x)
    return bits if Fraction(half_value(bits)) >= Fraction(x) else bits + 1


def grid(bits):
    return int(Fraction(half_value(bits)) * (1 << 24))


def float32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def pack_bits(bits):
    out = bytearray((len(bits) + 7) // 8)
    for i, bit in enumerate(bits):
        out[i // 8] |= bit << (i % 8)
    return bytes(out)


def sparse_run(a):
    k = (len(a) + 63) // 64
    top = sorted(sorted(range(len(a)), key=lambda i: (-abs(a[i]), i))[:k])
    total = sum(abs(a[i]) for i in top)
    if total == 0:
        return b"\0" * 4, 0
    mean = min(total / k, max(abs(a[i]) for i in top))
    high = [abs(a[i]) >= mean for i in top]
    hi = [abs(a[i]) for i, h in zip(top, high) if h]
    lo = [abs(a[i]) for i, h in zip(top, high) if not h]
    c_hi = half(sum(hi) / len(hi))
    c_lo = half(sum(lo) / len(lo)) if lo else 0
    if c_hi == 0:
        return b"\0" * 4, 0
    gaps, last = [], -1
    for i in top:
        quotient, rest = divmod(i - last - 1, 32)
        gaps += [1] * quotient + [0] + [(rest >> b) & 1 for b in range(5)]
        last = i
    out = struct.pack("<HH", c_lo, c_hi)
    out += pack_bits([int(a[i] < 0) for i in top]) + pack_bits([int(h) for h in high]) + pack_bits(gaps)
    return out, len(hi) * grid(c_hi) ** 2 + len(lo) * grid(c_lo) ** 2


def int8_run(a):
    out, energy = b"", 0
    for at in range(0, len(a), 256):
        block = a[at:at + 256]
        scale = half_up(max(abs(x) for x in block) / 127.0)
        steps = [round(float32(x / half_value(scale))) if scale else 0 for x in block]
        out += struct.pack("<H", scale) + struct.pack("<%db" % len(steps), *steps)
        energy += sum(s * s for s in steps) * grid(scale) ** 2
    return out, energy


def bf16_run(a):
    out, energy = b"", Fraction(0)
    for x in a:
        bits = struct.unpack("<I", struct.pack("<f", x))[0]
        top, rest = bits >> 16, bits & 0xFFFF
        top += rest > 0x8000 or (rest == 0x8000 and top & 1)
        out += struct.pack("<H", top)
        energy += Fraction(struct.unpack("<f", struct.pack("<I", top << 16))[0]) ** 2
    return out, energy


def fp32_run(a):
    return b"".join(struct.pack("<f", x) for x in a), sum(Fraction(x) ** 2 for x in a)


CODECS = {"fp32": (1, fp32_run), "bf16": (2, bf16_run), "int8": (3, int8_run), "sparse": (4, sparse_run)}


def main():
    print("# made by make_codec.py: codec elements seed energy blob")
    seed = 0
    for name, (number, run) in CODECS.items():
        for n in (0, 1, 63, 65, 300, 4096, 4161) if name in ("int8", "sparse") else (0, 3, 17):
            seed += 1
            a = [value(seed, i) for i in range(n)]
            payload, energy = b"", Fraction(0)
            for at in range(0, n, 4096):
                out, part = run(a[at:at + 4096])
                payload += out
                energy += part
            if name in ("fp32", "bf16"):
                energy = math.floor(energy * (1 << 48))
            blob = b"DPU1" + struct.pack("<BBHQ", 1, number, 0, n) + payload
            print(name, n, seed, "%x" % int(energy), blob.hex())


main()
