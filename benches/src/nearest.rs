//! Finds the five nearest of many vectors for each query, as stage `link` does, for `just bench-nearest`: `nearest VECTORS QUERIES WIDTH THREADS OUT`.
//!
//! VECTORS and QUERIES are files of f32 numbers of length 1, WIDTH to a vector, the lowest byte first; VECTORS is read in blocks, as `link` encodes names. OUT gets the places
//! of the nearest, five to a query, as u32 numbers. Prints the seconds of comparing, without reading, and the peak in MiB, as JSON.
#![allow(clippy::print_stdout, reason = "an example tells what it did")]

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use model::eval::nearest::Nearest;
use serde_json::json;

use crate::process::peak_mib;

/// Vectors that are in memory at a time: as in stage `link`.
const BLOCK: usize = 1 << 16;
/// How many are found.
const MOST: usize = 5;

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [vectors, queries, width, threads, out] = arguments else {
        return Err("usage: nearest VECTORS QUERIES WIDTH THREADS OUT".into());
    };
    let width: usize = width.parse()?;
    rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build_global()?;
    let mut nearest = Nearest::new(numbers(&fs::read(queries)?), width, MOST);
    let (mut file, mut first, mut took) = (File::open(vectors)?, 0, Duration::ZERO);
    loop {
        let mut block = vec![];
        (&mut file).take((BLOCK * width * size_of::<f32>()) as u64).read_to_end(&mut block)?;
        let block = numbers(&block);
        if block.is_empty() {
            break;
        }
        let places: Vec<[u32; 1]> = (first..).take(block.len() / width).map(|place| [place]).collect();
        first += u32::try_from(places.len())?;
        let start = Instant::now();
        nearest.compare(&block, &places)?;
        took += start.elapsed();
    }
    let found = nearest.found().into_iter().flatten();
    let bytes: Vec<u8> = found.flat_map(|(place, _)| place.to_le_bytes()).collect();
    base::whole::write_whole(Path::new(out), &bytes)?;
    println!("{}", json!({ "seconds": took.as_secs_f64(), "mib": peak_mib()? }));
    Ok(())
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
