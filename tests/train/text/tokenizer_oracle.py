#!/usr/bin/env python3
"""Asks the `tokenizers` package for what test_tokenizer_oracle.c compares with: classes of characters, and ids.

    tokenizer_oracle.py OUT COUNT SEED TOKENIZER...     exit status 77 (skipped) where python has no tokenizers 0.21
    tokenizer_oracle.py --table                         prints the runs of train/text/unicode.c

Writes OUT/classes (a byte for each code point: 0 other, 1 letter, 2 number, 3 white space, and 4 more for parts of
words; 255: not asked), OUT/made-N.json (tokenizers with added tokens of every kind), and,
for these and each TOKENIZER (a
tokenizer.json, or a folder with vocab.json and merges.txt, for which the package transformers is needed), OUT/N.cases
with OUT/N.path: COUNT texts in all, each as its length, its UTF-8, the number of ids and the ids, 32 bits little-endian
each.
"""
import os
import random
import struct
import sys

try:
    import tokenizers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers, AddedToken
except ImportError:
    print("skipped: python has no tokenizers")
    sys.exit(77)
if not tokenizers.__version__.startswith("0.21."):
    print("skipped: tokenizers %s; ids are compared as version 0.21 has them" % tokenizers.__version__)
    sys.exit(77)

SPACES = [chr(c) for c in [9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, 0x2003, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]]
ODD = [chr(c) for c in [0, 0x1C, 0x1D, 0x1E, 0x1F, 0x7F, 0xAD, 0x180E, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0xFFFD,
                        0xFFFF, 0x10FFFF, 0x300, 0x301, 0x0903, 0x20E3, 0xFE0F, 0x1F3FD, 0x1F468, 0x203F, 0x2160,
                        0x24B6, 0x00B2, 0x00BD, 0x0660, 0x3007, 0x4E00, 0x1C89, 0xA7CB, 0x105C0, 0x11BC0, 0x1E5F0]]
SHORT = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'x", "'", "''", "'r", "'l", "'v", "' s", "\u2019s"]
WORDS = ("the a of dog dogs running caf\u00e9 na\u00efve Stra\u00dfe \u041c\u043e\u0441\u043a\u0432\u0430 \u6771\u4eac"
         " 12 "
         "3.14 2,000 -- ... ?! (x) e-mail aaaa aaaaaaaaa hellohello it's don't WE'LL").split()
SPECIAL = ["<s>", "</s>", "<pad>", "<unk>", "<mask>", "<mas", "mask>", "<", "</", " <mask>", "<mask> "]


def classes(step):
    """`step`: of planes 4 to 13 and 15 to 16, where nothing is assigned but private use, every how many-th is asked."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    word = pre_tokenizers.Whitespace()
    out = bytearray([255]) * 0x110000
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or (code >= 0x40000 and code >> 16 != 14 and code % step):
            continue
        c = chr(code)
        pieces = [part for part, _ in byte_level.pre_tokenize_str("x" + c + "1" + c + ".")]
        out[code] = {3: 3 if c == " " else 2, 4: 0 if pieces[0] == "x" else 1, 5: 3}[len(pieces)]
        found = word.pre_tokenize_str("a" + c)
        out[code] += 4 if len(found) == 1 and len(found[0][0]) == 2 else 0
    return bytes(out)


def print_table():
    have, items, line = classes(1).replace(b"\xff", b"\0"), [], "   "
    for code in range(0x110000):
        if code == 0 or have[code] != have[code - 1]:
            items.append("0x%X," % (8 * code + have[code]))
    for item in items:
        if len(line) + len(item) + 1 > 119:
            print(line)
            line = "   "
        line += " " + item
    print(line)


def code_point(rng):
    while True:
        top = rng.choice([0x80, 0x100, 0x250, 0x800, 0x3100, 0x10000, 0x20000, 0x110000])
        code = rng.randrange(top)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def text(rng, more):
    parts = []
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 20, 60])):
        kind = rng.randrange(10)
        if kind < 3:
            parts.append(rng.choice(WORDS))
        elif kind == 3:
            parts.append(rng.choice(SHORT))
        elif kind == 4:
            parts.append("".join(rng.choice(SPACES if rng.random() < .3 else [" ", " ", "\n"])
                                 for _ in range(rng.randrange(1, 5))))
        elif kind == 5:
            parts.append(rng.choice(ODD))
        elif kind == 6:
            parts.append("".join(code_point(rng) for _ in range(rng.randrange(1, 6))))
        elif kind == 7:
            parts.append(rng.choice(SPECIAL + more))
        elif kind == 8:
            parts.append("".join(rng.choice("abcdeilmnorstuvwy'' ,.09") for _ in range(rng.randrange(1, 12))))
        else:
            parts.append(" ")
    return "".join(parts)


def added(rng):
    contents = ["<x>", "<xy>", "<xyz", "dog", " dog", "a", "aa", "aaaa", "'s", "\u00e9", "\u6771\u4eac", "\n", " ",
                "the",
                "<mask", "mask>", "<s", "<mask><s>", "\u3000", "1", ".", "__", "-", "x\u0301"]
    flag = lambda: rng.random() < .4
    return [AddedToken(c, single_word=flag(), lstrip=flag(), rstrip=flag(), normalized=flag(), special=flag())
            for c in rng.sample(contents, rng.randrange(1, 8))]


def make(rng, number, path):
    t = Tokenizer(models.BPE(unk_token="<unk>" if number % 3 == 1 else None, fuse_unk=number % 2 == 1))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    specials = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    trainer = trainers.BpeTrainer(vocab_size=rng.choice([270, 320, 500, 900]), special_tokens=specials, min_frequency=1,
                                  show_progress=False,
                                  initial_alphabet=alphabet if number % 3 != 1 else rng.sample(alphabet, 200))
    t.train_from_iterator([text(rng, []) for _ in range(300)], trainer)
    more = added(rng)
    for a in more:
        (t.add_special_tokens if a.special else t.add_tokens)([a])
    pair = lambda s: (s, t.token_to_id(s))
    if number % 2:
        t.post_processor = processors.RobertaProcessing(sep=pair("</s>"), cls=pair("<s>"), add_prefix_space=False)
    else:
        t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B </s>",
                                                         special_tokens=[pair("<s>"), pair("</s>")])
    t.save(path, pretty=number % 2 == 0)
    return [a.content for a in more]


def load(path):
    if not os.path.isdir(path):
        return Tokenizer.from_file(path)
    try:
        from transformers import RobertaTokenizerFast
    except ImportError:
        return None
    return RobertaTokenizerFast(os.path.join(path, "vocab.json"), os.path.join(path, "merges.txt"))._tokenizer


def write_cases(out, number, path, more, count, rng):
    tokenizer = load(path)
    if tokenizer is None:
        return
    texts = [text(rng, more) for _ in range(count)]
    with open(os.path.join(out, "%d.cases" % number), "wb") as f:
        for t in texts:
            try:
                ids, raw = tokenizer.encode(t).ids, t.encode()
            except BaseException as why:    # the package panics where tokens of blanks want the same blanks
                if type(why).__name__ != "PanicException":
                    raise
                continue
            f.write(struct.pack("<I", len(raw)) + raw + struct.pack("<I%di" % len(ids), len(ids), *ids))
    with open(os.path.join(out, "%d.path" % number), "w") as f:
        f.write(path)


def main():
    if sys.argv[1:] == ["--table"]:
        return print_table()
    out, count, rng = sys.argv[1], int(sys.argv[2]), random.Random(int(sys.argv[3]))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with open(os.path.join(out, "classes"), "wb") as f:
        f.write(classes(97))
    jobs = [(path, []) for path in sys.argv[4:]]
    for number in range(12):
        path = os.path.join(out, "made-%d.json" % number)
        jobs.append((path, make(rng, number, path)))
    for number, (path, more) in enumerate(jobs):
        write_cases(out, number, path, more, count // len(jobs), rng)


if __name__ == "__main__":
    main()
