"""gensim's `Phrases`, the peer that counted phrases are measured beside.

Usage: phrases_peer.py SENTENCES [MIN_COUNT [THRESHOLD]]
SENTENCES has one sentence a line, its words apart by single spaces. Finds collocations of two words by normalised pointwise mutual information
(MIN_COUNT 5, THRESHOLD 0.5) with a vocabulary that is not pruned, then joins them in all sentences. Splitting the lines into words is
not in the times, which are seconds of the processor. Prints JSON: seconds and tokens per second of both, bigrams found and joined, peak in MiB.
"""

import json
import resource
import sys
import time
from pathlib import Path

from gensim import __version__
from gensim.models.phrases import Phrases


def main(file, min_count=5, threshold=0.5):
    sentences = [line.split() for line in Path(file).read_text(encoding="utf-8").splitlines()]
    tokens = sum(map(len, sentences))
    start = time.process_time()
    # More words than a corpus has: gensim's default would forget rare ones on the way.
    phrases = Phrases(sentences, min_count=min_count, threshold=threshold, scoring="npmi", delimiter=" ", max_vocab_size=1 << 40)
    frozen = phrases.freeze()
    build = time.process_time() - start
    start = time.process_time()
    left = sum(len(frozen[sentence]) for sentence in sentences)
    apply = time.process_time() - start
    print(json.dumps({
        "gensim": __version__, "sentences": len(sentences), "tokens": tokens,
        "build_seconds": build, "build_tokens_per_second": tokens / build, "apply_seconds": apply, "apply_tokens_per_second": tokens / apply,
        "phrases": len(frozen.phrasegrams), "joined": tokens - left, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [file]:
            main(file)
        case [file, min_count]:
            main(file, int(min_count))
        case [file, min_count, threshold]:
            main(file, int(min_count), float(threshold))
        case _:
            sys.exit(__doc__)
