//! Everything that only the whole can show: through the binary, or from one crate to the next; and the rules of the house.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "these are tests; a failed step is a failed test"
)]

mod adapters;
mod align;
mod bad_input;
mod bi_encoder;
mod depot;
mod downstream;
mod exchange;
mod export;
mod fetch;
mod glue;
mod graft;
mod graph;
mod heads;
mod interop;
mod keep;
mod keys_read;
mod kill;
mod known;
mod link;
mod maps;
mod messages;
mod parity;
mod parity_head;
mod parity_kam;
mod parity_label;
mod parity_machine;
mod parity_maps;
mod parity_masked_lm;
mod parity_metric;
mod parity_metrics;
mod parity_minilm;
mod parity_optim;
mod parity_pmi;
mod parity_samples;
mod parity_transformers;
mod parts;
mod peers;
mod plan_run;
mod presets;
mod python;
mod query;
mod rank;
mod ranks;
mod real_data;
mod remote_shards;
mod roberta;
mod same_bytes;
mod schedules;
mod sets;
mod silent;
mod smoke;
mod sources;
mod store;
mod streams;
mod synonyms;
mod systems;
mod tag;
mod tagging;
mod terminal;
mod tidy;
