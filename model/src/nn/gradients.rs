//! Gradients of more tensors than candle's operations have arguments.
//!
//! An operation that reads many parameters holds them itself and takes a `Tickets` as one of its arguments: a small tensor through which
//! candle's backward pass reaches each parameter. Where the gradient would be, the operation puts it into the parameter's `Slot` instead.
//! [`gradients`] then takes it from there as it is; candle's own `backward` works as well, but adds each to zeros first.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::backprop::GradStore;
use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

thread_local! {
    /// Parameters with their gradients, while [`gradients`] runs on this thread.
    static COLLECTED: RefCell<Option<Vec<(Tensor, Tensor)>>> = const { RefCell::new(None) };
}

/// Where an operation leaves the gradient of one tensor.
#[derive(Debug, Clone)]
pub(crate) struct Slot(Arc<Mutex<Option<Tensor>>>);

impl Slot {
    /// Leaves a gradient of the tensor's shape.
    pub(crate) fn put(&self, gradient: Tensor) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(gradient);
    }

    fn take(&self) -> Option<Tensor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What stands for some tensors among the arguments of an operation.
#[derive(Debug)]
pub(crate) struct Tickets {
    /// The argument `[p]`, `p` being how many of the tensors need a gradient, at least 1.
    pub(crate) argument_p: Tensor,
    /// The slot of each tensor, `None` for one that needs no gradient.
    pub(crate) slots: Vec<Option<Slot>>,
}

impl Tickets {
    /// Tickets for those of `tensors` that are variables or come from some. Whoever needs no gradient of a parameter gives the operation a
    /// tensor that is neither (`detach`).
    ///
    /// # Errors
    /// When the tensor library fails.
    pub(crate) fn new(tensors: &[&Tensor]) -> Result<Self> {
        let (mut slots, mut tickets) = (vec![], vec![]);
        for tensor in tensors {
            let slot = tensor.track_op().then(|| Slot(Arc::new(Mutex::new(None))));
            if let Some(slot) = &slot {
                tickets.push(tensor.apply_op1(Deliver(slot.clone()))?);
            }
            slots.push(slot);
        }
        if tickets.is_empty() {
            tickets.push(Tensor::zeros(1, candle_core::DType::F32, &candle_core::Device::Cpu)?);
        }
        Ok(Tickets { argument_p: Tensor::cat(&tickets, 0)?, slots })
    }
}

/// From a tensor to its ticket, and from the slot back to the tensor.
struct Deliver(Slot);

impl CustomOp1 for Deliver {
    fn name(&self) -> &'static str {
        "ticket"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok((CpuStorage::F32(vec![0.0]), Shape::from(1)))
    }

    fn bwd(&self, tensor: &Tensor, _: &Tensor, _: &Tensor) -> Result<Option<Tensor>> {
        // Taken, not read: a gradient that the next pass does not replace must not count twice.
        let Some(gradient) = self.0.take() else {
            candle_core::bail!("an operation left no gradient of shape {:?} behind", tensor.dims())
        };
        if !tensor.is_variable() {
            return Ok(Some(gradient));
        }
        Ok(COLLECTED.with_borrow_mut(|collected| match collected {
            Some(collected) => {
                collected.push((tensor.clone(), gradient));
                None
            }
            None => Some(gradient),
        }))
    }
}

/// The gradients of a loss by all variables behind it, as candle's `backward` gives them.
///
/// # Errors
/// When the tensor library fails.
pub fn gradients(loss: &Tensor) -> Result<GradStore> {
    let outer = COLLECTED.replace(Some(vec![]));
    let store = loss.backward();
    let collected = COLLECTED.replace(outer).unwrap_or_default();
    let mut store = store?;
    for (tensor, gradient) in collected {
        let sum = match store.remove(&tensor) {
            Some(other) => (other + gradient)?,
            None => gradient,
        };
        store.insert(&tensor, sum);
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use candle_core::{CustomOp2, Var};

    use super::*;
    use crate::nn::check::{numbers, randn};

    /// `x + 2 a + 3 b + ...` of tensors of one shape.
    struct Weighted {
        tensors: Vec<Tensor>,
        slots: Vec<Option<Slot>>,
    }

    impl CustomOp2 for Weighted {
        fn name(&self) -> &'static str {
            "weighted"
        }

        fn cpu_fwd(
            &self,
            x: &CpuStorage,
            layout: &Layout,
            _: &CpuStorage,
            _: &Layout,
        ) -> Result<(CpuStorage, Shape)> {
            let mut sum = x.as_slice::<f32>()?.to_vec();
            for (factor, tensor) in [2.0, 3.0, 4.0].into_iter().zip(&self.tensors) {
                let values = tensor.flatten_all()?.to_vec1::<f32>()?;
                sum.iter_mut().zip(values).for_each(|(s, x)| *s += factor * x);
            }
            Ok((CpuStorage::F32(sum), layout.shape().clone()))
        }

        fn bwd(
            &self,
            _: &Tensor,
            tickets: &Tensor,
            _: &Tensor,
            grad: &Tensor,
        ) -> Result<(Option<Tensor>, Option<Tensor>)> {
            for (factor, slot) in [2.0, 3.0, 4.0].into_iter().zip(&self.slots) {
                if let Some(slot) = slot {
                    slot.put((grad * factor)?);
                }
            }
            Ok((Some(grad.clone()), Some(tickets.zeros_like()?)))
        }
    }

    fn weighted(x: &Tensor, tensors: &[&Tensor]) -> Tensor {
        let Tickets { argument_p, slots } = Tickets::new(tensors).unwrap();
        let tensors = tensors.iter().map(|&t| t.clone()).collect();
        x.apply_op2(&argument_p, Weighted { tensors, slots }).unwrap()
    }

    #[test]
    fn all_gradients_arrive_both_ways_and_add_up() {
        let [x, a, b] = [1, 2, 3].map(|s| Var::from_tensor(&randn(s, &[4])).unwrap());
        let frozen = randn(4, &[4]);
        // b counts twice in the first, once through a product in the second, and once in candle's own sum.
        let once = weighted(&x, &[&a, &b, &frozen]);
        let twice = weighted(&once, &[&(b.as_tensor() * 10.0).unwrap(), &frozen]);
        let loss = (twice + b.as_tensor()).unwrap().sum_all().unwrap();
        for store in [loss.backward().unwrap(), gradients(&loss).unwrap()] {
            let of = |var: &Var| numbers(store.get(var).unwrap());
            assert_eq!([of(&x), of(&a), of(&b)], [vec![1.0; 4], vec![2.0; 4], vec![24.0; 4]]);
            assert!(store.get(&frozen).is_none());
        }
    }

    #[test]
    fn tensors_without_variables_need_no_ticket() {
        let Tickets { argument_p, slots } = Tickets::new(&[&randn(1, &[3])]).unwrap();
        assert!(slots[0].is_none() && !argument_p.track_op());
        assert!(!weighted(&randn(2, &[4]), &[&randn(3, &[4])]).track_op());
    }
}
