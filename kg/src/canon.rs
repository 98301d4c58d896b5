//! One form for what sources spell differently. Knows no file and no table.

pub mod fold;
