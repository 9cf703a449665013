#!/usr/bin/env python3
"""GGUF files that we write give the same logits and the same tokens in llama.cpp, and gguf's own reader finds in them what we
meant. test_llama_cpp.py FOLDER_OF_BINARIES; says what is missing and ends with 77 where llama-cpp-python and gguf are not
installed."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))

# Kinds of engine_logits, and llama.cpp's names of them.
KINDS = {"gpt2": "gpt2", "gpt2-untied": "gpt2", "llama": "llama", "llama-gqa": "llama", "llama-tied": "llama", "llama3": "llama",
         "qwen2": "qwen2", "qwen3": "qwen3", "smollm3": "smollm3", "phi3-plain": "phi3", "phi4": "phi3", "olmo2": "olmo2",
         "gemma2-plain": "gemma2", "gemma3": "gemma3", "neox": "gptneox"}
# Of the standard deviation of the logits. F32: llama.cpp takes its GELU from a table of halves, and keeps q, k and v of a
# head as halves when it is told nothing else. The others round the weights themselves, to 11, 8 and 7 bits.
LIMITS = {"f32": 2e-3, "f16": 1e-2, "bf16": 8e-2, "q8_0": 1e-1}
MARK = "\u2581"


def check_structure(path, kind):
    """Checks the file with gguf's reader."""
    import gguf

    reader = gguf.GGUFReader(path)
    fields = reader.fields
    arch = fields["general.architecture"].contents()
    assert arch == KINDS[kind], arch
    assert len(fields["tokenizer.ggml.tokens"].contents()) == fields[f"{arch}.vocab_size"].contents()
    names = {tensor.name for tensor in reader.tensors}
    known = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, arch.upper()), 4).mapping.values()
    assert names <= {name + end for _, name in known for end in (".weight", ".bias")}, names


def difference(path, ours):
    """The largest difference of a logit over their standard deviation."""
    import llama_cpp
    import numpy

    model = llama_cpp.Llama(path, n_ctx=32, logits_all=True, verbose=False, type_k=0, type_v=0, flash_attn=False, n_threads=1,
                            swa_full=True)
    model.eval(ours["tokens"])
    theirs = numpy.array(model.scores[:len(ours["tokens"])])
    logits = numpy.array(ours["logits"])
    return float(numpy.abs(theirs - logits).max() / logits.std())


def logits_differ(binaries):
    """Prints a line for each kind and type; returns how many are above their limit."""
    failed = 0
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.join(binaries, "engine_logits"), kind, folder], capture_output=True, check=True)
            ours = json.loads(done.stdout)
            for name, limit in LIMITS.items():
                path = os.path.join(folder, f"{name}.gguf")
                check_structure(path, kind)
                off = difference(path, ours)
                failed += not off <= limit
                print(f"{kind:12} {name:5} largest difference {off:.2e} of a deviation", "" if off <= limit else f"ABOVE {limit}",
                      flush=True)
    return failed


def sentencepiece(prefix, metaspace):
    """A tokenizer as SentencePiece's BPE becomes one: each split of a token is a merge, in the order of the tokens."""
    words = ["th", "he", "the", MARK + "t", MARK + "th", MARK + "the", "in", "ing", MARK + "a", MARK + MARK, MARK * 4, "an", "and",
             MARK + "and", "\u00e9t", "ou", MARK + "w", MARK + "wor", "wo", "or", "wor", "ld", "rld", "world", MARK + "world", "..", "...."]
    chars = sorted({c for word in words for c in word} | set("abcdefghijklmnopqrstuvwxyzTHE.,'!0123456789\n"))
    vocab = {}
    for token in ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + words + chars:
        vocab.setdefault(token, len(vocab))
    merges = [[word[:i], word[i:]] for word in words for i in range(1, len(word)) if word[:i] in vocab and word[i:] in vocab]
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    prepend = {"type": "Prepend", "prepend": MARK}
    normalizer = None if metaspace else {"type": "Sequence", "normalizers": [prepend, replace]} if prefix else replace
    pieces = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": False} if metaspace else None
    special = [{"id": vocab[name], "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for name in ("<unk>", "<s>", "</s>")]
    return {"version": "1.0", "added_tokens": special, "normalizer": normalizer, "pre_tokenizer": pieces,
            "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": MARK}, "content": " "},
                                                         {"type": "ByteFallback"}, {"type": "Fuse"}]},
            "post_processor": None,
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                      "vocab": vocab, "merges": merges}}


def tokenizers():
    """Name, tokenizer.json, and the texts for it: llama.cpp normalises none, and knows later Unicode than the others."""
    import make_tokenizer_kinds as kinds

    trained = kinds.trained_models()
    # It takes no spaces beside an added token into it, and finds one inside a word too.
    apart = ("<mask>", "[rs]", "word", "\0")
    texts = [text for text in kinds.texts() if text.isascii() and not any(token in text for token in apart)]
    wide = texts + ["\u00e9t\u00e9 world", "\u4e2d\u6587 the", "the\u00a0and", "\U0001f642 ing", "\u0434\u0430 the world"]
    # Where a mark is put in front of the first word that has none, llama.cpp puts one there always, and behind special tokens.
    inner = [text for text in wide if not text.startswith(" ") and "<s>" not in text and "<unk>" not in text]
    for kind in kinds.kinds():
        if kind[0] in ("neox", "llama3", "qwen2", "smollm"):
            yield kind[0], kinds.tokenizer_json(kinds.make_kind(kind, trained), trained), texts
    yield "sentencepiece, mark in front", json.dumps(sentencepiece(True, False)), wide
    yield "sentencepiece, no mark", json.dumps(sentencepiece(False, False)), wide
    yield "sentencepiece, metaspace", json.dumps(sentencepiece(False, True)), inner


def tokens_differ(binaries):
    """Prints a line for each tokenizer; returns how many have other tokens in llama.cpp."""
    import llama_cpp

    failed = 0
    for name, tokenizer, texts in tokenizers():
        with tempfile.TemporaryDirectory() as folder:
            for file, text in (("tokenizer.json", tokenizer), ("texts.json", json.dumps(texts))):
                with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                    out.write(text)
            done = subprocess.run([os.path.join(binaries, "engine_logits"), "words", folder], capture_output=True, check=False)
            if done.returncode != 0:
                print(f"{name}: {done.stderr.decode()}")
                failed += 1
                continue
            model = llama_cpp.Llama(os.path.join(folder, "words.gguf"), vocab_only=True, verbose=False)
            assert model.metadata["tokenizer.chat_template"] == "{{ bos_token }}"
            other = [(text, ours, theirs) for text, ours in zip(texts, json.loads(done.stdout))
                     if ours != (theirs := model.tokenize(text.encode(), add_bos=False, special=True))]
            failed += bool(other)
            print(f"{name:30} {len(texts) - len(other)} of {len(texts)} texts have the same tokens", *other[:3], sep="\n  ", flush=True)
    return failed


def main():
    try:
        import gguf  # noqa: F401
        import tokenizers  # noqa: F401
        import llama_cpp  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    failed = logits_differ(sys.argv[1]) + tokens_differ(sys.argv[1])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
