//! Rows of tables looked up and added, f32 numbers on the CPU.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use crate::nn::Host;
use crate::nn::buffers::Buffers;
use crate::nn::gradients::{Slot, Tickets};

/// Tables of one width, and which row of each every token takes.
struct Lookup {
    tables: [Tensor; 3],
    rows: [Vec<u32>; 3],
    slots: Vec<Option<Slot>>,
    buffers: Buffers,
}

/// Numbers that one thread sets to 0 at a time.
const CHUNK: usize = 1 << 16;

/// The sum `[n, d]` of row `rows_n` of every table `[.., d]`.
///
/// # Errors
/// When the tables are not of one width, or a row is not there.
pub(super) fn sum(tables: [&Tensor; 3], rows_n: [&Tensor; 3], buffers: &Buffers) -> Result<Tensor> {
    let [a, b, c] = rows_n.map(Tensor::to_vec1::<u32>);
    let rows = [a?, b?, c?];
    for (table, rows) in tables.iter().zip(&rows) {
        let (height, width) = table.dims2()?;
        if width != tables[0].dim(1)?
            || rows.iter().any(|row| *row as usize >= height)
            || rows.len() != rows_n[0].elem_count()
        {
            candle_core::bail!("a row that is not in its table, or tables of different widths");
        }
    }
    let Tickets { argument_p, slots } = Tickets::new(&tables)?;
    let tables = tables.map(Tensor::detach);
    argument_p.apply_op1(Lookup { tables, rows, slots, buffers: buffers.clone() })
}

impl CustomOp1 for Lookup {
    fn name(&self) -> &'static str {
        "lookup"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        let (n, d) = (self.rows[0].len(), self.tables[0].dim(1)?);
        let mut sum = vec![0.0; n * d];
        for (which, (table, rows)) in self.tables.iter().zip(&self.rows).enumerate() {
            let host = Host::of(table)?;
            let table = host.get()?;
            for (sum, row) in sum.chunks_exact_mut(d).zip(rows) {
                let row = &table[*row as usize * d..][..d];
                match which {
                    0 => sum.copy_from_slice(row),
                    _ => sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x),
                }
            }
        }
        Ok((CpuStorage::F32(sum), Shape::from((n, d))))
    }

    fn bwd(&self, tickets: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let grad = grad.contiguous()?;
        let host = Host::of(&grad)?;
        let g = host.get()?;
        for ((slot, table), rows) in self.slots.iter().zip(&self.tables).zip(&self.rows) {
            let (Some(slot), d) = (slot, table.dim(1)?) else { continue };
            let mut found = self.buffers.any(table.elem_count());
            found.par_chunks_mut(CHUNK).with_min_len(4).for_each(|chunk| chunk.fill(0.0));
            for (g, row) in g.chunks_exact(d).zip(rows) {
                found[*row as usize * d..][..d].iter_mut().zip(g).for_each(|(sum, g)| *sum += g);
            }
            slot.put(found.into_tensor(table.shape())?);
        }
        Ok(Some(tickets.zeros_like()?))
    }
}
