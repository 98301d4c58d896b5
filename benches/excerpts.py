"""A file in the layout of SQuAD with excerpts in the place of long documents, for measurements that fit a small machine.

    python benches/excerpts.py covidQA.json excerpts.json [--characters 1000]

Each question keeps so many characters of its document, cut at white space, with its first answer, the one that is kept, somewhere among them; questions without an answer, and those
whose answer does not stand where it is said to, are left out and counted.
"""

import argparse
import json
import random
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--characters", type=int, default=1000)
    args = parser.parse_args()
    articles, kept, left = [], 0, 0
    for number, article in enumerate(json.loads(args.file.read_text())["data"]):
        paragraphs = []
        for paragraph in article["paragraphs"]:
            context = paragraph["context"]
            for asked in paragraph["qas"]:
                answer = next(iter(asked["answers"]), {"answer_start": 0, "text": ""})
                start, text = answer["answer_start"], answer["text"]
                if not text or context[start : start + len(text)] != text or len(text) > args.characters:
                    left += 1
                    continue
                spare = args.characters - len(text)
                begin = max(0, start - random.Random(f"{asked['id']}").randrange(spare + 1))
                end = min(len(context), begin + args.characters)
                # Words at the ends are whole; the answer stays.
                while begin < start and begin > 0 and not context[begin - 1].isspace():
                    begin += 1
                while end > start + len(text) and end < len(context) and not context[end].isspace():
                    end -= 1
                of = dict(asked, answers=[{"text": text, "answer_start": start - begin}])
                paragraphs.append({"context": context[begin:end], "qas": [of]})
                kept += 1
        # Excerpts of one document may overlap: by its title they stay in one part.
        articles.append({"title": article.get("title") or f"document {number + 1}", "paragraphs": paragraphs})
    args.out.write_text(json.dumps({"version": "excerpts", "data": articles}, ensure_ascii=False))
    print(f"{kept} questions, {left} left out")


if __name__ == "__main__":
    main()
