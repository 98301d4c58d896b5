//! Which slices of which parameters belong to a head (KIMERA, equation 3).

use std::fmt::Write as _;

/// The side of a parameter that its heads divide: head `h` of width `k` has the places `h * k .. (h + 1) * k` of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Rows of a matrix `[o, i]`, or numbers of a bias `[o]`: query, key and value.
    Rows,
    /// Columns of a matrix `[o, i]`: the projection that mixes the heads' contexts. Its bias belongs to no head.
    Columns,
}

/// The parameters of layer `l` that its heads divide among themselves, under the names of [`crate::encoder::Encoder::specs`].
#[must_use]
pub fn of_layer(l: usize) -> Vec<(String, Axis)> {
    let attention = format!("encoder.layer.{l}.attention");
    let rows = ["query", "key", "value"].iter().flat_map(|part| {
        ["weight", "bias"].map(|kind| (format!("{attention}.self.{part}.{kind}"), Axis::Rows))
    });
    rows.chain([(format!("{attention}.output.dense.weight"), Axis::Columns)]).collect()
}

/// Numbers as people list them: `0, 2 and 3`.
#[must_use]
pub(crate) fn listed(numbers: &[usize]) -> String {
    let mut text = String::new();
    for (i, number) in numbers.iter().enumerate() {
        let between = match i {
            0 => "",
            _ if i + 1 == numbers.len() => " and ",
            _ => ", ",
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{between}{number}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::Encoder;
    use crate::encoder::config::tests::tiny;

    #[test]
    fn every_name_is_a_parameter_whose_side_the_heads_divide() {
        let (config, specs) = (tiny(), Encoder::specs(&tiny()));
        for (name, axis) in (0..config.num_hidden_layers).flat_map(of_layer) {
            let spec = specs.iter().find(|spec| spec.name == name).unwrap();
            let side = if axis == Axis::Rows { spec.shape[0] } else { spec.shape[1] };
            assert_eq!(side, config.hidden_size, "{name}");
        }
        assert_eq!(of_layer(3).len(), 7);
        assert!(!of_layer(0).iter().any(|(name, _)| name.ends_with("output.dense.bias")));
    }

    #[test]
    fn numbers_are_listed_as_people_do() {
        assert_eq!([&[][..], &[4], &[0, 2], &[0, 2, 3]].map(listed), ["", "4", "0 and 2", "0, 2 and 3"]);
    }
}
