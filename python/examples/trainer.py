"""Hugging Face's Trainer over a stream of shards. Killed at any time and started again, it goes on with the step that would have come: the checkpoint has the
stream's state, so that nothing is read again and skipped.

Usage: trainer.py SHARDS OUT [--steps 200] [--every 50] [--until STEP]
A small BERT learns relations; OUT has the checkpoints and, at the end, the model. --until ends there, as if the process had been killed. Needs accelerate.
"""

import argparse
import json
from pathlib import Path

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint

from engraft.torch import Stream


class Relations(Stream):
    """The batches of one task."""

    def __next__(self):
        return super().__next__()["relation"]


class Streaming(Trainer):
    def get_train_dataloader(self):
        # A step is a whole batch. The loader's own generator leaves that of dropout where the checkpoint put it.
        return DataLoader(self.train_dataset, batch_size=None, generator=torch.Generator())


class KeepsPlace(TrainerCallback):
    """Puts the stream's state into each checkpoint."""

    def __init__(self, stream, until):
        self.stream, self.until = stream, until

    def on_save(self, args, state, control, **_):
        (Path(args.output_dir) / f"checkpoint-{state.global_step}" / "stream.json").write_text(json.dumps(self.stream.state_dict()))

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop |= state.global_step == self.until


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shards", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--until", type=int)
    given = parser.parse_args()
    set_seed(1)
    stream = Relations(given.shards, items=32, seed=1)
    of = stream.stream
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    config = BertConfig(vocab_size=of.vocabulary_size, num_labels=len(of.relations), **size)
    last = get_last_checkpoint(given.out) if given.out.exists() else None
    if last:
        stream.load_state_dict(json.loads((Path(last) / "stream.json").read_text()))
    how = TrainingArguments(
        given.out, max_steps=given.steps, save_steps=given.every, ignore_data_skip=True, logging_steps=given.every, learning_rate=1e-3, report_to=[], use_cpu=True
    )  # fmt: skip
    trainer = Streaming(BertForSequenceClassification(config), how, train_dataset=stream, callbacks=[KeepsPlace(stream, given.until)])
    trainer.train(resume_from_checkpoint=last)
    if given.until is None:
        trainer.save_model(given.out / "model")


if __name__ == "__main__":
    main()
