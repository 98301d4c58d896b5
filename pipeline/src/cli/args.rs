//! The command line's grammar and help texts. Does nothing.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use model::encoder::pool::Pooling;
use store::location::{Location, is_address};

use super::exit;
use super::predict::pooling;
use crate::bundle::lines::Form;

/// More threads than any machine has cores would only fight each other, and a mistyped number would take the machine down.
const MOST_JOBS: usize = 1024;

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let jobs: Option<NonZeroUsize> = text.parse().ok().filter(|jobs: &NonZeroUsize| jobs.get() <= MOST_JOBS);
    jobs.ok_or_else(|| format!("expected a whole number from 1 to {MOST_JOBS}"))
}

fn form(text: &str) -> Result<Form, String> {
    match text {
        "text" => Ok(Form::Text),
        "json" => Ok(Form::Json),
        _ => Err("expected text or json".to_owned()),
    }
}

/// Grafts medical knowledge graphs onto pretrained transformers.
#[derive(Debug, Parser)]
#[command(name = "engraft", version, max_term_width = 100, after_help = AFTER_HELP.to_owned() + exit::HELP)]
pub(super) struct Command {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) subcommand: Subcommand,
}

impl Command {
    /// Refuses URLs where only names and paths on this machine can be meant, without showing them: they may hold credentials, and a folder
    /// would be made of them.
    pub(super) fn check_local(&self) -> anyhow::Result<()> {
        let Common { config, data, out, cache, .. } = &self.common;
        if let Some(Err(error)) = data.as_deref().and_then(Path::to_str).map(Location::parse) {
            return Err(anyhow::Error::from(error).context("--data is invalid"));
        }
        let common = [("--config", config.as_deref()), ("--out", Some(out)), ("--cache", cache.as_deref())];
        let given = common.into_iter().filter_map(|(name, path)| Some((name, path?)));
        for (name, path) in given.chain(self.subcommand.local()) {
            let is_url = is_address(&path.to_string_lossy());
            anyhow::ensure!(
                !(is_url && ["--out", "--cache", "--into", "--svg"].contains(&name)),
                "{name} is a URL, expected a path on this machine: write to a folder here, then copy it there"
            );
            anyhow::ensure!(
                !is_url,
                "{name} is a URL, expected a name or path on this machine: fetch the file first"
            );
        }
        Ok(())
    }
}

fn some<'p>(name: &'static str, path: &'p Option<PathBuf>) -> impl Iterator<Item = (&'static str, &'p Path)> {
    path.iter().map(move |path| (name, path.as_path()))
}

fn all<'n>(name: &'static str, names: &'n [String]) -> impl Iterator<Item = (&'static str, &'n Path)> {
    names.iter().map(move |text| (name, Path::new(text)))
}

impl Subcommand {
    /// What is no option of every subcommand: names and paths.
    fn local(&self) -> Vec<(&'static str, &Path)> {
        match self {
            Subcommand::Run { stages, .. }
            | Subcommand::Plan { stages, .. }
            | Subcommand::Verify { stages }
            | Subcommand::Clean { stages, .. } => all("STAGE", stages).collect(),
            Subcommand::Why { stage } => vec![("STAGE", Path::new(stage))],
            Subcommand::Status => vec![],
            Subcommand::Inspect { artifact, svg, .. } => {
                some("--svg", svg).chain([("ARTIFACT", Path::new(artifact))]).collect()
            }
            Subcommand::Fetch { names, into, catalog, .. } => {
                all("NAME", names).chain(some("--into", into)).chain(some("--catalog", catalog)).collect()
            }
            Subcommand::Predict { model, input, mask, .. } => {
                let files = some("FILE", input).chain(some("--mask", mask));
                files.chain([("MODEL", model.as_path())]).collect()
            }
            Subcommand::Encode { model, input, vocabulary, .. } => {
                let files = some("FILE", input).chain(some("--vocabulary", vocabulary));
                files.chain([("MODEL", model.as_path())]).collect()
            }
            Subcommand::Diff { old, new, into } => {
                some("--into", into).chain([("OLD", old.as_path()), ("NEW", new.as_path())]).collect()
            }
        }
    }
}

const AFTER_HELP: &str = "\
Examples:
  engraft run                                      everything, on the embedded invented world
  engraft fetch hsdn rotmensch mesh --into data    open data, checked, with their licences
  engraft run shards --config configs/open.toml --data data
  engraft plan --set world.scale=2                 what a changed setting would make run
  engraft why shards                               why it will run, or why it last ran

Environment:
  NO_COLOR         no colours, if set and not empty
  ENGRAFT_KILL_AT  a testing aid: STAGE:POINT (as in world:synced) or STAGE:working:N ends the
                   process by SIGKILL there
  AWS_*, GOOGLE_*, AZURE_*, HTTPS_PROXY, NO_PROXY, ...
                   credentials, endpoints and proxies for remote files (docs/config.md)

";

/// What every subcommand takes.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// The configuration; without it, the embedded one: a small invented world
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(super) config: Option<PathBuf>,
    /// The folder with the outside files that the configuration names, or the URL that they lie below
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(super) data: Option<PathBuf>,
    /// The folder for artifacts and the ledger. It remembers its config; another one needs another folder, or --replace
    #[arg(long, global = true, value_name = "DIR", default_value = "out", help_heading = "Global options")]
    pub(super) out: PathBuf,
    /// The folder in which remote files are kept; without it, `engraft` in the user's cache folder
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(super) cache: Option<PathBuf>,
    /// How many bytes that folder may hold; what was not used for longest goes first
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 50_000_000_000,
        help_heading = "Global options"
    )]
    pub(super) cache_bytes: u64,
    /// How long one remote file may take, tries and waits included
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value_t = 21_600,
        help_heading = "Global options"
    )]
    pub(super) deadline: u64,
    /// Changes one setting of the configuration; may be given again
    #[arg(long, global = true, value_name = "KEY=VALUE", help_heading = "Global options")]
    pub(super) set: Vec<String>,
    /// How many threads and stages at once; without it, one per core. Results do not depend on it
    #[arg(long, short, global = true, value_name = "N", value_parser = jobs, help_heading = "Global options")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Prints JSON lines on standard output
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) json: bool,
    /// Says more: every reason, every note
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(super) verbose: bool,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Subcommand {
    /// Brings stages up to date, with everything they need
    #[command(after_help = "\
Examples:
  engraft run                     all stages
  engraft run shards --jobs 8     the stage `shards` and what it needs
  engraft run --json > run.jsonl  events as JSON lines
  engraft run retrain --restart   throws away what an interrupted training left

A stage runs if its version, a setting, the contents of an input or its artifact has changed. What a stage
that runs reads is always read again and compared; a damaged artifact is made again first. An interrupted training
resumes where its last state was written; if a file of that state is not what was written, it fails with the file's name.
Ctrl-C stops at the next safe point; a second Ctrl-C stops at once. Both leave everything consistent.")]
    Run {
        /// The stages to bring up to date; all if none is given
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Reads every artifact and every outside file again, instead of believing sizes and times
        #[arg(long)]
        check: bool,
        /// Takes over an output folder that was made with another config
        #[arg(long)]
        replace: bool,
        /// Of these, interrupted trainings begin anew instead of resuming; what they left is removed
        #[arg(long)]
        restart: bool,
    },
    /// Shows what `run` would do, and why, in a line per stage
    #[command(after_help = "\
Examples:
  engraft plan --set world.scale=2
  engraft plan --check            exit code 3 if anything would run

Exit code 1 if a stage cannot run.")]
    Plan {
        /// The stages to plan for; all if none is given
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Reads every artifact and every outside file again, and ends with exit code 3 if anything would run
        #[arg(long)]
        check: bool,
    },
    /// Explains why a stage will run or last ran, down to the changed field and the root cause upstream
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
    /// Shows every stage: state, last run, files, bytes
    #[command(after_help = "Example:\n  engraft status")]
    Status,
    /// Shows what is known of an artifact: facts (rows read, dropped, kept), files, digests
    #[command(after_help = "\
Examples:
  engraft inspect triples
  engraft inspect triples --json  the ledger's line
  engraft inspect maps --text \"Chest pain may be a symptom of heart failure.\" --svg maps")]
    Inspect {
        /// The stage that made it
        artifact: String,
        /// With `maps`: the maps of this text, drawn with what that stage would make them with
        #[arg(long)]
        text: Option<String>,
        /// With --text: a folder in which each map is drawn as an SVG file as well
        #[arg(long, value_name = "DIR", requires = "text")]
        svg: Option<PathBuf>,
    },
    /// Reads the ledger and every file of the artifacts that it names again and compares them; needs no config
    #[command(
        after_help = "Examples:\n  engraft verify\n  engraft verify shards   exit code 3 if a byte is wrong, 2 if there is nothing to verify"
    )]
    Verify {
        /// The stages whose artifacts to read; all that the ledger names if none is given
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
    },
    /// Fetches outside files that the catalogue names, or lists it
    #[command(after_help = "\
Examples:
  engraft fetch                                what there is: access, bytes, licence
  engraft fetch hsdn rotmensch mesh --into data
  engraft fetch umls                           says where to get it, and where to put it

A file appears under its name only when it is whole and has the SHA-256 of the catalogue. What an interrupted
fetch leaves (NAME.part) is resumed; a NAME.part that is not of its making is left alone.")]
    Fetch {
        /// The datasets; without any, the catalogue is listed
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// The folder that the files go below
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
        /// Another catalogue than the embedded one
        #[arg(long, value_name = "FILE")]
        catalog: Option<PathBuf>,
        /// Most bytes of a file whose length the catalogue does not say
        #[arg(long, value_name = "N", default_value_t = 10_000_000_000)]
        max_bytes: u64,
    },
    /// Asks a fine-tuned model: a text or a JSON object a line in, a JSON object a line out
    #[command(after_help = "\
Examples:
  engraft predict out/finetune-base-mortality-1/model notes.txt
  echo 'Fever and a cough for three days.' | engraft predict out/finetune-base-mortality-1/model --top 3
  engraft predict MODEL pairs.jsonl        lines such as {\"text\": \"...\", \"pair\": \"...\", \"id\": \"7\"}
  engraft predict out/finetune-kam-rte-1/model pairs.jsonl --config kam-bert.toml --data DIR --out out

Answers come in the order of the lines. `class` and `shares` for one class of several, `classes` (those from one half on) and
`shares` for any of several, `score` for numbers and rankings, `entities` for tags: `kind`, `start` and `end` in characters, `text`, and
`share`, the mean of its words'. A model of several tasks answers under `tasks`, by name: on a line with a `pair` those of two texts, else the others.

A model that attends by maps of what is known (KAM-BERT) makes those of new texts with what it was fine-tuned with: --config, --data
and --out say what that is; other models need none of them.")]
    Predict {
        /// The folder `model` of a fine-tuning
        #[arg(value_name = "MODEL")]
        model: PathBuf,
        /// The lines; standard input without it. A file that ends in .jsonl has objects, any other texts
        #[arg(value_name = "FILE")]
        input: Option<PathBuf>,
        /// How lines are written
        #[arg(long, value_name = "FORM", value_parser = form)]
        lines: Option<Form>,
        /// The one task to ask of a model that was fine-tuned on several; all of them without it, in one pass
        #[arg(long, value_name = "NAME")]
        task: Option<String>,
        /// Most classes that are shown with their shares
        #[arg(long, value_name = "N", default_value_t = 10)]
        top: usize,
        /// A head mask whose numbers the heads are multiplied by
        #[arg(long, value_name = "FILE")]
        mask: Option<PathBuf>,
    },
    /// Turns texts into vectors with any BERT checkpoint: a text or a JSON object a line in, a JSON object a line out
    #[command(after_help = "\
Examples:
  engraft encode out/retrain/model texts.txt > vectors.jsonl
  engraft encode all-MiniLM-L6-v2 texts.jsonl --pooling mean
  engraft encode CHECKPOINT texts.txt --vocabulary vocab.txt")]
    Encode {
        /// A folder with config.json, model.safetensors and vocab.txt or tokenizer.json
        #[arg(value_name = "MODEL")]
        model: PathBuf,
        /// The lines; standard input without it. A file that ends in .jsonl has objects, any other texts
        #[arg(value_name = "FILE")]
        input: Option<PathBuf>,
        /// How lines are written
        #[arg(long, value_name = "FORM", value_parser = form)]
        lines: Option<Form>,
        /// What of a text becomes the vector: cls, mean, max or learned_pooler
        #[arg(long, value_name = "POOLING", default_value = "cls", value_parser = pooling)]
        pooling: Pooling,
        /// Most tokens of a text; as many as the encoder has positions without it
        #[arg(long, value_name = "N")]
        max_tokens: Option<usize>,
        /// The vocabulary, where the folder has none
        #[arg(long, value_name = "FILE")]
        vocabulary: Option<PathBuf>,
    },
    /// Compares two triple tables: entities renumbered, rekeyed, merged, gone; triples added and removed
    #[command(after_help = "\
Examples:
  engraft diff out-2025AA/triples out-2025AB/triples
  engraft diff old new --into changes   writes changes/moved.parquet
  engraft diff old new --json           exit code 3 if anything changed")]
    Diff {
        /// The folder with the table before
        #[arg(value_name = "OLD")]
        old: PathBuf,
        /// The folder with the table after
        #[arg(value_name = "NEW")]
        new: PathBuf,
        /// The folder to write the list of moved entities into
        #[arg(long, value_name = "FOLDER")]
        into: Option<PathBuf>,
    },
    /// Removes artifacts and work folders, asking nothing; leaves the ledger and every file it does not name
    #[command(after_help = "Examples:\n  engraft clean --dry-run\n  engraft clean shards retrain")]
    Clean {
        /// The stages whose artifacts to remove; all if none is given
        #[arg(value_name = "STAGE")]
        stages: Vec<String>,
        /// Only shows what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_sound_and_every_subcommand_has_an_example() {
        Command::command().debug_assert();
        for subcommand in Command::command().get_subcommands() {
            let help = subcommand.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("engraft ") && help.contains("Example"), "{}", subcommand.get_name());
        }
    }

    #[test]
    fn global_options_may_stand_after_the_subcommand() {
        let given =
            ["engraft", "run", "shards", "--set", "a=1", "--set", "b=2", "--jobs", "3", "--json", "-v"];
        let command = Command::try_parse_from(given).unwrap();
        assert_eq!(command.common.set, ["a=1", "b=2"]);
        assert_eq!(command.common.jobs.map(NonZeroUsize::get), Some(3));
        assert!(matches!(command.subcommand, Subcommand::Run { stages, .. } if stages == ["shards"]));
        assert!(Command::try_parse_from(["engraft", "run", "--jobs", "0"]).is_err());
    }
}
