//! Products of bf16 pairs by the tiles of AMX: 16 by 16 sums take 32 terms at a time.
//!
//! Of these 32 the even terms and the odd ones are added by themselves, then both, then that to the sum (Intel, Architecture Instruction Set Extensions, `TDPBF16PS`): another
//! order than [`super::instruction`]'s, so other bits.
#![allow(
    unsafe_code,
    reason = "instructions that not every processor has are asked for by name, and the system for leave to use them"
)]

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::OnceLock;

use pulp::x86::V4;
use pulp::{Simd as _, bytemuck, f32x16};

use super::super::{Left, Out, Packed, Start, VECTORS, write};
use super::{WIDTH, half, pair_up};
use crate::nn::avx512;

/// Rows of a tile, and pairs of terms that it takes at a time.
const SIDE: usize = 16;
/// Terms of a sum that one visit adds, at most: a panel's fit into the first-level cache.
const DEPTH: usize = 384;

/// Whether this processor has them and the system lets this process use them (`ARCH_REQ_XCOMP_PERM` for tile data, Linux 5.16).
pub(super) fn are_there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| avx512().is_some() && has_tiles() && has_leave())
}

fn has_tiles() -> bool {
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    let extended = __cpuid_count(7, 0).edx;
    extended & BF16 != 0 && extended & TILE != 0
}

#[cfg(target_os = "linux")]
fn has_leave() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST: i64 = 0x1023;
    const TILE_DATA: i64 = 18;
    let answer: i64;
    // SAFETY: a system call that reads no memory and changes what this process may use, no more.
    unsafe {
        asm!("syscall", inlateout("rax") ARCH_PRCTL => answer, in("rdi") REQUEST, in("rsi") TILE_DATA, out("rcx") _, out("r11") _, options(nostack));
    }
    answer == 0
}

#[cfg(not(target_os = "linux"))]
fn has_leave() -> bool {
    false
}

/// What the tiles are: eight of sixteen rows of 64 bytes (palette 1).
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_of_row: [u16; 16],
    rows: [u8; 16],
}

/// This thread's tiles while they are in use: 0 to 3 hold sums, 4 and 5 rows of the left factor, 6 and 7 columns of the right one.
struct Tiles;

/// Rows of a sum that are worked on together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    Sixteen,
    ThirtyTwo,
}

/// Sums of so many rows, and of the columns of a panel.
type Sums = [[f32x16; VECTORS]; 2 * SIDE];

impl Tiles {
    fn new() -> Self {
        let used = |tile: usize| tile < 8;
        let shapes = Shapes {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            bytes_of_row: std::array::from_fn(|tile| if used(tile) { 64 } else { 0 }),
            rows: std::array::from_fn(|tile| if used(tile) { 16 } else { 0 }),
        };
        // SAFETY: `are_there` has said so; the 64 bytes are there and are such shapes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const shapes, options(nostack, readonly)) }
        Self
    }

    /// Sets all sums to 0.
    fn clear(&mut self) {
        // SAFETY: the tiles are configured while this is there.
        unsafe {
            asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3", options(nostack, nomem));
        }
    }

    /// Adds the products of 32 terms: `left` has rows of pairs, `apart` pairs from one to the next, and `right` the rows of a panel.
    fn add(&mut self, rows: Rows, left: &[u32], apart: usize, right: &[u32]) {
        let least = if rows == Rows::Sixteen { SIDE } else { 2 * SIDE };
        assert!(left.len() >= (least - 1) * apart + SIDE && right.len() >= SIDE * WIDTH);
        let (apart_bytes, width_bytes) = (4 * apart, 4 * WIDTH);
        // SAFETY: the tiles are configured while this is there; all rows that they read lie in the slices, as was just looked at.
        unsafe {
            asm!(
                "tileloadd tmm4, [{left} + {apart}*1]",
                "tileloadd tmm6, [{right} + {width}*1]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{right} + {width}*1 + 64]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                left = in(reg) left.as_ptr(), apart = in(reg) apart_bytes,
                right = in(reg) right.as_ptr(), width = in(reg) width_bytes,
                options(nostack, readonly)
            );
            if rows == Rows::ThirtyTwo {
                asm!(
                    "tileloadd tmm5, [{left} + {apart}*1]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    left = in(reg) left[SIDE * apart..].as_ptr(), apart = in(reg) apart_bytes,
                    options(nostack, readonly)
                );
            }
        }
    }

    /// Writes the sums; those of rows that were not added to are 0.
    fn write(&self, sums: &mut Sums) {
        // SAFETY: the tiles are configured while this is there; 32 rows of 128 bytes are there.
        unsafe {
            asm!(
                "tilestored [{sums} + {width}*1], tmm0",
                "tilestored [{sums} + {width}*1 + 64], tmm1",
                "tilestored [{below} + {width}*1], tmm2",
                "tilestored [{below} + {width}*1 + 64], tmm3",
                sums = in(reg) sums.as_mut_ptr(), below = in(reg) sums[SIDE..].as_mut_ptr(), width = in(reg) 4 * WIDTH,
                options(nostack)
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: gives the tiles back; nobody looks at them any more.
        unsafe { asm!("tilerelease", options(nostack, nomem)) }
    }
}

pub(super) fn multiply(left: Left<'_>, right: &Packed, start: Start<'_>, out: Out<'_>) {
    if let Some(simd) = avx512().filter(|_| are_there()) {
        // SAFETY: the processor has the instructions.
        unsafe { run(simd, left, right, start, out) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
fn run(simd: V4, left: Left<'_>, right: &Packed, mut start: Start<'_>, mut out: Out<'_>) {
    let &Packed { ref values, k, n, width, .. } = right;
    debug_assert_eq!(width, WIDTH);
    let rows = out.values.len().div_ceil(out.stride);
    let steps = k.div_ceil(DEPTH).max(1);
    let each = k.div_ceil(steps).next_multiple_of(2 * SIDE);
    let (mut tiles, mut pairs_of_left) = (Tiles::new(), vec![]);
    let mut sums: Sums = [[simd.splat_f32s(0.0); VECTORS]; 2 * SIDE];
    for step in 0..steps {
        let terms = (step * each).min(k)..((step + 1) * each).min(k);
        let (pairs, wholes) = (terms.len().div_ceil(2), terms.len() / (2 * SIDE));
        // Pairs that there are not are 0, in both factors.
        let apart = pairs.next_multiple_of(SIDE);
        match left {
            Left::Rows(values, stride) => {
                rows_of_pairs(
                    &values[terms.start.min(values.len())..],
                    [stride, rows, terms.len(), apart],
                    &mut pairs_of_left,
                );
            }
            Left::Columns(values, stride) => {
                columns_of_pairs(
                    &values[(terms.start * stride).min(values.len())..],
                    [stride, rows, terms.len(), apart],
                    &mut pairs_of_left,
                );
            }
        }
        for p in 0..n.div_ceil(width) {
            let panel = &values[p * k * width + terms.start / 2 * width..][..pairs * width];
            let panel: &[u32] = bytemuck::cast_slice(panel);
            let (whole, rest) = panel.split_at(wholes * SIDE * width);
            let mut last = [0_u32; SIDE * WIDTH];
            last[..rest.len()].copy_from_slice(rest);
            let columns = p * width..n.min((p + 1) * width);
            for top in (0..rows).step_by(2 * SIDE) {
                let of = if rows - top > SIDE { Rows::ThirtyTwo } else { Rows::Sixteen };
                let left = &pairs_of_left[top * apart..];
                tiles.clear();
                for (at, right) in whole.chunks_exact(SIDE * width).enumerate() {
                    tiles.add(of, &left[at * SIDE..], apart, right);
                }
                if !rest.is_empty() {
                    tiles.add(of, &left[wholes * SIDE..], apart, &last);
                }
                tiles.write(&mut sums);
                write(simd, &sums, start, &mut out, top, columns.clone());
            }
        }
        start = Start::Kept;
    }
}

/// Rows in pairs, `apart` from one to the next, and room for whole tiles of them.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2")]
pub(super) fn rows_of_pairs(values: &[f32], [stride, rows, terms, apart]: [usize; 4], out: &mut Vec<u32>) {
    out.resize(rows.next_multiple_of(SIDE) * apart, 0);
    for (row, out) in out.chunks_exact_mut(apart.max(1)).take(rows).enumerate() {
        let row = &values[row * stride..][..terms];
        let halves: &mut [u16] = bytemuck::cast_slice_mut(out);
        for (half_of, x) in halves.iter_mut().zip(row) {
            *half_of = half(*x);
        }
        halves[terms..].fill(0);
    }
}

/// Columns in pairs as such rows.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2")]
fn columns_of_pairs(values: &[f32], [stride, rows, terms, apart]: [usize; 4], out: &mut Vec<u32>) {
    out.resize(rows.next_multiple_of(SIDE) * apart, 0);
    for (tile, out) in out.chunks_exact_mut((SIDE * apart).max(1)).enumerate() {
        let of = tile * SIDE..rows.min((tile + 1) * SIDE);
        for at in 0..apart {
            let term = |term: usize| (term < terms).then(|| &values[term * stride..][of.clone()]);
            let mut both = [0_u32; SIDE];
            match [term(2 * at), term(2 * at + 1)] {
                [Some(even), Some(odd)] => pair_up(even, odd, &mut both),
                [Some(even), None] => pair_up(even, &[0.0; SIDE], &mut both),
                _ => {}
            }
            for (row, both) in both.iter().enumerate() {
                out[row * apart + at] = *both;
            }
        }
    }
}
