"""What engraft's ledger says of how a stage was made, for the peers that do the same."""

import json


def settings(out, stage):
    """The settings of a stage by their keys, as it was made last."""
    lines = (json.loads(line) for line in (out / "ledger.jsonl").read_text().splitlines())
    made = [line["described"]["fields"] for line in lines if line.get("stage") == stage]
    assert made, f"{out}/ledger.jsonl: nothing of {stage}; run `engraft run {stage}` first"
    return made[-1]


def starts_from_checkpoint(fields, stage):
    """The peers start from MODEL alone: a row that starts from anything else than a checkpoint has no peer here."""
    other = [key for key in fields if key.startswith(("retrain.", "lora.")) or "head_mask" in key]
    assert "encoder.path" in fields and not other, f"{stage} does not start from a checkpoint as it is: {other or 'no encoder.path'}"
