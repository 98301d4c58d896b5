//! What the embeddings of labels begin with.

use candle_core::{Result, Tensor};

/// Embeddings `[m, d]` from words that tell what the labels mean: the mean of the embeddings of all their tokens, label by label.
///
/// # Errors
/// When a label has no token, or one that `embeddings_vd` does not have.
pub fn of_keywords(embeddings_vd: &Tensor, tokens: &[Vec<u32>]) -> Result<Tensor> {
    let vocabulary = embeddings_vd.dim(0)?;
    let mut rows = vec![];
    for (label, tokens) in tokens.iter().enumerate() {
        if tokens.is_empty() {
            candle_core::bail!(
                "label {label} (from 0) has no keyword; give it one, or begin with other embeddings"
            );
        }
        if let Some(token) = tokens.iter().find(|token| **token as usize >= vocabulary) {
            candle_core::bail!(
                "label {label} (from 0): token {token} is beyond a vocabulary of {vocabulary}"
            );
        }
        let index = Tensor::new(tokens.as_slice(), embeddings_vd.device())?;
        rows.push(embeddings_vd.index_select(&index, 0)?.mean(0)?);
    }
    Tensor::stack(&rows, 0)
}

/// Sums of what examples of each class look like to an encoder before it is fine-tuned: their first tokens' last hidden states.
#[derive(Debug, Clone)]
pub struct ClassMeans {
    sums_md: Vec<Vec<f64>>,
    counts: Vec<u64>,
}

impl ClassMeans {
    /// None seen yet, of classes and numbers a state.
    #[must_use]
    pub fn new(classes: usize, d: usize) -> Self {
        ClassMeans { sums_md: vec![vec![0.0; d]; classes], counts: vec![0; classes] }
    }

    /// Adds an example; a class or a state that does not fit is an error.
    ///
    /// # Errors
    /// Says which.
    pub fn add(&mut self, class: u32, state_d: &[f32]) -> Result<()> {
        let Some(sum) = self.sums_md.get_mut(class as usize).filter(|sum| sum.len() == state_d.len()) else {
            candle_core::bail!(
                "an example of class {class} with {} numbers, there are {} classes",
                state_d.len(),
                self.counts.len()
            )
        };
        sum.iter_mut().zip(state_d).for_each(|(sum, x)| *sum += f64::from(*x));
        self.counts[class as usize] += 1;
        Ok(())
    }

    /// The means `[m, d]`.
    ///
    /// # Errors
    /// When a class has no example.
    pub fn embeddings(&self, device: &candle_core::Device) -> Result<Tensor> {
        if let Some(class) = self.counts.iter().position(|count| *count == 0) {
            candle_core::bail!("class {class} (from 0) has no example; begin with other embeddings");
        }
        let mean = |(sum, count): (&Vec<f64>, &u64)| -> Vec<f32> {
            sum.iter().map(|x| crate::nn::single(x / *count as f64)).collect()
        };
        let all: Vec<Vec<f32>> = self.sums_md.iter().zip(&self.counts).map(mean).collect();
        Tensor::new(all, device)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::nn::check::randn;

    #[test]
    fn what_is_missing_is_an_error() {
        let table = randn(1, &[5, 4]);
        let text = of_keywords(&table, &[vec![1], vec![]]).unwrap_err().to_string();
        assert!(text.contains("label 1 (from 0) has no keyword"), "{text}");
        let text = of_keywords(&table, &[vec![1], vec![2, 5]]).unwrap_err().to_string();
        assert!(text.contains("label 1 (from 0): token 5 is beyond a vocabulary of 5"), "{text}");
        let mut means = ClassMeans::new(2, 4);
        means.add(0, &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!(means.add(2, &[0.0; 4]).unwrap_err().to_string().contains("class 2"));
        assert!(means.add(1, &[0.0; 3]).unwrap_err().to_string().contains("3 numbers"));
        let text = means.embeddings(&Device::Cpu).unwrap_err().to_string();
        assert!(text.contains("class 1 (from 0) has no example"), "{text}");
        means.add(1, &[0.0; 4]).unwrap();
        means.add(0, &[3.0, 2.0, 1.0, 0.0]).unwrap();
        let found = means.embeddings(&Device::Cpu).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(found, [[2.0; 4], [0.0; 4]]);
    }
}
