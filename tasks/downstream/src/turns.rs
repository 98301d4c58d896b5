//! In which order a fine-tuner sees its items, epoch after epoch.
//!
//! An epoch is a permutation of all items, cut into batches; one batch of an epoch may be smaller, none is left out. Order is a function
//! of seed and epoch, so the number of steps that were made is all that says where a training stands.

use base::rng::RngKey;
use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};

use tasks::stream::schedule::{self, Schedule};

/// What changes from epoch to epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// All are reshuffled every epoch.
    #[default]
    Anew,
    /// Batches are formed once, from shuffled examples, and shuffled (MT-BERT's code).
    FixedBatches,
    /// They are not reordered (MT-Clinical BERT's code).
    AsGiven,
}

/// Batches of items by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    items: usize,
    batch: usize,
    order: Order,
    seed: RngKey,
}

impl Turns {
    /// Turns of `items` items, `batch` of them a step, in this order.
    ///
    /// # Errors
    /// When there is no item, or a batch has none.
    pub fn new(items: usize, batch: usize, order: Order, seed: RngKey) -> Result<Self, InvalidSetting> {
        if items == 0 {
            return Err(InvalidSetting::new("items", items, "at least 1: there is nothing to learn from"));
        }
        if batch == 0 {
            return Err(InvalidSetting::new("batch", batch, "at least 1"));
        }
        Ok(Self { items, batch, order, seed: seed.named("turns") })
    }

    /// Steps that show every item once.
    #[must_use]
    pub fn steps_per_epoch(&self) -> u64 {
        self.items.div_ceil(self.batch) as u64
    }

    /// The items of an epoch, from 0, batch behind batch, and the places of the batches in the order in which they are shown.
    fn order(&self, epoch: u64) -> (Vec<usize>, Vec<usize>) {
        let mut items: Vec<usize> = (0..self.items).collect();
        let mut places: Vec<usize> = (0..self.items.div_ceil(self.batch)).collect();
        match self.order {
            Order::Anew => self.seed.at(epoch).shuffle(&mut items),
            Order::FixedBatches => {
                self.seed.named("items").shuffle(&mut items);
                self.seed.at(epoch).shuffle(&mut places);
            }
            Order::AsGiven => {}
        }
        (items, places)
    }

    /// The epoch of step `step` (both from 0) and the items of its batch.
    #[must_use]
    pub fn step(&self, step: u64) -> (u64, Vec<usize>) {
        let (epoch, within) = (step / self.steps_per_epoch(), step % self.steps_per_epoch());
        let (items, places) = self.order(epoch);
        // Below the number of batches, which is a usize.
        let place = places.get(usize::try_from(within).unwrap_or(usize::MAX)).copied().unwrap_or_default();
        (epoch, items.chunks(self.batch).nth(place).unwrap_or_default().to_vec())
    }
}

/// Batches of several tasks that take turns.
///
/// Each task has its own order; where an epoch of the schedule begins, all begin a new one.
#[derive(Debug, Clone)]
pub struct Mixed {
    each: Vec<Turns>,
    schedule: schedule::Turns,
    /// Batches that each task has shown or skipped.
    shown: Vec<u64>,
    step: u64,
}

/// What a step shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The place of the task.
    pub task: usize,
    /// Which time the task shows its items, from 0.
    pub epoch: u64,
    /// The items, by number.
    pub items: Vec<usize>,
}

impl Mixed {
    /// Turns of tasks with so many items each, and so many of them a step, each task's in this order. With one task they are those of [`Turns`].
    ///
    /// # Errors
    /// When a task has no item, a batch has none, or the schedule shows several tasks in one step.
    pub fn new(
        tasks: &[(usize, usize)],
        order: Order,
        schedule: Schedule,
        seed: RngKey,
    ) -> Result<Self, InvalidSetting> {
        if schedule == Schedule::Kimera {
            let expected =
                "merged, round_robin, proportional or temperature: samples of one triple are no others'";
            return Err(InvalidSetting::new("schedule", "kimera", expected));
        }
        // Sets of one size would show the same numbers together.
        let own = |place: u64| if tasks.len() == 1 { seed } else { seed.at(place) };
        let each = (0..).zip(tasks);
        let each = each.map(|(place, &(items, batch))| Turns::new(items, batch, order, own(place)));
        let each = each.collect::<Result<Vec<_>, _>>()?;
        let batches = each.iter().map(Turns::steps_per_epoch).collect();
        let schedule = schedule::Turns::new(schedule, batches, seed.named("tasks"));
        Ok(Self { shown: vec![0; each.len()], each, schedule, step: 0 })
    }

    /// Steps of an epoch of the schedule.
    #[must_use]
    pub fn steps_per_epoch(&self) -> u64 {
        self.schedule.steps()
    }

    /// What the next step shows; `None` without tasks.
    #[must_use]
    pub fn advance(&mut self) -> Option<Shown> {
        let (task, shown) = self.turn()?;
        let (epoch, items) = self.each.get(task)?.step(shown);
        Some(Shown { task, epoch, items })
    }

    /// Passes over what the next `steps` steps show.
    pub fn pass_over(&mut self, steps: u64) {
        for _ in 0..steps {
            _ = self.turn();
        }
    }

    /// The next task, and which of its batches it shows, counted over all epochs; [`Mixed::advance`] without the items.
    pub fn turn(&mut self) -> Option<(usize, u64)> {
        let schedule::Turn { task, begins } = self.schedule.turn(self.step)?;
        self.step += 1;
        if begins {
            for (shown, turns) in self.shown.iter_mut().zip(&self.each) {
                *shown = shown.next_multiple_of(turns.steps_per_epoch());
            }
        }
        let shown = self.shown.get_mut(task)?;
        *shown += 1;
        Some((task, *shown - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Turns {
        /// The batches of an epoch, from 0, in order.
        fn epoch(&self, epoch: u64) -> Vec<Vec<usize>> {
            let (items, places) = self.order(epoch);
            let batches: Vec<&[usize]> = items.chunks(self.batch).collect();
            places.into_iter().map(|place| batches[place].to_vec()).collect()
        }
    }

    #[test]
    fn every_epoch_has_every_item_once_in_another_order() {
        let turns = Turns::new(10, 4, Order::Anew, RngKey::new(1)).unwrap();
        assert_eq!(turns.steps_per_epoch(), 3);
        let mut orders = Vec::new();
        for epoch in 0..5 {
            let batches: Vec<_> = (0..3).map(|within| turns.step(epoch * 3 + within)).collect();
            assert!(batches.iter().all(|(of, _)| *of == epoch));
            let sizes: Vec<_> = batches.iter().map(|(_, batch)| batch.len()).collect();
            assert_eq!(sizes, [4, 4, 2]);
            let order: Vec<usize> = batches.into_iter().flat_map(|(_, batch)| batch).collect();
            assert_eq!(order, turns.epoch(epoch).concat());
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
            orders.push(order);
        }
        orders.dedup();
        assert_eq!(orders.len(), 5, "{orders:?}");
    }

    #[test]
    fn batches_that_stay_change_places_and_what_is_given_stays() {
        let turns = Turns::new(10, 4, Order::FixedBatches, RngKey::new(1)).unwrap();
        let sorted = |epoch| {
            let mut batches = turns.epoch(epoch);
            batches.sort();
            batches
        };
        assert!((1..8).all(|epoch| sorted(epoch) == sorted(0)));
        assert!((1..8).any(|epoch| turns.epoch(epoch) != turns.epoch(0)));
        assert_ne!(sorted(0).concat(), (0..10).collect::<Vec<_>>());
        let mut all = turns.epoch(0).concat();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        let given = Turns::new(5, 2, Order::AsGiven, RngKey::new(1)).unwrap();
        assert_eq!([given.epoch(0), given.epoch(7)], [0, 7].map(|_| vec![vec![0, 1], vec![2, 3], vec![4]]));
    }

    #[test]
    fn a_step_follows_from_its_number_and_the_seed_alone() {
        let turns = |seed| Turns::new(100, 7, Order::Anew, RngKey::new(seed)).unwrap();
        assert_eq!(turns(1).step(40), turns(1).step(40));
        assert_ne!(turns(1).step(40), turns(2).step(40));
        let whole = Turns::new(3, 8, Order::Anew, RngKey::new(1)).unwrap();
        assert_eq!((whole.steps_per_epoch(), whole.step(7).0, whole.step(7).1.len()), (1, 7, 3));
    }

    #[test]
    fn nothing_to_show_is_refused() {
        let refused =
            |items, batch| Turns::new(items, batch, Order::Anew, RngKey::new(1)).unwrap_err().to_string();
        assert!(refused(0, 4).starts_with("items is 0, expected at least 1"));
        assert!(refused(4, 0).starts_with("batch is 0, expected at least 1"));
    }

    #[test]
    fn one_task_alone_has_its_own_turns() {
        let turns = Turns::new(10, 3, Order::Anew, RngKey::new(4)).unwrap();
        let mut mixed = Mixed::new(&[(10, 3)], Order::Anew, Schedule::Merged, RngKey::new(4)).unwrap();
        assert_eq!(mixed.steps_per_epoch(), 4);
        for step in 0..9 {
            let Shown { task, epoch, items } = mixed.advance().unwrap();
            assert_eq!((task, (epoch, items)), (0, turns.step(step)));
        }
    }

    #[test]
    fn an_epoch_of_merged_tasks_shows_every_item_of_all() {
        let mut mixed =
            Mixed::new(&[(10, 3), (4, 1)], Order::Anew, Schedule::Merged, RngKey::new(4)).unwrap();
        let mut orders = vec![];
        for epoch in 0..2 {
            let mut seen = [vec![], vec![]];
            let mut order = vec![];
            for _ in 0..mixed.steps_per_epoch() {
                let shown = mixed.advance().unwrap();
                assert_eq!(shown.epoch, epoch);
                seen[shown.task].extend(shown.items);
                order.push(shown.task);
            }
            seen.iter_mut().for_each(|items| items.sort_unstable());
            assert_eq!(seen, [(0..10).collect::<Vec<_>>(), (0..4).collect()]);
            orders.push(order);
        }
        assert_eq!(orders[0].len(), 8);
        let mut resumed =
            Mixed::new(&[(10, 3), (4, 1)], Order::Anew, Schedule::Merged, RngKey::new(4)).unwrap();
        resumed.pass_over(16);
        assert_eq!(resumed.advance(), mixed.advance());
    }

    #[test]
    fn small_tasks_go_round_again_and_all_begin_anew_together() {
        let rule = schedule::round_robin::Rule::Paper;
        let mut alike =
            Mixed::new(&[(20, 20), (20, 20)], Order::Anew, Schedule::RoundRobin(rule), RngKey::new(1))
                .unwrap();
        assert_ne!(alike.advance().unwrap().items, alike.advance().unwrap().items, "each has its own order");
        let mut mixed =
            Mixed::new(&[(6, 2), (2, 2)], Order::Anew, Schedule::RoundRobin(rule), RngKey::new(1)).unwrap();
        assert_eq!(mixed.steps_per_epoch(), 6);
        let shown: Vec<(usize, u64)> =
            (0..8).map(|_| mixed.advance().unwrap()).map(|of| (of.task, of.epoch)).collect();
        assert_eq!(shown, [(0, 0), (1, 0), (0, 0), (1, 1), (0, 0), (1, 2), (0, 1), (1, 3)]);
        assert!(Mixed::new(&[(6, 2)], Order::Anew, Schedule::Kimera, RngKey::new(1)).is_err());
        assert!(Mixed::new(&[(6, 2), (0, 2)], Order::Anew, Schedule::Merged, RngKey::new(1)).is_err());
    }
}
