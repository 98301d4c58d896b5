//! What `engraft tag` is asked.

use std::path::PathBuf;

use clap::Args;

use crate::tag::output::Form;

/// What the help says behind the options.
const HELP: &str = "\
Examples:
  engraft tag --config engraft.toml --data DIR < texts.txt > mentions.jsonl
  engraft tag notes/ --set 'tag.format={text=\"file\"}' --to brat --into tagged
  engraft tag pubmed.xml.gz --set 'tag.format={pubmed={}}' --to parquet --into mentions.parquet
  engraft tag texts.txt --triples out/triples --set tag.near.threshold=0.8 --to html --into a.html

Names are those of the config's graph, which is made first where it is not up to date. [tag] of the
config says which are looked for (tag.dictionary), how near a spelling may be (tag.near), and what
texts look like (tag.format; left out, each line is a text). Mentions are in the order of their
texts and do not overlap. Each has its place in characters and bytes, its entity with name and
types, other candidates with their scores, and what its sentence says of it.";

/// What is asked.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(in crate::cli) struct Tagged {
    /// Files of texts, or folders, which are searched; defaults to standard input
    #[arg(value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// The form of what is written
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Jsonl)]
    pub(in crate::cli) to: Form,
    /// The file to write, or for brat the folder; defaults to standard output
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) into: Option<PathBuf>,
    /// A folder that stage `triples` has made, instead of the config's graph
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) triples: Option<PathBuf>,
    /// The stages that are made before.
    #[arg(skip = vec!["triples".to_owned()])]
    pub(in crate::cli) goals: Vec<String>,
}
