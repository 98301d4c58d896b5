"""BM25 on MedQuAD's test set by another way than engraft's, whose numbers `tests/tests/downstream.rs` holds engraft to.

Usage: bm25_medquad.py DATA
DATA has medquad/ and cdv/ as published. Words are those of BERT's basic tokenizer without those that have no letter or digit (`tokenizers`); the formula is
Lucene's BM25Similarity with k1 1.2, b 0.75 and exact lengths, over the annotated passages. A query is "entity heading", with / - : as blanks. Prints recall
at 1, 5, 10 and 64 and the mean reciprocal rank among all passages and among candidates (at most 64: what answers, the first hit, the passages of its
document, further hits), and how many candidates there are. Ties go to the passage that comes first.
"""

import json
import math
import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from pathlib import Path

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

K1, B, MOST = 1.2, 0.75, 64
normal, split = BertNormalizer(lowercase=True), BertPreTokenizer()


def words(text):
    found = (word for word, _ in split.pre_tokenize_str(normal.normalize_str(text)))
    return [word for word in found if any(character.isalnum() for character in word)]


def passages(data):
    """Texts of every answered question as the annotations count their characters, by the name that they have for it."""
    texts = defaultdict(list)
    for file in sorted((data / "medquad").glob("*/*.xml")):
        document = ET.parse(file).getroot()
        for pair in document.iter("QAPair"):
            answer = (pair.findtext("Answer") or "").strip()
            name = f"{document.get('source')}_{pair.find('Question').get('qid')}"
            texts[name].append(f"{answer}\n".replace(" - ", "\n- "))
    return texts


def main(data):
    annotated = json.loads((data / "cdv/data/MedQuAD/MedQuAD_test_annotations.json").read_text(encoding="utf-8"))
    texts, names, documents, contents = passages(data), {}, [], []
    for document in annotated["documents"]:
        for mark in document["annotations"]:
            # Several files may have a question of this name; the annotated length tells them apart.
            fitting = [text for text in texts[mark["id"]] if len(text) == mark["length"]]
            names[mark["id"]] = len(contents)
            documents.append(document["id"])
            contents.append(words(fitting[0]))
    of_document = defaultdict(list)
    for passage, document in enumerate(documents):
        of_document[document].append(passage)
    counts, with_word = [Counter(content) for content in contents], Counter()
    for count in counts:
        with_word.update(count.keys())
    postings = defaultdict(list)
    for passage, count in enumerate(counts):
        for word, times in count.items():
            postings[word].append((passage, times))
    mean = sum(map(len, contents)) / len(contents)
    norm = [K1 * (1 - B + B * len(content) / mean) for content in contents]
    sums, many = {"all": Counter(), "candidates": Counter()}, 0
    asked = [(topic, query) for query in annotated["queries"] for topic in query["annotations"]]
    for topic, query in asked:
        relevant = sorted({names[answer["id"]] for answer in query["results"] if answer["relevance"] > 0})
        said = f"{topic['entity']} {topic.get('aspectHeading', topic['aspect'])}"
        scores = [0.0] * len(contents)
        for word in words(said.translate(str.maketrans("/-:", "   "))):
            idf = math.log(1 + (len(contents) - with_word[word] + 0.5) / (with_word[word] + 0.5))
            for passage, times in postings[word]:
                scores[passage] += idf * times / (times + norm[passage])
        hits = sorted((p for p, score in enumerate(scores) if score > 0), key=lambda p: (-scores[p], p))
        ranked = hits[:1] + (of_document[documents[hits[0]]] if hits else []) + hits
        listed = list(relevant)
        for passage in ranked:
            if len(listed) < MOST and passage not in listed:
                listed.append(passage)
        many += len(listed)
        for name, among in (("all", range(len(contents))), ("candidates", sorted(listed))):
            order = sorted(among, key=lambda p: (-scores[p], p))
            places = [order.index(passage) for passage in relevant]
            sums[name]["mrr"] += 1 / (min(places) + 1)
            for k in (1, 5, 10, 64):
                sums[name][k] += sum(place < k for place in places) / len(relevant)
    for name, total in sums.items():
        print(name, {key: round(value / len(asked), 6) for key, value in total.items()})
    print(f"{len(contents)} passages, {len(asked)} queries, {many} candidates")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
