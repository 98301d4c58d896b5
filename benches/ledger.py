"""What engraft's ledger says of how a stage was made, and files of JSON lines."""

import json


def lines(path):
    """The values of a file of JSON lines. Texts may have other ends of lines in them than `\n`."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def made(out, stage):
    """The line of a stage as it was made last."""
    of = [line for line in lines(out / "ledger.jsonl") if line.get("stage") == stage]
    assert of, f"{out}/ledger.jsonl: nothing of {stage}; run `engraft run {stage}` first"
    return of[-1]


def from_checkpoint(out, stage):
    """The settings of a fine-tuning by their keys. The peers start from MODEL: a row that starts from another stage's encoder, or that has gates, has none."""
    fields = made(out, stage)["described"]["fields"]
    gates = json.loads((out / stage / "model" / "outputs.json").read_text()).get("gates")
    assert "encoder.path" in fields and not gates, f"{stage} does not start from a checkpoint as it is"
    return fields
