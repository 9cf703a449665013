#!/usr/bin/env python3
"""Writes tokenizer_gpt2.json, tokenizer_llama3.json, tokenizer_qwen.json and tokenizer_vectors.txt beside itself, with
Hugging Face's `tokenizers` (PyPI): three small tokenizers of the kinds that dpnode reads, trained here on the sentences
below, and what that library makes of tricky texts.

A line of the vectors: kind, text in hexadecimal, ids; separated by tabs, ids by spaces. Made with tokenizers 0.23.3.
"""

import json
import os

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
VOCAB = 700

SENTENCES = [
    "The tide went out and left the boats lying on the sand, and nobody minded.",
    "We'll see what they've built; it's not what I'd have done, but they're happy, and I'm glad she'll stay.",
    "In 1999 there were 12345 of them, in 2026 only 17, and 3.14159 is not 22/7.",
    "if (count > 0) {\n    total += values[i];\n\treturn total / count;\n}\n\n\n",
    "Die Straße war naß, und über den Dächern hörte man Vögel; daß es früh war, störte keinen.",
    "Où est l'été dernier ? Là-bas, près de la forêt, où naît la rivière.",
    "Корабль вышел из гавани утром, и вечером его огни уже не были видны.",
    "Το πλοίο έφυγε νωρίς το πρωί και κανείς δεν το είδε ξανά.",
    "船は朝早く港を出て、夜にはもう見えなかった。猫が二匹、屋根の上にいた。",
    "배는 아침 일찍 항구를 떠났고 저녁에는 보이지 않았다.",
    "السفينة غادرت الميناء صباحا ولم يرها أحد في المساء.",
    "नाव सुबह बंदरगाह से निकली और शाम तक दिखाई नहीं दी।",
    "Emoji: \U0001F642 \U0001F680\U0001F680 \U0001F469\u200D\U0001F4BB and flags \U0001F1E9\U0001F1EA.",
]

TEXTS = [
    "", " ", "  ", "\n", "\r\n\r\n", "\t\t x", "a", " a", "a ", "  a  b   c    ",
    "I'll you'LL she'Ll we've THEY'VE it's It'S 'tis ain't I'm I'M he'd HE'D they're",
    "don't\u2019t 'S '\u017F '' ' ' ''' 'x",
    "0 1 12 123 1234 12345 123456 1,234,567.89 3.14e-10 0x1F \u0661\u0662\u0663\u0664 \u2167 \u00BD \u00B2",
    "if (x==1){\r\n\t y+=2; // done\r\n}\r\n", "a\n\n\nb \n \n c\t\n", "   \n   x", "x   \n\n   ", "end.\n", "!!!\n\n??",
    "...---...", "#include <stdio.h>\n\nint main(void)\n{\n    return 0;\n}\n",
    "naïve café Ångström Straße ẞ", "nai\u0308ve cafe\u0301 A\u030Angstro\u0308m",
    "\u1E9B\u0323 \u0344 q\u0307\u0323 \uFB01 \u2126 \u212B \u0958 \u1100\u1161\u11A8 \uAC00\u11A8 \u3099か",
    "a\u0301\u0328\u0316\u0301 e\u0327\u0301 \u0301 x",
    "Корабль Ёжик Е\u0308жик й и\u0306", "Το πλοίο ΆΈ", "船は朝早く。猫が二匹", "배는 아침", "السفينة غادرت", "नाव सुबह बंदरगाह",
    "ไทยไม่มีช่องว่าง", "\u05E9\u05C1\u05B8\u05DC\u05D5\u05B9\u05DD",
    "\U0001F642\U0001F680 \U0001F469\u200D\U0001F4BB\U0001F469\U0001F3FD \u2764\uFE0F \U0001F1E9\U0001F1EA",
    "a\u00A0b \u2003c\u3000d\u0085e\u180Ef\u200Bg\u2028h\uFEFFi\u1680j\u205Fk",
    "\u0000\u0001\u001B[0m\u007F\u009F\u00AD", "\U0010FFFF\uFFFD\uE000\U000E0041",
    "<|end|>", "a<|end|>b", " <|end|> ", "<|end|><|end|>", "<|end|", "<|endx|>", "<<|end|>>", "<|begin|><|end|>",
    "caf\u00E9!ok cafe\u0301!ok <|tool|> <|tool|>s", "fi<|end|>\u0301x e<|end|>\u0301",
    "x" * 200, "ab" * 150 + " " * 130 + "the " * 40, "=" * 99 + "\n", "\n" * 50 + "a", " " * 77 + "b", "é" * 120,
    "The quick brown fox jumps over the lazy dog, 7 times; \"why?\" — nobody knows… (really)\n",
] + SENTENCES


def split(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def make(kind):
    tokenizer = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    tokenizer.decoder = decoders.ByteLevel()
    if kind == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    elif kind == "llama3":
        tokenizer.pre_tokenizer = split(WORDS % r"\p{N}{1,3}")
    else:
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = split(WORDS % r"\p{N}")
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, show_progress=False, min_frequency=2,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(SENTENCES * 2, trainer)
    tokenizer.add_special_tokens(["<|end|>", "<|begin|>"])
    tokenizer.add_tokens([AddedToken("<|tool|>", normalized=False), AddedToken("<|tool|>s", normalized=False),
                          AddedToken("caf\u00E9!", normalized=True)])
    return tokenizer


def as_llama3(path):
    """Merges as pairs, as newer files have them; a word of the vocabulary that no merge makes; fewer merges than words."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    data["model"]["merges"] = [m if isinstance(m, list) else m.split(" ") for m in data["model"]["merges"]]
    del data["model"]["merges"][-40::2]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False, indent=1)


def as_gpt2(path):
    """Merges as lines, as older files have them, and no type, as GPT-2's own."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    data["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    del data["model"]["type"]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=True, indent=1)


def main():
    lines = []
    for kind in ("gpt2", "llama3", "qwen"):
        path = os.path.join(HERE, "tokenizer_%s.json" % kind)
        make(kind).save(path)
        if kind == "gpt2":
            as_gpt2(path)
        if kind == "llama3":
            as_llama3(path)
        tokenizer = Tokenizer.from_file(path)
        for text in TEXTS:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            lines.append("%s\t%s\t%s\n" % (kind, text.encode("utf-8").hex(), " ".join(map(str, ids))))
    with open(os.path.join(HERE, "tokenizer_vectors.txt"), "w", encoding="ascii") as file:
        file.writelines(lines)


if __name__ == "__main__":
    main()
