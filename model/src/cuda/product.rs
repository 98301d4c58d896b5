//! Matrix products by cuBLASLt, on matrices stored row after row, in f32 sums.
//!
//! cuBLASLt counts columns first, so a matrix `[a, b]` of ours is its `[b, a]`: each product here is the transposed one with its factors exchanged.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;

use candle_core::cuda_backend::cudarc::cublaslt::{result, sys};
use candle_core::cuda_backend::cudarc::driver::CudaStream;

use super::args::Address;
use super::graphs::Signature;
use super::{Numbers, error};
use crate::Error;
use crate::device::ActivationDtype;

/// Bytes that cuBLASLt may work in: what NVIDIA recommends for Hopper.
pub(crate) const WORKSPACE: usize = 32 << 20;

/// Which product of a linear layer `y = x W^T + b`, with x `[n, i]`, W `[o, i]` and y `[n, o]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// `y = x W^T`, with a bias or without.
    Forward { bias: bool },
    /// `dx = dy W`.
    Input,
    /// `dW += dy^T x`, in f32.
    Weight,
}

/// What a product is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Onto {
    /// Nothing: what stands there is overwritten.
    Nothing,
    /// What stands there.
    Itself,
}

/// What decides about an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Shape {
    kind: Kind,
    n: usize,
    i: usize,
    o: usize,
    /// How far rows of y lie apart.
    stride: usize,
    onto: Onto,
    /// Bytes at a multiple of which all three matrices begin, at most [`ALIGNED`].
    aligned: u32,
}

/// A linear layer's sizes: so many rows, inputs and outputs; rows of outputs lie `stride` numbers apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) n: usize,
    pub(crate) i: usize,
    pub(crate) o: usize,
    pub(crate) stride: usize,
}

impl Sizes {
    /// Rows one behind the other.
    pub(crate) fn dense(n: usize, i: usize, o: usize) -> Self {
        Sizes { n, i, o, stride: o }
    }
}

/// Matrices of a product: addresses of x, W (or its gradient) and y.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrices {
    pub(crate) x: Address,
    pub(crate) weight: Address,
    pub(crate) y: Address,
}

/// How one product is computed, chosen when its shape first comes up.
struct Plan {
    description: sys::cublasLtMatmulDesc_t,
    /// Of the first factor, the second and the result.
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

/// cuBLASLt with the plans made so far.
pub(crate) struct Products {
    handle: sys::cublasLtHandle_t,
    numbers: Numbers,
    compute: sys::cublasComputeType_t,
    workspace: Address,
    plans: HashMap<Shape, Plan>,
    /// Where only what would be launched is asked for.
    pub(super) signature: Option<Signature>,
}

/// What cuBLASLt takes for granted of where matrices begin, unless it is told otherwise.
const ALIGNED: u64 = 256;

/// Plans that are kept; ragged steps bring new shapes for ever.
const PLANS: usize = 4096;

// SAFETY: handle and plans are cuBLASLt's own memory, which is bound to no thread; `&mut self` keeps others away.
unsafe impl Send for Products {}

impl std::fmt::Debug for Products {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Products({:?}, {} plans)", self.numbers, self.plans.len())
    }
}

impl Products {
    /// Products of activations of this dtype, in [`WORKSPACE`] bytes at `workspace`.
    ///
    /// # Errors
    /// When the library does not begin.
    pub(crate) fn new(dtype: ActivationDtype, workspace: Address) -> Result<Self, Error> {
        let handle = result::create_handle().map_err(error::product)?;
        let (numbers, single) = (Numbers::of(dtype), sys::cublasComputeType_t::CUBLAS_COMPUTE_32F);
        let compute = match dtype {
            ActivationDtype::Tf32 => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            ActivationDtype::F32 | ActivationDtype::Bf16 => single,
        };
        Ok(Products { handle, numbers, compute, workspace, plans: HashMap::new(), signature: None })
    }

    /// `y = x W^T`, plus a bias `[o]` in the matrices' numbers unless its address is null.
    pub(crate) fn forward(
        &mut self,
        stream: &CudaStream,
        sizes: Sizes,
        of: Matrices,
        bias: Address,
    ) -> Result<(), Error> {
        let shape = Shape::new(Kind::Forward { bias: bias != 0 }, sizes, Onto::Nothing);
        self.run(stream, shape, [of.weight, of.x, of.y], bias)
    }

    /// `dx = dy W`, or `dx += dy W`.
    pub(crate) fn input(
        &mut self,
        stream: &CudaStream,
        sizes: Sizes,
        of: Matrices,
        onto: Onto,
    ) -> Result<(), Error> {
        self.run(stream, Shape::new(Kind::Input, sizes, onto), [of.weight, of.y, of.x], 0)
    }

    /// `dW += dy^T x`, dW in f32.
    pub(crate) fn weight(&mut self, stream: &CudaStream, sizes: Sizes, of: Matrices) -> Result<(), Error> {
        self.run(stream, Shape::new(Kind::Weight, sizes, Onto::Itself), [of.x, of.y, of.weight], 0)
    }

    fn run(
        &mut self,
        stream: &CudaStream,
        shape: Shape,
        [a, b, d]: [Address; 3],
        bias: Address,
    ) -> Result<(), Error> {
        if let Some(signature) = &mut self.signature {
            let Shape { kind, n, i, o, stride, onto, .. } = shape;
            let kind = match kind {
                Kind::Forward { .. } => 0,
                Kind::Input => 1,
                Kind::Weight => 2,
            };
            let sizes = [kind, n, i, o, stride, usize::from(onto == Onto::Itself)];
            signature.put_numbers(sizes.into_iter().map(|size| size as u64).chain([a, b, d, bias]));
            return Ok(());
        }
        stream.context().bind_to_thread().map_err(|e| error::driver("a product on the GPU", e))?;
        // The lowest bit of any of them.
        let together = a | b | d | ALIGNED;
        let shape = Shape { aligned: 1 << together.trailing_zeros(), ..shape };
        if !self.plans.contains_key(&shape) {
            if self.plans.len() >= PLANS {
                self.plans.drain().for_each(|(_, plan)| drop(plan));
            }
            let plan = self.plan(shape)?;
            self.plans.insert(shape, plan);
        }
        let Some(plan) = self.plans.get(&shape) else { return Err(error::no_plan()) };
        if bias != 0 {
            let which = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER;
            describe(plan.description, which, &bias)?;
        }
        let (one, rest) = (1.0_f32, if shape.onto == Onto::Itself { 1.0_f32 } else { 0.0 });
        let [of_a, of_b, of_d] = plan.layouts;
        // SAFETY: the tape hands in addresses of allocations that hold matrices of these sizes; the stream orders their uses.
        unsafe {
            result::matmul(
                self.handle,
                plan.description,
                pointer(&one),
                pointer(&rest),
                a as *const c_void,
                of_a,
                b as *const c_void,
                of_b,
                d as *const c_void,
                of_d,
                d as *mut c_void,
                of_d,
                &plan.algorithm,
                self.workspace as *mut c_void,
                WORKSPACE,
                stream.cu_stream().cast(),
            )
        }
        .map_err(error::product)
    }

    fn plan(&self, shape: Shape) -> Result<Plan, Error> {
        let Shape { kind, n, i, o, stride, .. } = shape;
        let numbers = self.numbers.cuda_type();
        let (single, bias) = (sys::cudaDataType::CUDA_R_32F, kind == Kind::Forward { bias: true });
        let description = result::create_matmul_desc(self.compute, single).map_err(error::product)?;
        let (flip_a, flip_b) = match kind {
            Kind::Forward { .. } => (true, false),
            Kind::Input => (false, false),
            Kind::Weight => (false, true),
        };
        let flipped = |flip: bool| if flip { 1_i32 } else { 0 };
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        describe(description, Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &flipped(flip_a))?;
        describe(description, Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &flipped(flip_b))?;
        if bias {
            let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
            describe(description, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
        }
        let layout = |of, rows: usize, columns: usize, apart: usize| {
            result::create_matrix_layout(of, rows as u64, columns as u64, apart as i64)
                .map_err(error::product)
        };
        let [x, w, y] = [(i, n, i), (i, o, i), (o, n, stride)];
        let [(a, of_a), (b, of_b), (d, of_d)] = match kind {
            Kind::Forward { .. } => [(w, numbers), (x, numbers), (y, numbers)],
            Kind::Input => [(w, numbers), (y, numbers), (x, numbers)],
            Kind::Weight => [(x, numbers), (y, numbers), (w, single)],
        };
        let layouts =
            [layout(of_a, a.0, a.1, a.2)?, layout(of_b, b.0, b.1, b.2)?, layout(of_d, d.0, d.1, d.2)?];
        let algorithm = self.algorithm(description, layouts, shape.aligned)?;
        Ok(Plan { description, layouts, algorithm })
    }

    /// The library's own first choice, which stays: from the same sizes follow the same bits.
    fn algorithm(
        &self,
        description: sys::cublasLtMatmulDesc_t,
        [a, b, d]: [sys::cublasLtMatrixLayout_t; 3],
        aligned: u32,
    ) -> Result<sys::cublasLtMatmulAlgo_t, Error> {
        let preference = result::create_matmul_pref().map_err(error::product)?;
        let most = WORKSPACE;
        use sys::cublasLtMatmulPreferenceAttributes_t as Preference;
        let which = Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let begins = [
            Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        ];
        // SAFETY: everything was made above and lives until the end of the function.
        unsafe {
            let mut set =
                result::set_matmul_pref_attribute(preference, which, pointer(&most), size_of::<usize>());
            for which in begins {
                set = set.and(result::set_matmul_pref_attribute(
                    preference,
                    which,
                    pointer(&aligned),
                    size_of::<u32>(),
                ));
            }
            let found = set.and_then(|()| {
                result::get_matmul_algo_heuristic(self.handle, description, a, b, d, d, preference)
            });
            result::destroy_matmul_pref(preference).map_err(error::product)?;
            Ok(found.map_err(error::product)?.algo)
        }
    }
}

impl Shape {
    fn new(kind: Kind, Sizes { n, i, o, stride }: Sizes, onto: Onto) -> Self {
        Shape { kind, n, i, o, stride, onto, aligned: 1 }
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: made by `plan`, and nobody else has them. What fails here is a leak of a few bytes.
        unsafe {
            let _ = result::destroy_matmul_desc(self.description);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        self.plans.clear();
        // SAFETY: made by `new`.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

fn pointer<T>(value: &T) -> *const c_void {
    ptr::from_ref(value).cast()
}

fn describe<T>(
    description: sys::cublasLtMatmulDesc_t,
    which: sys::cublasLtMatmulDescAttributes_t,
    value: &T,
) -> Result<(), Error> {
    // SAFETY: the library copies so many bytes.
    unsafe { result::set_matmul_desc_attribute(description, which, pointer(value), size_of::<T>()) }
        .map_err(error::product)
}
