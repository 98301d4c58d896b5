//! The command line's grammar and help texts. Does nothing.

mod common;
mod grammar;
mod local;
mod tagged;
mod upkeep;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use clap_complete::Shell;
use model::device::Wanted;
use model::encoder::pool::Pooling;

use super::attention;
use super::compare;
use super::predict::pooling;
#[cfg(feature = "query")]
use super::query::Asked;
use super::{diff, exit, export};
use crate::bundle::lines::Form;
pub(super) use common::Common;
pub(super) use tagged::Tagged;
pub(super) use upkeep::Keep;
use upkeep::{CLEAN_HELP, GC_HELP, PULL_HELP, PUSH_HELP};
use value::{form, seconds};

/// Grafts medical knowledge graphs onto pretrained transformers.
#[derive(Debug, Parser)]
#[command(name = "engraft", version, max_term_width = 100, after_help = AFTER_HELP.to_owned() + exit::HELP)]
pub(super) struct Command {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) subcommand: Subcommand,
}

const AFTER_HELP: &str = "\
Examples:
  engraft run                                      everything, on the embedded, invented world
  engraft fetch hsdn rotmensch mesh --into data    open data, checksums verified, licences shown
  engraft run shards --config configs/open.toml --data data
  engraft run rank --preset kg-bert --data data    a preset as it is: link prediction on UMLS
  engraft plan --set world.scale=2                 what a changed setting would rerun
  engraft why shards                               why it will run, or last ran

Environment:
  NO_COLOR         if set and not empty, disables colours
  ENGRAFT_KILL_AT  for testing: kills the process (SIGKILL) at STAGE:POINT (such as world:synced), or
                   when it comes there for the N-th time: STAGE:working:N
  AWS_*, GOOGLE_*, AZURE_*, HTTPS_PROXY, NO_PROXY, ...
                   credentials, endpoints and proxies for remote files (docs/config.md)

";

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Subcommand {
    /// Brings stages and everything they depend on up to date
    #[command(after_help = "\
Examples:
  engraft run                     all stages
  engraft run shards --jobs 8     the stage `shards` and what it depends on
  engraft run --json > run.jsonl  events as JSON lines
  engraft run 2> log              progress as a line every 30 seconds (--progress)
  engraft run retrain --restart   discards the state of an interrupted training
  engraft run scores --each 'encoder.path=[\"bert\", \"biobert\"]'
                                  in out-bert and out-biobert, then their scores side by side

A stage runs if its version, a setting, the contents of an input or its artifact has changed.
What it replaces is kept (--keep): when settings and inputs are again as they were, the artifact is
verified and restored instead of made again.
Before it runs, its inputs are read and verified again; a damaged artifact is rebuilt first.
A training can be followed from its first step on:
  tail -f out/live/retrain/metrics.jsonl
  tensorboard --logdir out

An interrupted training resumes from its last saved state; if a file of that state was altered,
the stage fails and names the file. Ctrl-C stops at the next safe point, a second Ctrl-C at once.
Both leave everything consistent.")]
    Run {
        /// The stages to bring up to date; defaults to all
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Reads every artifact and input file again instead of trusting sizes and time stamps
        #[arg(long)]
        check: bool,
        /// Takes over an output folder that belongs to another config
        #[arg(long)]
        replace: bool,
        /// Restarts interrupted trainings of these stages from scratch; their saved states are deleted
        #[arg(long)]
        restart: bool,
        /// Runs once with each value, in a folder beside --out named after it, then compares what the stages `scores` and `rank` come to; repeatable: values are paired in order
        #[arg(long, value_name = "KEY=[VALUE, ...]")]
        each: Vec<String>,
        #[command(flatten)]
        keep: Keep,
        /// Time between two lines about a running stage, where standard error is no terminal (usually 30) or with --json (0.5); 0 for none
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        progress: Option<Duration>,
    },
    /// Shows what `run` would do and why, one line per stage
    #[command(after_help = "\
Examples:
  engraft plan --set world.scale=2
  engraft plan --check            exit code 3 if anything would run
  engraft plan --graph | dot -Tsvg > plan.svg
  engraft plan --graph --json     a line for each stage, after those that it reads: for schedulers

Exit code 1 if a stage cannot run.")]
    Plan {
        /// The stages to plan; defaults to all
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Reads every artifact and input file again, and exits with code 3 if anything would run
        #[arg(long)]
        check: bool,
        /// Shows the stages as a graph in the DOT language of Graphviz; with --json, adds what each stage reads, its fingerprint and the cost of its last run
        #[arg(long)]
        graph: bool,
    },
    /// Explains why a stage will run or last ran, down to the changed field and the upstream root cause
    #[command(after_help = "\
Example:
  engraft why retrain --set world.scale=2
    retrain will run if an input made first comes out changed:
      input artifact shards is made first
        because shards: input artifact world is made first
          because world: world.scale: 1 -> 2
      root cause: world: world.scale: 1 -> 2")]
    Why {
        /// The stage
        stage: String,
    },
    /// Shows each stage's state, last run, files and bytes
    #[command(after_help = "Example:\n  engraft status")]
    Status,
    /// Shows an artifact's facts (rows read, dropped, kept), files and digests
    #[command(after_help = "\
Examples:
  engraft inspect triples
  engraft inspect triples --json  the ledger's line
  engraft inspect maps --text \"Chest pain may be a symptom of heart failure.\" --svg maps")]
    Inspect {
        /// The stage that made the artifact
        artifact: String,
        /// With `maps`: draws the maps of this text, generated as that stage would
        #[arg(long)]
        text: Option<String>,
        /// With --text: also writes each map as an SVG file to this folder
        #[arg(long, value_name = "DIR", requires = "text")]
        svg: Option<PathBuf>,
    },
    /// Re-hashes the ledger and every file of the artifacts it names; needs no config
    #[command(
        after_help = "Examples:\n  engraft verify\n  engraft verify shards   exit code 3 if a byte differs, 2 if there is nothing to verify"
    )]
    Verify {
        /// The stages whose artifacts to verify; defaults to all that the ledger names
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
    },
    /// Fetches datasets from the catalogue, or lists it
    #[command(after_help = "\
Examples:
  engraft fetch                                lists the catalogue: access, bytes, licence
  engraft fetch hsdn rotmensch mesh --into data
  engraft fetch umls                           prints where to get it and where to put it

A file appears under its final name only when it is complete and its SHA-256 matches the
catalogue. An interrupted fetch leaves NAME.part and is resumed by the next one; a NAME.part that
fetch did not write is left alone.")]
    Fetch {
        /// The datasets; without any, lists the catalogue
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// The folder to put the files in
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
        /// A catalogue to use instead of the embedded one
        #[arg(long, value_name = "FILE")]
        catalog: Option<PathBuf>,
        /// Size limit in bytes for files whose length the catalogue does not state
        #[arg(long, value_name = "N", default_value_t = 10_000_000_000)]
        max_bytes: u64,
    },
    /// Predicts with a fine-tuned model: one text or JSON object per input line, one JSON object per output line
    #[command(after_help = "\
Examples:
  engraft predict out/finetune-base-mortality-1/model notes.txt
  echo 'Fever and a cough for three days.' | engraft predict out/finetune-base-mortality-1/model --top 3
  engraft predict MODEL pairs.jsonl        lines such as {\"text\": \"...\", \"pair\": \"...\", \"id\": \"7\"}
  engraft predict out/finetune-kam-rte-1/model pairs.jsonl --config kam-bert.toml --data DIR --out out

Predictions keep the order of the input lines. Their fields:
  one class          `class` and `shares`
  several classes    `classes` (those with a share of at least one half) and `shares`
  number or ranking  `score`
  tags               `entities`: `kind`, `start` and `end` in characters, `text`, and `share`, the
                     mean over its words
  masked words       `masks`: for each [MASK] of the line the most likely words, `word` and `share`
  answers in texts   of `text`, a question, in `pair`: `answer`, null where there is none, and `spans`:
                     `text`, `start` and `end` in characters, and `score` above the null score
A multi-task model answers under `tasks`, by name: text-pair tasks for a line with a `pair`, the
others for any other line. Masked words and answers in texts are asked for alone, with --task.

A model with knowledge-assisted attention (KAM-BERT) generates the maps of new texts as in its
fine-tuning, from --config, --data and --out; other models need none of these.")]
    Predict {
        /// The `model` folder of a fine-tuning
        #[arg(value_name = "MODEL")]
        model: PathBuf,
        /// The input lines; defaults to standard input. A .jsonl file holds JSON objects, any other input texts
        #[arg(value_name = "FILE")]
        input: Option<PathBuf>,
        /// Format of the input lines: text or json
        #[arg(long, value_name = "FORM", value_parser = form)]
        lines: Option<Form>,
        /// For a multi-task model, the task to predict; defaults to all, in one pass
        #[arg(long, value_name = "NAME")]
        task: Option<String>,
        /// Maximum number of classes, words of a mask or spans shown
        #[arg(long, value_name = "N", default_value_t = 10)]
        top: usize,
        /// A head mask; each head is multiplied by its value
        #[arg(long, value_name = "FILE")]
        mask: Option<PathBuf>,
        /// Where the model computes: cpu, cuda:N, or auto, the first CUDA device if there is one, else the CPU
        #[arg(long, value_name = "DEVICE", default_value_t = Wanted::Auto)]
        device: Wanted,
    },
    /// Encodes texts as vectors with any checkpoint of BERT or RoBERTa: one text or JSON object per input line, one JSON object per output line
    #[command(after_help = "\
Examples:
  engraft encode out/retrain/model texts.txt > vectors.jsonl
  engraft encode all-MiniLM-L6-v2 texts.jsonl --pooling mean
  engraft encode CHECKPOINT texts.txt --vocabulary vocab.txt
  engraft encode out/finetune-kam-rte-1/model texts.txt --config kam-bert.toml --data DIR --out out

A model that was fine-tuned with labels, maps or gates computes by them, on rows as long as in its
fine-tuning; one with knowledge-assisted attention (KAM-BERT) generates the maps of new texts as
then, from --config, --data and --out.")]
    Encode {
        /// A folder with config.json, model.safetensors and vocab.txt or tokenizer.json
        #[arg(value_name = "MODEL")]
        model: PathBuf,
        /// The input lines; defaults to standard input. A .jsonl file holds JSON objects, any other input texts
        #[arg(value_name = "FILE")]
        input: Option<PathBuf>,
        /// Format of the input lines: text or json
        #[arg(long, value_name = "FORM", value_parser = form)]
        lines: Option<Form>,
        /// How token states are pooled into a vector: cls, mean, max or learned_pooler; defaults to what the model was trained with, or sentence-transformers' file says
        #[arg(long, value_name = "POOLING", value_parser = pooling)]
        pooling: Option<Pooling>,
        /// Maximum tokens per text; defaults to the encoder's number of positions, or to what such a model was fine-tuned with
        #[arg(long, value_name = "N")]
        max_tokens: Option<usize>,
        /// The vocabulary, if the folder has none
        #[arg(long, value_name = "FILE")]
        vocabulary: Option<PathBuf>,
        /// Where the encoder computes: cpu, cuda:N, or auto, the first CUDA device if there is one, else the CPU
        #[arg(long, value_name = "DEVICE", default_value_t = Wanted::Auto)]
        device: Wanted,
    },
    /// Finds the names of a graph's entities in texts: offsets, ids, names, types, negation
    Tag(Tagged),
    /// Draws what the tokens of a text attend to in a model
    Attention(attention::Asked),
    /// Writes a model's folder as other tools take it: transformers, sentence-transformers, ONNX, the hub
    Export(export::Asked),
    /// Compares two triple tables: entities renumbered, rekeyed, merged or gone; triples added and removed
    #[command(after_help = diff::HELP)]
    Diff {
        /// The folder with the old table
        #[arg(value_name = "OLD")]
        old: PathBuf,
        /// The folder with the new table
        #[arg(value_name = "NEW")]
        new: PathBuf,
        /// The folder to write the list of moved entities into
        #[arg(long, value_name = "FOLDER")]
        into: Option<PathBuf>,
    },
    /// Compares the scores of several output folders: the same benchmarks from different encoders, seed by seed
    #[command(after_help = compare::HELP)]
    Compare {
        /// The output folders; the others are compared with the first
        #[arg(value_name = "OUT", required = true, num_args = 1..)]
        outs: Vec<PathBuf>,
    },
    /// Answers SQL over the artifacts: triples, entities, counts, scores and more, as tables
    #[cfg(feature = "query")]
    Query(Asked),
    /// Writes a first engraft.toml into this folder, which extends the preset `kimera` or another (--preset)
    #[command(after_help = "Examples:\n  engraft init\n  engraft init --preset kam-bert")]
    Init,
    /// Prints the whole config, every default stated
    #[command(after_help = "\
Examples:
  engraft config
  engraft config --origin             with where each value comes from
  engraft config --preset kam-bert    what a preset comes to
  engraft config --schema             the JSON Schema, for editors")]
    Config {
        /// Ends each line with where its value comes from: default, FILE:LINE, a preset or --set
        #[arg(long)]
        origin: bool,
        /// Prints the JSON Schema of configs instead
        #[arg(long)]
        schema: bool,
        /// Prints the reference of all settings instead, as Markdown
        #[arg(long, conflicts_with = "schema")]
        reference: bool,
    },
    /// Prints the completions of a shell: subcommands, options and their values
    #[command(after_help = "\
Examples:
  engraft completions bash > ~/.local/share/bash-completion/completions/engraft
  engraft completions zsh > ~/.zfunc/_engraft        with ~/.zfunc in fpath
  engraft completions fish > ~/.config/fish/completions/engraft.fish
  engraft completions powershell >> $PROFILE")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Prints the manual page, or writes one for each subcommand
    #[command(after_help = "\
Examples:
  engraft man | man -l -
  engraft man --into ~/.local/share/man/man1   engraft.1, engraft-run.1, ...")]
    Man {
        /// The folder to write the pages into
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
    /// Puts artifacts that are up to date into the depot (--depot), with what they were made from
    #[command(after_help = PUSH_HELP)]
    Push {
        /// The stages whose artifacts to put there; defaults to all
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
    },
    /// Brings artifacts from the depot (--depot) where they are not up to date here; makes nothing
    #[command(after_help = PULL_HELP)]
    Pull {
        /// The stages whose artifacts to bring; defaults to all
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
    },
    /// Removes artifacts, kept ones too, and work folders, after asking; leaves the ledger and every file it does not name
    #[command(after_help = CLEAN_HELP)]
    Clean {
        /// The stages whose artifacts to remove; defaults to all
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Only prints what would be removed
        #[arg(long)]
        dry_run: bool,
        /// Removes without asking
        #[arg(long, short, conflicts_with = "dry_run")]
        yes: bool,
    },
    /// Removes artifacts of earlier settings: those beyond the bounds, or all; what is in place stays. With --depot, those of the depot instead
    #[command(after_help = GC_HELP)]
    Gc {
        /// The stages whose kept artifacts to remove; defaults to all
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Removes every kept artifact
        #[arg(long, conflicts_with_all = ["artifacts", "bytes"])]
        all: bool,
        /// Only prints what would be removed
        #[arg(long)]
        dry_run: bool,
        /// With --depot: how long files stay that no artifact has, as another machine may be about to put one there
        #[arg(long, value_name = "HOURS", default_value_t = 24)]
        grace: u32,
        #[command(flatten)]
        keep: Keep,
    },
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use clap::FromArgMatches;

    use super::*;

    #[test]
    fn the_grammar_is_sound_and_every_subcommand_has_an_example() {
        Command::grammar().debug_assert();
        for subcommand in Command::grammar().get_subcommands() {
            let help = subcommand.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("engraft ") && help.contains("Example"), "{}", subcommand.get_name());
        }
    }

    #[test]
    fn global_options_are_explained_once() {
        let help = |args: &[&str]| {
            let given = std::iter::once("engraft").chain(args.iter().copied());
            Command::grammar().try_get_matches_from(given).unwrap_err().to_string()
        };
        assert!(help(&["--help"]).contains("--cache-bytes <N>"));
        for subcommand in Command::grammar().get_subcommands().map(|command| command.get_name().to_owned()) {
            for long in ["-h", "--help"] {
                let help = help(&[&subcommand, long]);
                assert!(!help.contains("--cache-bytes") && help.contains("see engraft --help"), "{help}");
            }
        }
    }

    #[test]
    fn global_options_may_stand_after_the_subcommand() {
        let given =
            ["engraft", "run", "shards", "--set", "a=1", "--set", "b=2", "--jobs", "3", "--json", "-v"];
        let mut matches = Command::grammar().try_get_matches_from(given).unwrap();
        let command = Command::from_arg_matches_mut(&mut matches).unwrap();
        assert_eq!(command.common.set, ["a=1", "b=2"]);
        assert_eq!(command.common.jobs.map(NonZeroUsize::get), Some(3));
        assert!(matches!(command.subcommand, Subcommand::Run { stages, .. } if stages == ["shards"]));
        assert!(Command::grammar().try_get_matches_from(["engraft", "run", "--jobs", "0"]).is_err());
    }
}
