#!/usr/bin/env python3
"""Texts become the same tokens as with Hugging Face's tokenizers, for tokenizer.json of the kinds of GPT-2, Llama-3 and Qwen
made by that library here, for one that we train and it reads, and for the parts of all published models. test_tokenizers.py FOLDER_OF_BINARIES; the texts are the
documentation and random ones of all scripts, of seed 1. Ends with 77 where tokenizers are not installed."""

import importlib
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# First and last of ranges to draw from: ASCII, Latin, marks, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, jamo, spaces,
# signs, kana, han, hangul, wide forms, emoji, and what nobody has assigned.
RANGES = ((0, 127), (32, 126), (32, 126), (32, 126), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x590, 0x5F4),
          (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE5B), (0x1100, 0x11FF), (0x2000, 0x206F), (0x2100, 0x214F), (0x3000, 0x30FF),
          (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFF00, 0xFFEF), (0x1F300, 0x1FAFF), (0xE0000, 0x10FFFF))
TEXTS = 120
KINDS_TEXTS = 60
PATTERNS = 300


def golden(name):
    """A module of tests/golden, which makes tokenizers."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(ROOT, "tests/golden"))
    return importlib.import_module(name)


def old_texts():
    """Without characters younger than Unicode 3.2: libraries have tables of different versions."""
    for number, text in enumerate(texts()):
        if number < KINDS_TEXTS:
            yield "".join(c for c in text if unicodedata.ucd_3_2_0.category(c) != "Cn")


def texts():
    rng = random.Random(1)
    for name in ("README.md", "docs/ARCHITECTURE.md", "docs/PROTOCOL.md"):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            yield file.read()
    for _ in range(TEXTS):
        runs = []
        for _ in range(rng.randrange(1, 40)):
            first, last = rng.choice(RANGES)
            runs.append("".join(chr(rng.randint(first, last)) for _ in range(rng.randrange(1, 8))))
            runs.append(rng.choice(("", " ", "  ", "\n", "\t", "'s", "123", "<|end|>", "<|tool|>s", "caf\u00e9!")))
        yield "".join(runs)


def ours(binaries, tokenizer, text, folder):
    path = os.path.join(folder, "text.txt")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    done = subprocess.run([os.path.join(binaries, "dpnode-worker"), "data", "encode", tokenizer, path], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"encode: {done.stderr.strip()}")
    return [int(word) for word in done.stdout.replace("[", " ").replace("]", " ").replace(",", " ").split() if word.isdigit()]


def compare(binaries, kind, path, folder, given):
    """Texts that differ."""
    from tokenizers import Tokenizer

    theirs, differ, tokens = Tokenizer.from_file(path), 0, 0
    for text in given:
        expected = theirs.encode(text, add_special_tokens=False).ids
        tokens += len(expected)
        if ours(binaries, path, text, folder) != expected:
            differ += 1
            print(f"{kind}: differs: {text[:60]!r}")
    print(f"{kind:14} {tokens} tokens, {differ} texts differ", flush=True)
    return differ


# ---- Random patterns, which both find the same matches of, or dpnode refuses.

PIECES = ("a", "1", " ", "\\.", "e", "\u00e9", "\u4e00", "\\s", "\\S", "\\d", "\\D", "\\p{L}", "\\p{N}", "\\p{P}", "\\P{L}", "\\p{Han}", "\\p{^M}", ".",
          "\\n", "\\u3042", "$", "^", "\\A", "\\z", "(?i:'s)", "(?i:k|[sdmt])")
ITEMS = ("a-z", "A-Z", "0-9", "\\s", "\\d", "\\p{L}", "\\p{N}", "\\r\\n", " ", "'", "[abc]", "[\\s.]", "\u4e00-\u9fa5", "!-/", "\\-", "\\]", ".")
REPEATS = ("", "", "", "?", "*", "+", "+?", "??", "++", "?+", "{2}", "{1,3}", "{,2}", "{2,}")
BEHAVIORS = ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext")


def random_pattern(rng, depth):
    def atom():
        drawn = rng.random()
        if drawn < 0.5 or depth == 0:
            return rng.choice(PIECES)
        if drawn < 0.8:
            return "[" + rng.choice(("", "^")) + "".join(rng.sample(ITEMS, rng.randrange(1, 4))) + "]"
        return rng.choice(("(?:", "(", "(?=", "(?!", "(?<=", "(?<!")) + random_pattern(rng, depth - 1) + ")"

    def sequence():
        return rng.choice(("", "a", "\\s", "[a-z]", "\\p{L}")) + "".join(atom() + rng.choice(REPEATS) for _ in range(rng.randrange(1, 4)))
    return "|".join(sequence() for _ in range(rng.randrange(1, 4)))


def compare_patterns(binaries, made, all_kinds, folder):
    """Patterns that differ."""
    from tokenizers import Tokenizer

    rng, trained, differ, same, refused = random.Random(3), {"bytes": all_kinds.trained_bytes()}, 0, 0, 0
    kind = all_kinds.make_kind(next(kind for kind in all_kinds.kinds() if kind[0] == "smollm"), trained)
    text = "".join("".join(made.TEXTS[:40]).split("<|end|>"))
    path = os.path.join(folder, "pattern.json")
    for _ in range(PATTERNS):
        pattern = random_pattern(rng, 2)
        step = all_kinds.split(pattern, rng.choice(BEHAVIORS), rng.random() < 0.2)
        kind["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [step, all_kinds.byte_level()]}
        root = all_kinds.tokenizer_json(kind, trained)
        with open(path, "w", encoding="utf-8") as file:
            file.write(root)
        try:
            tokens = ours(binaries, path, text, folder)
            expected = Tokenizer.from_str(root).encode(text, add_special_tokens=False).ids
        except (SystemExit, Exception) as problem:  # pylint: disable=broad-except
            if not str(problem).startswith(("encode: tokenizer.json: pre_tokenizer", "encode: ", "Oniguruma error")):
                raise
            refused += 1
            continue
        same += tokens == expected
        if tokens != expected:
            differ += 1
            print(f"differs: {step['behavior']} {step['invert']} {pattern!r}")
    print(f"patterns       {same} the same, {refused} refused, {differ} differ", flush=True)
    return differ + (same < PATTERNS // 5)


def main():
    try:
        import tokenizers  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    differ, made, all_kinds = 0, golden("make_tokenizers"), golden("make_tokenizer_kinds")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("gpt2", "llama3", "qwen"):
            path = os.path.join(folder, f"{kind}.json")
            made.make(kind).save(path)
            differ += compare(sys.argv[1], kind, path, folder, texts())
        trained = all_kinds.trained_models()
        for kind in all_kinds.kinds():
            path = os.path.join(folder, f"{kind[0]}.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(all_kinds.tokenizer_json(all_kinds.make_kind(kind, trained), trained))
            differ += compare(sys.argv[1], kind[0], path, folder, old_texts())
        differ += compare_patterns(sys.argv[1], made, all_kinds, folder)
        subprocess.run([os.path.join(sys.argv[1], "dpnode"), "data", "tokenize", os.path.join(ROOT, "docs/FORMATS.md"), "--out",
                        os.path.join(folder, "own"), "--vocab", "800"], check=True, stdout=subprocess.DEVNULL)
        differ += compare(sys.argv[1], "own", os.path.join(folder, "own", "tokenizer.json"), folder, texts())
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
