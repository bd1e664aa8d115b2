//! The state of a picture: the last look, and the numbers of those before it.

use crate::look::{GroupLook, Look, Title};
use crate::plot::Plot;
use std::collections::VecDeque;

/// Samples of a group that are kept.
const HISTORY: usize = 600;

/// The numbers of a group at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// µs of the source's clock.
    pub at_us: u64,
    /// By [`Plot`], in the order of [`Plot::ALL`]; `None`: unbounded, or not known.
    pub values: [Option<f64>; Plot::ALL.len()],
    /// The true distance of the farthest location, where it is known.
    pub off: Option<f64>,
}

impl Sample {
    /// The value of a plot.
    pub fn value(&self, plot: Plot) -> Option<f64> {
        self.values[plot as usize]
    }
}

/// A group: the last look at it, and its history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// The last look.
    pub look: GroupLook,
    /// Samples, the newest last, at most 600.
    pub samples: VecDeque<Sample>,
    /// True if the next look may be compared with the last one.
    is_fresh: bool,
}

impl Group {
    /// The newest value of a plot.
    pub fn value(&self, plot: Plot) -> Option<f64> {
        self.samples.back()?.value(plot)
    }

    /// The share of what was sent since the view began that was lost, in percent.
    pub fn lost_percent(&self) -> f64 {
        100.0 * self.look.lost as f64 / self.look.sent.max(1) as f64
    }

    fn push(&mut self, sample: Sample) {
        if self.samples.len() == HISTORY {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    fn take(&mut self, at_us: u64, look: GroupLook) {
        let (before, told) = (&self.look, look.told);
        let passed = self.samples.back().map(|it| at_us.saturating_sub(it.at_us));
        let generation = |look: &GroupLook| look.told.map(|told| told.generation);
        let goes_on = self.is_fresh && generation(before) == generation(&look);
        let a_second = |before: u64, now: u64| {
            let seconds = passed.filter(|us| goes_on && *us > 0)? as f64 / 1e6;
            Some(now.checked_sub(before)? as f64 / seconds)
        };
        let number = |value: u64| Some(value as f64);
        let values = [
            told.and_then(|told| told.bound).and_then(number),
            look.unsent.and_then(number),
            told.and_then(|told| number(told.within)),
            told.and_then(|told| number(told.all_but)),
            told.and_then(|told| number(told.age_us)),
            number(look.queued.into()),
            a_second(before.lost, look.lost),
            a_second(before.sent, look.sent),
        ];
        let off = look.off.and_then(number);
        self.push(Sample { at_us, values, off });
        self.look = look;
        self.is_fresh = true;
    }
}

/// Meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    /// An end.
    Quit,
    /// To stand still, or go on.
    Pause,
    /// Another plot, so many places behind the present one.
    Plot(usize),
    /// The next register.
    NextGroup,
    /// The register before it.
    PreviousGroup,
    /// An explanation, or its end.
    Help,
}

/// State of a picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Names of the program, its place and its traffic.
    pub title: Title,
    /// The groups.
    pub groups: Vec<Group>,
    /// Position of the group that is shown.
    pub chosen: usize,
    /// Position of the plot that is shown large.
    plot: usize,
    /// True while looks are left out.
    pub is_paused: bool,
    /// True while the explanation is shown.
    pub helps: bool,
    /// µs of the source's clock at the last look.
    pub at_us: u64,
    /// Packets that the switch had.
    pub packets: Option<u64>,
    /// Packets a second between the last two looks.
    pub rate: Option<f64>,
    /// Share of real time at which the source's clock runs.
    pub speed: Option<f64>,
    /// Reason for which the last look has no groups.
    pub trouble: Option<String>,
}

impl Model {
    /// A model of a source that has not looked yet.
    pub fn new(title: Title) -> Model {
        Model {
            title,
            ..Model::default()
        }
    }

    /// The group that is shown.
    pub fn group(&self) -> Option<&Group> {
        self.groups.get(self.chosen)
    }

    /// The plot that is shown large.
    pub fn plot(&self) -> Plot {
        Plot::Bound.behind(self.plot)
    }

    /// Takes a look, unless it is paused. Of one with trouble the groups of the look before stay,
    /// and their plots have a gap.
    pub fn take(&mut self, look: Look) {
        if self.is_paused {
            return;
        }
        let passed = look.at_us.saturating_sub(self.at_us);
        self.rate = match (self.packets, look.packets) {
            (Some(before), Some(now)) if passed > 0 && now >= before => {
                Some((now - before) as f64 * 1e6 / passed as f64)
            }
            _ => None,
        };
        self.at_us = look.at_us;
        self.packets = look.packets;
        self.speed = look.speed;
        if look.trouble.is_some() {
            self.trouble = look.trouble;
            for group in &mut self.groups {
                group.push(Sample {
                    at_us: look.at_us,
                    ..Sample::default()
                });
                group.is_fresh = false;
            }
            return;
        }
        self.trouble = None;
        let mut pairs = self.groups.iter().zip(&look.groups);
        let same = pairs.all(|(old, new)| old.look.name == new.name);
        if !same || self.groups.len() != look.groups.len() {
            self.groups = look.groups.iter().map(|_| Group::default()).collect();
            self.chosen = 0;
        }
        for (group, look) in self.groups.iter_mut().zip(look.groups) {
            group.take(self.at_us, look);
        }
    }

    /// Does what a key asks for; false at the end.
    pub fn press(&mut self, press: Press) -> bool {
        let groups = self.groups.len().max(1);
        match press {
            Press::Quit => return false,
            Press::Pause => self.is_paused = !self.is_paused,
            Press::Plot(places) => self.plot = (self.plot + places) % Plot::ALL.len(),
            Press::NextGroup => self.chosen = (self.chosen + 1) % groups,
            Press::PreviousGroup => self.chosen = (self.chosen + groups - 1) % groups,
            Press::Help => self.helps = !self.helps,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::Promise;

    fn look(at_us: u64, sent: u64, lost: u64, generation: u64) -> Look {
        Look {
            at_us,
            packets: Some(at_us / 10),
            groups: vec![GroupLook {
                name: "flows".to_owned(),
                sent,
                lost,
                told: Some(Promise {
                    bound: Some(7),
                    generation,
                    ..Promise::default()
                }),
                ..GroupLook::default()
            }],
            ..Look::default()
        }
    }

    fn lost(model: &Model) -> Option<f64> {
        model.group()?.value(Plot::Lost)
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let mut model = Model::new(Title::default());
        model.take(look(1_000_000, 100, 0, 1));
        assert_eq!((lost(&model), model.rate), (None, None));
        model.take(look(3_000_000, 500, 10, 1));
        assert_eq!((lost(&model), model.rate), (Some(5.0), Some(100_000.0)));
        let group = model.group().expect("a group");
        assert_eq!(group.value(Plot::Sent), Some(200.0));
        assert_eq!(group.value(Plot::Bound), Some(7.0));
        assert_eq!(group.lost_percent(), 2.0);
    }

    #[test]
    fn a_new_view_and_a_gap_are_not_compared_with_what_was() {
        let mut model = Model::new(Title::default());
        model.take(look(1_000_000, 100, 10, 1));
        model.take(look(2_000_000, 300, 20, 2));
        assert_eq!(lost(&model), None);
        let trouble = Some("no answer".to_owned());
        model.take(Look {
            at_us: 3_000_000,
            trouble: trouble.clone(),
            ..Look::default()
        });
        assert_eq!((lost(&model), &model.trouble), (None, &trouble));
        assert_eq!(model.groups[0].look.lost, 20);
        model.take(look(4_000_000, 900, 30, 2));
        assert_eq!((lost(&model), &model.trouble), (None, &None));
        model.take(look(5_000_000, 900, 32, 2));
        assert_eq!(lost(&model), Some(2.0));
    }

    #[test]
    fn histories_are_bounded_and_stand_still_while_paused() {
        let mut model = Model::new(Title::default());
        for at in 0..2_000 {
            model.take(look(at, at, 0, 1));
        }
        assert_eq!(model.groups[0].samples.len(), HISTORY);
        assert!(model.press(Press::Pause));
        model.take(look(9_999, 0, 0, 1));
        assert_eq!(model.at_us, 1_999);
        assert!(!model.press(Press::Quit));
    }

    #[test]
    fn keys_choose_plots_and_registers_around_the_ends() {
        let mut model = Model::new(Title::default());
        assert!(model.press(Press::PreviousGroup) && model.group().is_none());
        let mut two = look(1, 0, 0, 1);
        two.groups.push(GroupLook::default());
        model.take(two);
        model.press(Press::PreviousGroup);
        assert_eq!(model.chosen, 1);
        model.press(Press::NextGroup);
        assert_eq!(model.chosen, 0);
        model.press(Press::Plot(7));
        assert_eq!(model.plot(), Plot::Sent);
        model.press(Press::Plot(4));
        assert_eq!(model.plot(), Plot::Far);
    }
}
