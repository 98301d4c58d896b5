"""Whether `transformers` answers with a fine-tuned folder of engraft's as engraft does.

Usage: at_home.py MODEL ASKED SAID [ONNX]
ASKED holds the lines that `engraft predict MODEL ASKED` was given (JSON lines with `text` and perhaps `pair`), SAID what it said. ONNX is the folder
of `engraft export --to onnx`, of which ONNX Runtime is asked the same. Ends with status 0 if no weight is missing and every share, score, entity and answer is the same, numbers within 1e-4.
"""

import json
import sys

import torch
from transformers import AutoConfig, AutoModelForQuestionAnswering, AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

folder = sys.argv[1]
asked, said = ([json.loads(line) for line in open(path)] for path in sys.argv[2:4])
config = AutoConfig.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
kind = config.architectures[0].split("For")[1]
classes = {
    "SequenceClassification": AutoModelForSequenceClassification,
    "TokenClassification": AutoModelForTokenClassification,
    "QuestionAnswering": AutoModelForQuestionAnswering,
}
model, loaded = classes[kind].from_pretrained(folder, output_loading_info=True)
model.eval()
assert not loaded["missing_keys"], f"weights that were drawn at random: {loaded['missing_keys']}"
assert all("pooler" in name for name in loaded["unexpected_keys"]), loaded["unexpected_keys"]


session = None
if sys.argv[4:]:
    import onnxruntime

    session = onnxruntime.InferenceSession(f"{sys.argv[4]}/model.onnx", providers=["CPUExecutionProvider"])


class Output:
    """What a session says, under the names of `transformers`."""

    def __init__(self, encoded):
        inputs = {of.name: encoded[of.name].numpy() for of in session.get_inputs()}
        for of, value in zip(session.get_outputs(), session.run(None, inputs)):
            setattr(self, of.name, torch.from_numpy(value))


def near(found, expected, what):
    assert abs(found - expected) < 1e-4 * max(1, abs(expected)), f"{what}: {found} by transformers, {expected} by engraft"


def classified(logits, answer, line):
    if config.problem_type == "regression":
        near(logits[0].item(), answer["score"], line)
        return
    one = config.problem_type == "single_label_classification"
    shares = (logits.softmax(0) if one else logits.sigmoid()).tolist()
    # The largest ones, with their names.
    assert answer["shares"]
    for name, share in answer["shares"].items():
        near(shares[config.label2id[name]], share, (line, name))
    if one:
        assert config.id2label[int(logits.argmax())] == answer["class"], line


def ask(encoded):
    """Both, if there are two."""
    yield model(**encoded)
    if session:
        yield Output(encoded)


def lines():
    for line, answer in zip(asked, said, strict=True):
        texts = [line["text"], line["pair"]] if "pair" in line else [line["text"]]
        encoded = tokenizer(*texts, return_tensors="pt", truncation=True, max_length=tokenizer.model_max_length)
        for output in ask(encoded):
            yield line, answer, encoded, output


with torch.no_grad():
    for line, answer, encoded, output in lines():
        if kind == "SequenceClassification":
            classified(output.logits[0], answer, line)
        elif kind == "TokenClassification":
            # A word's tag is that of its first token; an entity's share is the mean of its words'.
            words, shares = encoded.word_ids(0), {}
            for token, word in enumerate(words):
                if word is not None and word not in shares:
                    label = config.id2label[int(output.logits[0, token].argmax())]
                    start = encoded.word_to_chars(0, word).start
                    shares[word] = start, label, output.logits[0, token].softmax(0).max().item()
            tagged = [start for start, label, _ in shares.values() if label not in ("O", "X")]
            assert answer["entities"] and tagged, (line, answer, shares)
            for entity in answer["entities"]:
                inside = [of for of in shares.values() if entity["start"] <= of[0] < entity["end"]]
                assert all(label.endswith(entity["kind"]) for _, label, _ in inside), (entity, inside)
                near(sum(share for *_, share in inside) / len(inside), entity["share"], entity)
                tagged = [start for start in tagged if not entity["start"] <= start < entity["end"]]
            assert not tagged, (tagged, answer)
        else:
            ids = encoded["input_ids"][0].tolist()
            first = ids.index(tokenizer.sep_token_id) + 1
            last = len(ids) - 1
            start, end = (of[0, first:last] for of in (output.start_logits, output.end_logits))
            sums = (start[:, None] + end[None, :]).triu()
            best = divmod(int(sums.argmax()), last - first)
            null = output.start_logits[0, 0] + output.end_logits[0, 0]
            span = answer["spans"][0]
            near((sums.max() - null).item(), span["score"], line)
            chars = [encoded.token_to_chars(first + at) for at in best]
            assert [chars[0].start, chars[1].end] == [span["start"], span["end"]], (line, chars, span)
print(kind, len(asked), "lines")
