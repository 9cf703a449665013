#!/usr/bin/env python3
"""Writes tokenizer_kinds.json and tokenizer_kinds.txt beside itself, with Hugging Face's `tokenizers` (PyPI): small models,
trained here, within the normalizers, pre-tokenizers, decoders and flags that published models have, and what that library
makes of 300 hard texts with each of them. Made with tokenizers 0.23.3.

tokenizer_kinds.json: "models": by name, each a part "model" of tokenizer.json ("bytes" is that of tokenizer_gpt2.json);
"kinds": [{"name", "model", "flags": keys of the model that change, the other parts of tokenizer.json}].
Decoded text of kinds of bytes has added tokens as they are written; that library takes their characters for bytes.
tokenizer_kinds.txt: of each text a line "T hex", lines "I mask ids" and lines "D mask hex": the tokens, and the decoded text
where it is not the text itself, of the kinds whose bits are set in the hexadecimal mask."""

import base64
import json
import os
import random
import struct

from make_tokenizers import SENTENCES, TEXTS
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = "\u2581"
LEAST = 300

CASED = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]", "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BEFORE = "[^\\r\\n\\p{L}\\p{N}]?"
TAIL = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
PATTERNS = {
    "llama3": CONTRACTIONS + "|" + BEFORE + "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" + TAIL,
    "cl100k": "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|"
              "\\s+(?!\\S)|\\s+",
    "o200k": BEFORE + CASED[0] + "*" + CASED[1] + "+" + CONTRACTIONS + "?|" + BEFORE + CASED[0] + "+" + CASED[1] + "*" + CONTRACTIONS +
             "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" + TAIL,
    "tekken": BEFORE + CASED[0] + "*" + CASED[1] + "+|" + BEFORE + CASED[0] + "+" + CASED[1] + "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" +
              TAIL,
    "qwen2": CONTRACTIONS + "|" + BEFORE + "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" + TAIL,
    "qwen35": CONTRACTIONS + "|" + BEFORE + "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" + TAIL,
    "bloom": " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
    "ranges": "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
    "cjk": "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
    "v3cjk": "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "v3": "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" +
          TAIL,
    "odd": "(?<=[a-z])\\d{2,}|(?<!\\p{L})[\\p{L}&]{,3}(?=\\P{L})[^\\d]|\\p{Han}{2}|^\\s|(?:ab|c(?=d))+?|[\\x{41}-\\u0043[xyz]]*+\\.|.$",
}


def texts():
    """Of the scripts of the world, of what looks like a token, of spaces, digits, marks, emoji, controls; then random ones."""
    out = list(dict.fromkeys(TEXTS))
    out += [
        "<mask>", "a <mask> b", "a  <mask>", "\u3000<mask>x", "[rs]", "[rs]  \n x", "[rs]\n\n", "a[rs] [rs] b", "word", "a word.", "words",
        "sword", "word_", "_word", "word\u0301", "word\u200d", "\u200cword", "\u00e9word", "word word", "Caf\u00e9!", "Cafe\u0301!", "caf\u00e9!",
        "CAF\u00c9!", "xCaf\u00e9!x", "<s>", "</s>", "<s>a</s>", "<unk>", "a<unk>b", "<0x41>", "<0x0A>\n<0xZZ>", "[CLS] x [SEP]", "<pad>",
        "\u2581", "\u2581\u2581a", "a\u2581b", " \u2581 ", "\u2581<mask>", "\u2581 word", "``quoted''", "''", "`` ", "a`` ''b", "x '' ''",
        " a", "  a", "   a", "a ", "a  ", "a   ", " a ", "\na", "a\n", "\n a", " \n", "\t", "\r", "\r\n", "\r\n\r\na\r\rb", "a\r\n b", "\v\f",
        "\u00a0a", "a\u00a0", "\u2003 a \u2003", "\u3000\u3000", "\u1680x", "\u2028x\u2029y", "\u0085", "a\u200bb", "\ufeffa", "a\ufeff",
        "\u200e\u200f", "\u2060", "\u00ad", "co\u00adop", "\ufffd", "\ufffda\ufffd", "\u0000", "a\u0000b", "\u0001\u0002\u001f", "\u007f\u0080\u009f",
        "1", "12", "123", "1234", "1234567890", "1 2 3", "a1b2c3", "1a 22b 333c 4444d", "3.14159", "1,000,000", "\u0661\u0662\u0663", "\u096a\u096b",
        "\uff11\uff12\uff13", "\u00b2\u00b3\u00b9", "x\u00b2+y\u00b2", "\u00bc\u00bd\u00be", "\u2160\u2164\u2169", "\u2460\u2461", "\u3007\u4e00\u4e8c", "\U0001d7ce\U0001d7cf",
        "IX ix", "10%", "$5.00", "-7", "1e10", "0xff", "v2.0.1", "12:34:56", "2026-11-28",
        "I'm", "I'M", "I\u2019m", "we'Re", "'s", "'S", "s's", "'\u017f", "'LL'll'Ve", "O'Reilly's", "rock'n'roll", "''''", "'t'", "don\u0027T1",
        "CamelCaseWord", "camelCase", "HTTPServer", "iPhone", "McDonald", "ABCdef", "abcDEF", "\u01c5x", "x\u01c5", "\u1c90\u10d0", "\u02b0a", "a\u02b0A",
        "foo/bar", "foo//bar/\n", "/usr/bin", "a/\r\n/", "http://example.com/?q=1&r=%20#x", "user@example.com", "#tag", "a_b_c", "a-b", "a--b", "a \u2014 b",
        "(a)", "[a]", "{a}", "<a>", "<a", "a>", "(a.b)", ".a", "..a", "...", "\u2026", "!?", "\u00bfa?", "\u00a1a!", "\u00aba\u00bb", "\u201ca\u201d", "\uff08a\uff09",
        "if(x){\n\ty++;\n}\n", "\tdef f(x):\n\t\treturn x\n", "a = b\t# c", "/* c */", "// c", "x += 1;", "{\"k\": [1, 2]}", "<b>x</b>", "\\n\\t\\\\", "a\\",
        "aaa", "aaaaaaaaaaaaaaaaaaaaaaaaa", "ababababab", "\u00e9\u00e9\u00e9", "e\u0301e\u0301", "e\u0301\u0302\u0303", "\u0301", "\u0301\u0301", " \u0301", "a\u0301 b", "\u0344",
        "\u212b", "\u00c5", "A\u030a", "\u2126", "\u1e9b\u0323", "\ufb01", "\ufb01\u0301", "\ufb03x", "\u0149", "\u01f0", "\u1e9e", "\u0130", "\u0131", "I\u0307", "\u03a3\u03c3\u03c2",
        "\u039f\u0394\u039f\u03a3 \u03bf\u03b4\u03bf\u03c3", "\u1fb3\u0345", "\ufdfa", "\ufdfa\ufdfa x", "\u3314\u3314", "\u3300", "\u2121", "\u2122", "\u00aa\u00ba", "\u00b5", "\u017f", "\u1e9b",
        "\uff21\uff22", "\uff76\uff9e", "\uff8a\uff9f", "\u30ab\u3099", "\u30cf\u309a", "\u304c\u304b\u3099", "\u3042\u30fc", "\u6f22\u5b57\u304b\u306a\u4ea4\u3058\u308a\u6587", "\u6f22 \u5b57",
        "\uf900", "\U0002f800", "\U00020000\U00020001", "\u4e2d\u6587\uff0c\u6d4b\u8bd5\u3002", "\u4f60\u597d\u4e16\u754c123", "\u3400\u4dbf", "\u0800\u1234\ud7ff",
        "\uac00\uac01", "\u1100\u1161", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u3131\u314f", "\ud55c\uad6d\uc5b4 \ubb38\uc7a5", "\ua960\ud7b0",
        "\u0e01\u0e33\u0e44\u0e17\u0e22", "\u0e33", "\u0e4d\u0e32", "\u0eb3", "\u0f43\u0f71\u0f72", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0958\u0959", "\u0915\u093c", "\u09dc", "\u0ba8\u0bbf",
        "\u0c28\u0c2e", "\u0d28\u0d4d\u200d", "\u1019\u103c\u1014\u103a\u1019\u102c", "\u1780\u17d2\u1781", "\u1218\u1230", "\u10d0\u10d1", "\u0531\u0561", "\u05e9\u05b8\u05c1", "\ufb2a", "\u0627\u0644\u0633\u0644\u0627\u0645",
        "\u0644\u0627", "\ufefb", "\u0622", "\u0627\u0653", "\u06a9\u06af", "\u202e\u05d0\u202c", "\u13a0\uab70", "\u16a0\u16a1", "\u2c00\u2c30", "\U00010400\U00010428", "\U00012000", "\U00013000",
        "\U0001f642", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3ff", "\U0001f1e9\U0001f1ea\U0001f1eb", "\u2764\ufe0f\u200d\U0001f525", "1\ufe0f\u20e3", "\u2615\ufe0e", "a\U0001f642b",
        "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001d400\U0001d552", "\u2102\u210d", "\u2211\u222b\u2202", "\u2190\u21d2", "\u2500\u2588", "\ue000\uf8ff", "\U000f0000", "\U0010ffff", "\ufdd0\uffff",
        "\u00df\u1e9e\u00df", "\u00e6\u0153\u00f8\u0142\u0111\u00fe", "na\u00efve na\u0131ve", "\u0410\u0411\u0412 \u0430\u0431\u0432", "\u0439\u0438\u0306", "\u0451\u0435\u0308", "\u0490\u0404\u0457", "\u1ea5\u1ec7 Vi\u1ec7t",
        "Vie\u0323\u0302t", "\u0103\u0306", "\u01d6\u01d8", "u\u0308\u0304", "o\u031b\u0323", "q\u0307\u0323", "q\u0323\u0307", "\u0f71\u0f74", "a\u0315\u0300\u05ae\u0300\u0062",
        " " * 2 + "x" + " " * 3 + "y" + " " * 17 + "z", "x" + " " * 64, "\n" * 9, "\t" * 5 + "x", " \t \n \r ", "-" * 40, "=" * 7 + ">", "." * 33, "\u3002" * 5, "ab " * 20,
        "The tide went out and left the boats", "the-tide_went.out", "THE TIDE", "thetide", "tide<mask>tide", "<|end|>word<|end|>", "x<|end|>\n<|end|> y", "[rs]<mask>[rs]",
    ]
    out = list(dict.fromkeys(out))
    rng = random.Random(58)
    ranges = ((32, 126), (32, 126), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x52f), (0x590, 0x6ff), (0x900, 0xdff), (0xe00, 0xeff), (0x1100, 0x11ff),
              (0x1e00, 0x206f), (0x2100, 0x218f), (0x2460, 0x24ff), (0x3000, 0x33ff), (0x4e00, 0x4fff), (0xac00, 0xacff), (0xf900, 0xfaff), (0xfb00, 0xfdff),
              (0xfe30, 0xffef), (0x1d400, 0x1d7ff), (0x1f300, 0x1f6ff))
    while len(out) < LEAST or rng.random() < 0.9:
        runs = []
        for _ in range(rng.randrange(1, 7)):
            first, last = rng.choice(ranges)
            runs.append("".join(chr(rng.randint(first, last)) for _ in range(rng.randrange(1, 6))))
            runs.append(rng.choice(("", " ", "  ", "\n", "\r\n", "'s", "12", "<|end|>", "<mask>", " word ")))
        out.append("".join(runs))
    return out


# ---- Models.

def trained_bytes():
    with open(os.path.join(HERE, "tokenizer_gpt2.json"), encoding="utf-8") as file:
        return json.load(file)["model"]


BYTES = ["<0x%02X>" % i for i in range(256)]


def trained_characters(cut):
    """As SentencePiece trains: words begin with a mark, rare characters have no token. Not cut: tokens cross words."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    if cut:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "never")
    trainer = trainers.BpeTrainer(vocab_size=3 + 256 + (330 if cut else 150), show_progress=False, limit_alphabet=100,
                                  special_tokens=["<unk>", "<s>", "</s>"] + BYTES)
    tokenizer.train_from_iterator(SENTENCES * 2, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    if cut:
        for size in (1, 2, 4, 8):
            if MARK * 2 * size not in model["vocab"]:
                model["vocab"][MARK * 2 * size] = len(model["vocab"])
            model["merges"].append([MARK * size, MARK * size])
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        model.pop(key, None)
    return model


def trained_unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "always")
    trainer = trainers.UnigramTrainer(vocab_size=420, show_progress=False, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>")
    tokenizer.train_from_iterator(SENTENCES * 4 + [s.lower() for s in SENTENCES], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    model["vocab"] = [[token, round(score, 6)] for token, score in model["vocab"]] + [[b, 0.0] for b in BYTES]
    return {"type": "Unigram", "unk_id": 2, "vocab": model["vocab"], "byte_fallback": False}


# ---- A character map, in the form of SentencePiece.

RULES = {"\uff21": "A", "\uff22": "B", "\uff08": "(", "\uff09": ")", "\ufb01": "fi", "\ufb03": "ffi", "e\u0301": "\u00e9", "\u212b": "\u00c5", "\t": " ",
         "\n": " ", "\r": " ", "\u00a0": " ", "\u200b": " ", "\ufeff": "", "\u00ad": "", "\u3000": " ", "\uff8a\uff9f": "\u30d1", "\uff76": "\u30ab",
         "\u3314": "\u30ad\u30ed", "\u2026": "...", "\u00bd": "1\u20442", "\u0130": "I", "\u1100\u1161": "\uac00", "\U0001d400": "A", "\u0001": "",
         "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647", "\uff11": "1", "\u2102": "C"}


def charsmap(rules):
    """u32 size of the trie, the trie as a double array (units as in compute/unicode/charsmap.h), texts that end with NUL."""
    values, place = b"", {}
    for text in sorted(set(rules.values())):
        place[text] = len(values)
        values += text.encode("utf-8") + b"\0"
    tree = {}
    for key, text in rules.items():
        node = tree
        for byte in key.encode("utf-8"):
            node = node.setdefault(byte, {})
        node[0] = place[text]
    units, used = {0: 0}, {0}
    queue = [(0, tree)]
    while queue:
        at, node = queue.pop(0)
        base = 1
        while any((base ^ byte) in used for byte in node) or at ^ base >= 1 << 21:
            base += 1
        units[at] |= (at ^ base) << 10 | (0x100 if 0 in node else 0)
        for byte in node:
            used.add(base ^ byte)
        for byte, below in node.items():
            if byte == 0:
                units[base] = 1 << 31 | below
            else:
                units[base ^ byte] = byte
                queue.append((base ^ byte, below))
    array = [units.get(i, 0) for i in range(max(units) + 256)]
    return base64.b64encode(struct.pack("<I", 4 * len(array)) + struct.pack("<%dI" % len(array), *array) + values).decode("ascii")


# ---- Kinds.

def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def split(name, behavior="Isolated", invert=False, literal=False):
    pattern = {"String": name} if literal else {"Regex": PATTERNS.get(name, name)}
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def metaspace(scheme, cut=True):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": cut}


def replace(what, content, regex=False):
    return {"type": "Replace", "pattern": {"Regex" if regex else "String": what}, "content": content}


def bare(*types):
    return [{"type": name} for name in types]


def added(first):
    """Tokens that models add; ids from first."""
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    wanted = (("<|end|>", "00001"), ("<mask>", "01001"), ("[rs]", "00101"), ("word", "10010"), ("Caf\u00e9!", "00010"), ("<|tool|>", "00000"))
    return [dict([("id", first + i), ("content", text)] + [(flag, bit == "1") for flag, bit in zip(flags, bits)])
            for i, (text, bits) in enumerate(wanted)]


def ends(before, after):
    """TemplateProcessing around one text."""
    def one(name):
        return {"SpecialToken": {"id": name, "type_id": 0}}
    single = [one(name) for name in before] + [{"Sequence": {"id": "A", "type_id": 0}}] + [one(name) for name in after]
    return {"type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {name: {"id": name, "ids": [number], "tokens": [name]} for name, number in {**before, **after}.items()}}


def kinds():
    """Each: name, model, changed flags of the model, normalizers, pre-tokenizers, decoders, post-processor."""
    bytes_decoder = [byte_level(True, True)]
    llama_decoder = [replace(MARK, " "), *bare("ByteFallback", "Fuse"), {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    gemma_decoder = [replace(MARK, " "), *bare("ByteFallback", "Fuse")]
    digits = {"type": "Digits", "individual_digits": True}
    rules = {"type": "Precompiled", "precompiled_charsmap": charsmap(RULES)}
    two = replace(" {2,}", " ", True)
    quotes = [replace("``", "\""), replace("''", "\"")]
    return [
        ("roberta", "bytes", {}, [], [byte_level(True, True)], bytes_decoder, None),
        ("neox", "bytes", {}, bare("NFC"), [byte_level(False, True)], bytes_decoder, None),
        ("llama3", "bytes", {"ignore_merges": True}, [], [split("llama3"), byte_level()], bytes_decoder, None),
        ("cl100k", "bytes", {}, [], [split("cl100k", "Removed", True), byte_level()], bytes_decoder, None),
        ("o200k", "bytes", {}, [], [split("o200k"), byte_level()], bytes_decoder, None),
        ("tekken", "bytes", {}, [], [split("tekken"), byte_level()], bytes_decoder, None),
        ("qwen2", "bytes", {}, bare("NFC"), [split("qwen2"), byte_level()], bytes_decoder, None),
        ("qwen35", "bytes", {}, bare("NFC"), [split("qwen35"), byte_level()], bytes_decoder, None),
        ("deepseek-coder", "bytes", {}, [], [split("[\r\n]"), split("\\s?\\p{L}+"), split("\\s?\\p{P}+"), split("cjk"), digits, byte_level()],
         bytes_decoder, None),
        ("deepseek-llm", "bytes", {}, [], [split("[\r\n]"), split("\\s?[A-Za-z\u00b5\u00c0-\u00d6\u0400-\u04ff]+"), split("ranges"),
                                           split("\\s+$"), split("cjk"), digits, byte_level()], bytes_decoder, None),
        ("deepseek-v3", "bytes", {}, [], [split("\\p{N}{1,3}"), split("v3cjk"), split("v3"), byte_level()], bytes_decoder, None),
        ("smollm", "bytes", {}, [], [digits, byte_level(False, True)], bytes_decoder, None),
        ("bloom", "bytes", {}, [], [split("bloom"), byte_level()], bytes_decoder, None),
        ("odd-bytes", "bytes", {}, bare("NFKC", "StripAccents"), [split("odd"), {"type": "Punctuation", "behavior": "Contiguous"},
                                                                 {"type": "Digits", "individual_digits": False}, byte_level(True)],
         bytes_decoder, None),
        ("llama2", "characters", {}, [{"type": "Prepend", "prepend": MARK}, replace(" ", MARK)], [], llama_decoder, "llama"),
        ("mistral", "characters", {}, [], [metaspace("first", False)], llama_decoder, "llama"),
        ("gemma", "characters", {}, [replace(" ", MARK)], [split(" ", "MergedWithPrevious", literal=True)], gemma_decoder, "llama"),
        ("spm", "characters", {"fuse_unk": False, "byte_fallback": False},
         [rules, replace("\\A +| +\\z", "", True), two, replace(" ", MARK), replace("\\A" + MARK, MARK * 2, True)],
         [metaspace("first", False), split("tide|\\(a\\)|the\\-", "Isolated")], llama_decoder, "llama"),
        ("crossing", "crossing", {"byte_fallback": False}, bare("NFKC", "Lowercase"), [metaspace("never", False)], [metaspace("never")], None),
        ("vanishing", "crossing", {"byte_fallback": False, "unk_token": None, "ignore_merges": True}, bare("NFD"), [metaspace("always")],
         [metaspace("always")], None),
        ("t5", "unigram", {}, [rules], [*bare("WhitespaceSplit"), metaspace("always")], [metaspace("always")], "t5"),
        ("xlnet", "unigram", {}, [*quotes, *bare("NFKD", "StripAccents"), rules, two], [metaspace("always")], [metaspace("always")], "xlnet"),
        ("albert", "unigram", {}, [*quotes, *bare("NFKD", "StripAccents", "Lowercase"), rules, two], [metaspace("first")], [metaspace("first")],
         "albert"),
        ("xlm-r", "unigram", {"byte_fallback": True}, [rules, {"type": "Strip", "strip_left": False, "strip_right": True},
                                                      replace(" {2,}", MARK, True)], [metaspace("first", False)], llama_decoder, "t5"),
        ("deberta", "unigram", {}, [*bare("Lowercase"), {"type": "Strip", "strip_left": True, "strip_right": True}, rules, two],
         [{"type": "Punctuation", "behavior": "Isolated"}, metaspace("first")], [metaspace("first")], None),
        ("odd-unigram", "unigram", {"byte_fallback": True}, bare("Nmt", "NFKC"),
         [*bare("Whitespace"), {"type": "CharDelimiterSplit", "delimiter": "-"}, split("[aeiou]", "Contiguous"), split("t", "MergedWithNext", True),
          metaspace("always")], [], None),
    ]


def listed(items, name):
    return None if not items else items[0] if len(items) == 1 else {"type": "Sequence", name: items}


def make_kind(kind, trained):
    """The parts of tokenizer.json of a kind."""
    name, model, flags, normal, pieces, decoder, around = kind
    vocab = trained[model]["vocab"]
    first = 700 if model == "bytes" else len(vocab)
    post = None
    if around == "llama":
        post = {"type": "Sequence", "processors": [byte_level(True, True), ends({"<s>": 1}, {})]}
    elif around == "albert":
        post = {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<pad>", 0], "trim_offsets": True, "add_prefix_space": True}
    elif around is not None:
        post = ends({}, {"</s>": 1} if around == "t5" else {"</s>": 1, "<unk>": 2})
    tokens = added(first)
    if name == "gemma":
        for text in (MARK * 2, "tide"):
            number = vocab.get(text, first + sum(token["id"] >= first for token in tokens))
            tokens.append(dict(tokens[0], content=text, id=number, special=False))
    for text in ("<s>", "</s>") if around is not None and model == "characters" else ():
        tokens.append(dict(tokens[0], content=text, id=vocab[text]))
    return {"name": name, "model": model, "flags": flags, "added_tokens": sorted(tokens, key=lambda token: token["id"]),
            "normalizer": listed(normal, "normalizers"), "pre_tokenizer": listed(pieces, "pretokenizers"), "post_processor": post,
            "decoder": listed(decoder, "decoders")}


def tokenizer_json(kind, trained):
    root = {"version": "1.0", "truncation": None, "padding": None}
    root.update({key: kind[key] for key in ("added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder")})
    root["model"] = {**trained[kind["model"]], **kind["flags"]}
    return json.dumps(root, ensure_ascii=False)


def trained_models():
    """Those of tokenizer_kinds.json, if it is there: training draws by chance, and new models would change every line."""
    path = os.path.join(HERE, "tokenizer_kinds.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return {"bytes": trained_bytes(), **json.load(file)["models"]}
    return {"bytes": trained_bytes(), "characters": trained_characters(True), "crossing": trained_characters(False), "unigram": trained_unigram()}


def grouped(letter, values):
    """Lines of a text: equal values once, with the mask of their kinds; None: no line."""
    masks = {}
    for i, value in enumerate(values):
        if value is not None:
            masks[value] = masks.get(value, 0) | 1 << i
    return ["%s %x %s\n" % (letter, mask, value) for value, mask in masks.items()]


def decoded(tokenizer, kind, ids):
    """What the library gives, but for added tokens of other characters than ASCII among bytes."""
    parts, run = [], []
    ours = {token["id"]: token["content"] for token in kind["added_tokens"] if not token["content"].isascii()} if kind["model"] == "bytes" else {}
    if not any(i in ours for i in ids):
        return tokenizer.decode(ids, skip_special_tokens=False)
    for i in ids + [None]:
        if i is None or i in ours:
            parts += [tokenizer.decode(run, skip_special_tokens=False), ours.get(i, "")]
            run = []
        else:
            run.append(i)
    return "".join(parts)


def main():
    trained = trained_models()
    made = [make_kind(kind, trained) for kind in kinds()]
    theirs = [Tokenizer.from_str(tokenizer_json(kind, trained)) for kind in made]
    lines = []
    for text in texts():
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for tokenizer in theirs]
        back = [decoded(tokenizer, kind, i) for tokenizer, kind, i in zip(theirs, made, ids)]
        lines.append("T %s\n" % text.encode("utf-8").hex())
        lines += grouped("I", [" ".join(map(str, i)) for i in ids])
        lines += grouped("D", [None if b == text else b.encode("utf-8").hex() for b in back])
    with open(os.path.join(HERE, "tokenizer_kinds.json"), "w", encoding="utf-8") as file:
        models_kept = {name: model for name, model in trained.items() if name != "bytes"}
        json.dump({"models": models_kept, "kinds": made}, file, ensure_ascii=False, indent=0, separators=(",", ":"))
        file.write("\n")
    with open(os.path.join(HERE, "tokenizer_kinds.txt"), "w", encoding="ascii") as file:
        file.writelines(lines)


if __name__ == "__main__":
    main()
