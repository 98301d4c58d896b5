"""Which examples engraft looks at where a setting bounds them (`finetune.max_examples`): its own draw again, so that both sides learn from the very same.

    python benches/drawn.py ALL MOST BENCHMARK PART

prints which of so many it is. A key of a benchmark and a part (XXH3 of their names, SplitMix64) shuffles the part by Fisher and Yates; the first are kept, in their order: the same for every seed of fine-tuning.
"""

import math
import sys

import xxhash

BITS, GAMMA = (1 << 64) - 1, 0x9E3779B97F4A7C15


def mix(x):
    """The next output of SplitMix64 whose state is `x`."""
    z = (x + GAMMA) & BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


class Key:
    """A key of random numbers, named by what they are for (`base/src/rng.rs`)."""

    def __init__(self, bits):
        self.bits = bits

    @classmethod
    def of(cls, seed, *purposes):
        key = cls(mix(seed))
        for purpose in purposes:
            key = key.named(purpose)
        return key

    def named(self, purpose):
        return Key(xxhash.xxh3_64_intdigest(purpose.encode(), seed=self.bits))

    def at(self, number):
        return Key(mix(self.bits ^ mix(number)))

    def below(self, bound):
        return (mix(self.bits) * bound) >> 64

    def shuffle(self, items):
        for last in range(len(items) - 1, 0, -1):
            chosen = self.at(last).below(last + 1)
            items[last], items[chosen] = items[chosen], items[last]


def drawn(rows, most, name, part):
    """At most `most` of the rows of a benchmark's part."""
    if len(rows) <= most:
        return list(rows)
    places = list(range(len(rows)))
    Key.of(0, "looked at", name, part).shuffle(places)
    return [rows[place] for place in sorted(places[:most])]


def looked_at(rows, fields, folder, part):
    """Those of a part's rows of the benchmark in `folder` that a stage with these fields looks at."""
    most, share = fields.get(f"finetune.max_examples.{part}", math.inf), fields.get("finetune.max_examples.train_share")
    if part == "train" and share is not None:
        most = min(most, max(1, math.floor(share * len(rows) + 0.5)))
    return drawn(rows, most, folder.name.removeprefix("benchmark-"), part)


if __name__ == "__main__":
    count, most, name, part = sys.argv[1:]
    print(*drawn(range(int(count)), int(most), name, part))
