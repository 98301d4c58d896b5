//! Which attention heads a model can spare: their importance, the search for a head mask, and the mask itself (KIMERA, section 2.1).

pub mod importance;
pub mod mask;
pub mod search;
pub mod slices;
