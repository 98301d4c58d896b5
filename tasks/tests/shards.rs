//! Shards and streams from end to end: graph in, files on disk, batches out.
mod damage;
mod elastic;
mod names;
mod order;
mod text;
mod world;
mod write;
