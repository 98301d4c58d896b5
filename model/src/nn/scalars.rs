//! Numbers that the CPU must know, read from their device at once.

use candle_core::{DType, Result, Tensor};

/// The values of tensors without axes, in their order. A device is waited for once, however many there are: a step that has everything
/// computed before it looks at its losses, their hits and the gradients' norm waits once.
///
/// # Errors
/// When a tensor has axes, or they are on different devices.
pub fn read(scalars: &[&Tensor]) -> Result<Vec<f64>> {
    let single = |scalar: &&Tensor| {
        if scalar.rank() > 0 {
            candle_core::bail!("expected a tensor without axes, got one of shape {:?}", scalar.dims());
        }
        scalar.detach().to_dtype(DType::F32)?.reshape(1)
    };
    match scalars {
        [] => Ok(vec![]),
        scalars => {
            let all = Tensor::cat(&scalars.iter().map(single).collect::<Result<Vec<_>>>()?, 0)?;
            Ok(all.to_vec1::<f32>()?.into_iter().map(f64::from).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn values_come_in_order_whatever_their_type() {
        let scalar = |x: f32, dtype| Tensor::new(x, &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
        let all = [scalar(1.5, DType::F32), scalar(-2.0, DType::BF16), scalar(7.0, DType::U32)];
        assert_eq!(read(&all.each_ref()).unwrap(), [1.5, -2.0, 7.0]);
        assert_eq!(read(&[]).unwrap(), [0.0; 0]);
        let row = Tensor::new(&[1.0_f32], &Device::Cpu).unwrap();
        assert!(
            read(&[&all[0], &row]).unwrap_err().to_string().contains("without axes, got one of shape [1]")
        );
    }
}
