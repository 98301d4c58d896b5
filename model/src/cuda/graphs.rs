//! Steps as CUDA graphs: what is launched again with the same arguments goes to the device in one launch.
//!
//! All that varies between steps of the same sizes stands in their feeds, so they launch the same kernels over the same addresses. Before a step is launched, its
//! launches are put together as bytes, its *signature*, which takes the host a fraction of what launching them does. A signature that comes a second time is captured
//! (CUDA C++ Programming Guide, "Creating a Graph Using Stream Capture") and from then on launched as one graph. Other sizes or addresses are another signature, so no
//! graph can be out of date.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use candle_core::cuda_backend::cudarc::driver::{CudaGraph, CudaStream, result};

use super::error;
use super::model::Model;
use crate::Error;

/// Tokens of a step up to which graphs are made of it. What a larger one asks of the device takes longer than its launches.
pub(crate) const GRAPHED: usize = 16 * 1024;

/// Graphs that are kept, some hundred kilobytes each; the oldest goes.
const KEPT: usize = 64;
/// Signatures that came once and are remembered.
const SEEN: usize = 1024;

/// What is launched, as bytes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Signature(Vec<u8>);

impl Signature {
    /// Adds bytes of a known number.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Adds another one.
    pub(crate) fn append(&mut self, other: &Signature) {
        self.put(&other.0);
    }

    /// Adds numbers.
    pub(crate) fn put_numbers(&mut self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|number| self.put(&number.to_ne_bytes()));
    }
}

/// The graphs of a training.
#[derive(Default)]
pub(crate) struct Graphs {
    made: VecDeque<(Signature, CudaGraph)>,
    /// Hashes of signatures that came once. Two of the same hash only make a graph one time earlier.
    seen: VecDeque<u64>,
    /// What is captured, since others may use the model's own stream meanwhile.
    apart: Option<Arc<CudaStream>>,
}

// SAFETY: a graph is bound to no thread, and `&mut self` keeps others away while one is launched or dropped.
unsafe impl Send for Graphs {}

impl std::fmt::Debug for Graphs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graphs({} made, {} seen)", self.made.len(), self.seen.len())
    }
}

impl Graphs {
    /// Launches what `launches` does, by a graph where there is one. It is called once, or twice: for the signature, when nothing reaches the device, and for the device.
    ///
    /// # Errors
    /// When the driver refuses a launch or a graph.
    pub(crate) fn launch(
        &mut self,
        model: &mut Model,
        launches: impl Fn(&mut Model) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let failed = |e| error::driver("a graph of a step", e);
        model.cuda.begin_signature();
        let signed = launches(model);
        let signature = model.cuda.end_signature();
        signed?;
        if let Some((_, graph)) = self.made.iter().find(|(of, _)| *of == signature) {
            return run(graph, &model.cuda.stream);
        }
        let mut hasher = DefaultHasher::new();
        signature.0.hash(&mut hasher);
        let hash = hasher.finish();
        if !self.seen.contains(&hash) {
            self.seen.push_back(hash);
            if self.seen.len() > SEEN {
                self.seen.pop_front();
            }
            return launches(model);
        }
        let stream = match &self.apart {
            Some(stream) => stream.clone(),
            None => {
                let stream = model.cuda.stream.context().new_stream().map_err(failed)?;
                self.apart.insert(stream).clone()
            }
        };
        // Other threads may go on allocating.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        stream.begin_capture(mode).map_err(failed)?;
        let own = std::mem::replace(&mut model.cuda.stream, stream.clone());
        let launched = launches(model);
        model.cuda.stream = own;
        // Whatever has happened, the stream is no longer captured.
        let graph = stream.end_capture(CUgraphInstantiate_flags(0));
        launched?;
        let Some(graph) = graph.map_err(failed)? else { return Err(error::no_graph()) };
        run(&graph, &model.cuda.stream)?;
        if self.made.len() == KEPT {
            self.made.pop_front();
        }
        self.made.push_back((signature, graph));
        Ok(())
    }
}

/// Launches a graph on a stream.
fn run(graph: &CudaGraph, stream: &CudaStream) -> Result<(), Error> {
    let failed = |e| error::driver("a graph of a step", e);
    stream.context().bind_to_thread().map_err(failed)?;
    // SAFETY: the graph lives, and what its launches read and write is what the same launches would on this stream.
    unsafe { result::graph::launch(graph.cu_graph_exec(), stream.cu_stream()) }.map_err(failed)
}
