//! Which heads a step of a mask search takes: so many, the least important first, ties by place, none that is protected.

use super::{Config, Selection, StepRule, Stop};

/// The heads that the steps so far have taken.
#[derive(Debug)]
pub(super) struct Picked<'a> {
    config: &'a Config,
    heads: usize,
    /// For each head, layer after layer: whether it was ever taken.
    taken: Vec<bool>,
    /// How many heads the steps so far were to take in all.
    wanted: usize,
}

impl<'a> Picked<'a> {
    /// No step was made yet.
    pub(super) fn new(config: &'a Config, [layers, heads]: [usize; 2]) -> Self {
        Picked { config, heads, taken: vec![false; layers * heads], wanted: 0 }
    }

    /// Heads that the next step takes.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count is one; below 0 it would be 0"
    )]
    fn step(&self) -> usize {
        let (all, rho) = (self.taken.len() as f64, self.config.rho);
        let count = match self.config.step_rule {
            StepRule::FixedFloor => (all * rho).floor(),
            // 30 * 0.1 is a little more than 3.
            StepRule::CeilRemaining => (self.left() as f64 * rho - 1e-9).ceil(),
        };
        (count as usize).max(1)
    }

    /// Heads that are left to take.
    fn left(&self) -> usize {
        match self.config.selection {
            Selection::SelectOnce => self.taken.iter().filter(|taken| !**taken).count(),
            // Candidates may be the same heads again, so what counts is how many there were to be.
            Selection::ReselectAll => self.taken.len().saturating_sub(self.wanted),
        }
    }

    /// Why there is no next step, if there is none.
    pub(super) fn end(&self) -> Option<Stop> {
        if self.left() <= self.step() {
            return Some(Stop::FewerHeadsLeftThanStep);
        }
        let none = self.taken.chunks_exact(self.heads).all(|row| self.free(row) == 0);
        none.then_some(Stop::AllLeftAreProtected)
    }

    /// Takes the heads of the next step, at least one unless [`Self::end`] has an answer. Fewer than the step rule says when
    /// the others are protected.
    pub(super) fn take(&mut self, importance: &[f64]) -> Vec<usize> {
        let step = self.step();
        self.wanted += step;
        let (again, limit) = match self.config.selection {
            Selection::SelectOnce => (false, step),
            Selection::ReselectAll => (true, self.wanted),
        };
        let mut order: Vec<usize> = (0..self.taken.len()).collect();
        // Stable, so that equal importances go by place.
        order.sort_by(|a, b| importance[*a].total_cmp(&importance[*b]));
        let mut free: Vec<usize> = self.taken.chunks_exact(self.heads).map(|row| self.free(row)).collect();
        let mut selected = vec![];
        for head in order {
            let free = &mut free[head / self.heads];
            let may = if self.taken[head] { again } else { *free > 0 };
            if may && selected.len() < limit {
                *free -= usize::from(!self.taken[head]);
                selected.push(head);
            }
        }
        selected.iter().for_each(|head| self.taken[*head] = true);
        selected
    }

    /// How many more heads of a layer may be taken.
    fn free(&self, row: &[bool]) -> usize {
        row.iter().filter(|taken| !**taken).count().saturating_sub(self.config.keep_per_layer)
    }
}
