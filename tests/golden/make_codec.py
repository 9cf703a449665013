#!/usr/bin/env python3
"""Makes codec.txt: update blobs by a second, plain implementation of the formats in compute/codec/codec.h.

Usage: tests/golden/make_codec.py > tests/golden/codec.txt
Each line: codec, block, keep, bits, elements, seed of the input, energy in hexadecimal, CRC-32 of the
decoded floats, and blob in hexadecimal. Element i of the input is drawn from splitmix64, see value(); all inputs are exact floats,
and sums here are integers or fractions, so no rounding of Python's own can matter but where it is asked for.
"""

import math
import struct
import zlib
from fractions import Fraction

MASK = (1 << 64) - 1


def mix64(value):
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def value(seed, i):
    """Even seeds: a multiple of 2^-30 below 2^-10; one in eight is zero, so that ties and short runs occur. Odd seeds: any float
    from 2^-40 to 2^10, so that sums are cut."""
    bits = mix64(seed * 1000003 + i)
    if seed % 2 == 0:
        return 0.0 if bits & 7 == 0 else ((bits >> 43) - (1 << 20)) * 2.0**-30
    return math.ldexp((-1) ** (bits >> 63) * ((1 << 23) + (bits & 0x7FFFFF)), (bits >> 32) % 50 - 40 - 23)


def half(x):
    """The nearest half, at most the largest."""
    return struct.unpack("<H", struct.pack("<e", max(-65504.0, min(x, 65504.0))))[0]


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


def unit_of(values):
    """2^-24 of the last place of the largest float, as a fraction: sums count in it, and what is below is cut."""
    largest = max(abs(x) for x in values)
    return Fraction(2) ** ((math.frexp(largest)[1] if largest else -125) - 24 - 24)


def counts(values, unit):
    return [int(Fraction(abs(x)) / unit) for x in values]


def mean(numerator, denominator, unit):
    """Two roundings to double, then one to half."""
    return half(float(Fraction(float(numerator) / float(denominator)) * unit))


def kept_values(v, bits):
    """Bytes, whether something follows, energy, and the decoded values."""
    k, unit = len(v), unit_of(v)
    m = counts(v, unit)
    total = sum(m)
    high = [bits == 1 or x * k >= total for x in m]
    top = [x for x, h in zip(m, high) if h]
    rest = [x for x, h in zip(m, high) if not h]
    c_hi = mean(sum(top), len(top), unit) if total else 0
    c_lo = mean(sum(rest), len(rest), unit) if rest and c_hi else 0
    out = (struct.pack("<H", c_lo) if bits == 2 else b"") + struct.pack("<H", c_hi)
    if c_hi == 0:
        return out, False, 0, [0.0] * k
    out += pack_bits([int(x < 0) for x in v])
    if bits == 2:
        out += pack_bits([int(h) for h in high])
    decoded = [(half_value(c_hi if h else c_lo) or 0.0) * (-1 if x < 0 else 1) + 0.0 for x, h in zip(v, high)]
    return out, True, len(top) * grid(c_hi) ** 2 + len(rest) * grid(c_lo) ** 2, decoded


def scatter(length, index, values):
    out = [0.0] * length
    for i, x in zip(index, values):
        out[i] = x
    return out


def sparse_run(a, o):
    k, low = -(-len(a) // o.keep), o.keep.bit_length() - 2
    top = sorted(sorted(range(len(a)), key=lambda i: (-abs(a[i]), i))[:k])
    out, more, energy, values = kept_values([a[i] for i in top], o.bits)
    if not more:
        return out, 0, [0.0] * len(a)
    gaps, last = [], -1
    for i in top:
        quotient, rest = divmod(i - last - 1, 1 << low)
        gaps += [1] * quotient + [0] + [(rest >> b) & 1 for b in range(low)]
        last = i
    return out + pack_bits(gaps), energy, scatter(len(a), top, values)


def blocks(a, size):
    return [a[at:at + size] for at in range(0, len(a), size)]


def steps_of(block, most):
    largest = max(abs(x) for x in block)
    scale = half_up(largest / float(most))

    def step(x, bits):
        return max(-most, min(most, round(float32(x / half_value(bits)))))

    if scale and step(largest, scale) * Fraction(half_value(scale)) <= most * Fraction(half_value(scale - 1)):
        scale -= 1
    return scale, [step(x, scale) if scale else 0 for x in block]


def steps_run(a, o, most):
    out, energy, decoded = b"", 0, []
    for block in blocks(a, o.block):
        scale, steps = steps_of(block, most)
        out += struct.pack("<H", scale)
        out += struct.pack("<%db" % len(steps), *steps) if most == 127 else pack_nibbles([s & 15 for s in steps])
        energy += sum(s * s for s in steps) * grid(scale) ** 2
        decoded += [s * half_value(scale) for s in steps]
    return out, energy, decoded


def pack_nibbles(nibbles):
    nibbles = nibbles + [0] * (len(nibbles) % 2)
    return bytes(low | high << 4 for low, high in zip(nibbles[::2], nibbles[1::2]))


def int8_run(a, o):
    return steps_run(a, o, 127)


def int4_run(a, o):
    return steps_run(a, o, 7)


def serial_squares(values):
    """In double, one after the other: part of the format."""
    total = 0.0
    for x in values:
        total += x * x
    return total


def bf16_run(a, _):
    out, decoded = b"", []
    for x in a:
        bits = struct.unpack("<I", struct.pack("<f", x))[0]
        top, rest = bits >> 16, bits & 0xFFFF
        top += rest > 0x8000 or (rest == 0x8000 and top & 1)
        out += struct.pack("<H", top)
        decoded.append(struct.unpack("<f", struct.pack("<I", top << 16))[0])
    return out, serial_squares(decoded), decoded


def fp32_run(a, _):
    return b"".join(struct.pack("<f", x) for x in a), serial_squares(a), a


class Options:
    def __init__(self, block=0, keep=0, bits=0):
        self.block, self.keep, self.bits = block, keep, bits


SHORT = (0, 3, 17)
LONG = (0, 1, 63, 65, 300, 4096, 4161)
# Codec, number, function, lengths, options.
CODECS = [
    ("fp32", 1, fp32_run, SHORT, [Options()]),
    ("bf16", 2, bf16_run, SHORT, [Options()]),
    ("int8", 3, int8_run, LONG, [Options(256)]),
    ("int8", 3, int8_run, (1025,), [Options(512), Options(1024)]),
    ("sparse", 4, sparse_run, LONG, [Options(0, 64, 2)]),
    ("sparse", 4, sparse_run, (100, 4100), [Options(0, keep, bits) for keep in (16, 32, 64, 128) for bits in (1, 2)]),
    ("int4", 6, int4_run, (1, 63, 65, 4097), [Options(64)]),
    ("int4", 6, int4_run, (259,), [Options(128), Options(256)]),
]


def line(name, number, run, options, n, seed):
    a = [value(seed, i) for i in range(n)]
    payload, energy, decoded = b"", 0, []
    for at in range(0, n, 4096):
        out, part, values = run(a[at:at + 4096], options)
        payload, energy, decoded = payload + out, energy + part, decoded + values
    energy = Fraction(energy) * (1 << 48 if isinstance(energy, float) else 1)
    size = (options.block or options.keep).bit_length() - 1 if options.block or options.keep else 0
    blob = b"DPU1" + struct.pack("<BBBBQQ", 2, number, size, options.bits, n, 0) + payload
    crc = zlib.crc32(struct.pack("<%df" % n, *decoded))
    print(name, options.block, options.keep, options.bits, n, seed, "%x" % math.floor(energy),
          "%08x" % crc, blob.hex())


def main():
    print("# made by make_codec.py: codec block keep bits elements input energy crc blob")
    seed = 0
    for name, number, run, lengths, options in CODECS:
        for o in options:
            for n in lengths:
                seed += 1
                line(name, number, run, o, n, seed)


main()
