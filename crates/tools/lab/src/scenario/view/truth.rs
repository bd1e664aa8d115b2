//! What the hosts know of their packets, and the lives of the switch that fails.

use super::super::fault::Fault;
use super::super::report::Move;
use super::{LOCATIONS, SWITCHES};
use stateplane_history::replication::{EventKind, Flow, History};
use std::collections::BTreeMap;

/// Time from the death of a switch, in µs, for which its last packets may be on their way. It is
/// away for longer, and needs about as long to start.
const LAST_PACKETS_US: u64 = 500_000;

/// A time in which the switch that fails is dead or stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    /// When the fault was begun, in µs since the Unix epoch.
    pub(super) from_us: u64,
    /// When it was dead, if it was killed.
    pub(super) died_us: Option<u64>,
    /// When it was started again.
    pub(super) born_us: Option<u64>,
    /// When it was there again; `None` if it was not.
    pub(super) to_us: Option<u64>,
}

/// The silences of the switch that fails, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Silences(pub(super) Vec<Silence>);

impl Silences {
    pub(super) fn of(moves: &[(Fault, Move)]) -> Self {
        let mut silences: Vec<Silence> = Vec::new();
        let mut last = None;
        for (fault, moved) in moves {
            let open = silences.last_mut().filter(|open| open.to_us.is_none());
            match (fault, open) {
                (Fault::Kill, None) => silences.push(Silence {
                    from_us: moved.began_us,
                    died_us: Some(moved.at_us),
                    born_us: None,
                    to_us: None,
                }),
                (Fault::Restart, None) if !moved.owner_alive => silences.push(Silence {
                    from_us: moved.began_us,
                    died_us: Some(moved.at_us),
                    born_us: None,
                    to_us: None,
                }),
                (Fault::Restart, Some(open)) if moved.owner_alive => {
                    // One that is killed for it is dead for a time that began with the fault.
                    let dead = open.died_us.unwrap_or(open.from_us) + LAST_PACKETS_US;
                    open.born_us = Some(moved.began_us.max(dead));
                    open.to_us = Some(moved.at_us);
                }
                (Fault::StandStill | Fault::LongStandStill, _) if last == Some(*fault) => {
                    let standing = silences.last_mut();
                    if let Some(open) = standing.filter(|open| open.died_us.is_none()) {
                        open.to_us = Some(moved.at_us);
                    }
                }
                (Fault::StandStill | Fault::LongStandStill, None) => silences.push(Silence {
                    from_us: moved.began_us,
                    died_us: None,
                    born_us: None,
                    to_us: Some(moved.at_us),
                }),
                _ => {}
            }
            last = Some(*fault);
        }
        Self(silences)
    }

    /// When each life of the switch at this place among [`SWITCHES`] began, in µs; the first is 0.
    pub(super) fn births(&self, switch: usize) -> Vec<u64> {
        let born = self.0.iter().filter_map(|silence| silence.born_us);
        let fails = switch == 0;
        std::iter::once(0).chain(born.filter(|_| fails)).collect()
    }

    /// True if the switch lives and is heard at this time, and has been for `recovery` µs.
    pub(super) fn is_heard(&self, switch: usize, at: u64, recovery: u64) -> bool {
        let within = |silence: &Silence| {
            let to = silence.to_us.map_or(u64::MAX, |to| to + recovery);
            (silence.from_us..to).contains(&at)
        };
        switch != 0 || !self.0.iter().any(within)
    }

    /// When the switch died that is dead at this time.
    pub(super) fn dead_since(&self, switch: usize, at: u64) -> Option<u64> {
        let dead = |silence: &Silence| {
            let died = silence.died_us?;
            let to = silence.born_us.unwrap_or(u64::MAX);
            (died..to).contains(&at).then_some(died)
        };
        self.0.iter().filter(|_| switch == 0).find_map(dead)
    }

    /// True if the switch is there in the end.
    pub(super) fn ends_alive(&self, switch: usize) -> bool {
        switch != 0 || self.0.last().is_none_or(|last| last.to_us.is_some())
    }
}

/// Times in µs, in their order.
type Times = Vec<u64>;

/// Packets of each location.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth {
    /// When each packet was sent.
    sent: BTreeMap<usize, Times>,
    /// When each came back that a life of a switch had counted: switch, life and location.
    received: BTreeMap<(usize, usize, usize), Times>,
    /// Packets that came from no switch, or without a location.
    pub(super) stray: u64,
}

/// The location of a flow's packets: the low bits of the source port in its key, which is class,
/// protocol, addresses and ports in hexadecimal digits.
pub(super) fn location(flow: &Flow) -> Option<usize> {
    let name = flow.to_string();
    let port = u16::from_str_radix(name.get(20..24)?, 16).ok()?;
    Some(usize::from(port) % LOCATIONS)
}

fn until(times: Option<&Times>, at: u64) -> u64 {
    times.map_or(0, |times| times.partition_point(|time| *time <= at)) as u64
}

impl Truth {
    pub(super) fn of(history: &History, silences: &Silences) -> Self {
        let mut truth = Self::default();
        let births: Vec<_> = (0..SWITCHES.len()).map(|it| silences.births(it)).collect();
        for event in &history.events {
            match &event.kind {
                EventKind::Call { object, .. } => match location(object) {
                    Some(location) => truth.note_sent(location, event.at),
                    None => truth.stray += 1,
                },
                EventKind::Return { node, object, .. } => {
                    let switch = (*node as usize).checked_sub(1);
                    let switch = switch.filter(|switch| *switch < SWITCHES.len());
                    let (Some(switch), Some(location)) = (switch, location(object)) else {
                        truth.stray += 1;
                        continue;
                    };
                    let life = births[switch].partition_point(|born| *born <= event.at) - 1;
                    truth.note_received((switch, life, location), event.at);
                }
                _ => {}
            }
        }
        truth
    }

    pub(super) fn note_sent(&mut self, location: usize, at: u64) {
        self.sent.entry(location).or_default().push(at);
    }

    pub(super) fn note_received(&mut self, of: (usize, usize, usize), at: u64) {
        self.received.entry(of).or_default().push(at);
    }

    /// Packets of a location that had been sent by a time: none else can have been counted.
    pub(super) fn sent(&self, location: usize, at: u64) -> u64 {
        until(self.sent.get(&location), at)
    }

    /// Packets that had come back by a time: all of them had been counted.
    pub(super) fn received(&self, of: (usize, usize, usize), at: u64) -> u64 {
        until(self.received.get(&of), at)
    }

    /// Packets of a location that had come back by a time, whichever life of a switch they crossed.
    pub(super) fn received_at(&self, location: usize, at: u64) -> u64 {
        let came = self.received.iter().filter(|(of, _)| of.2 == location);
        came.map(|(_, times)| until(Some(times), at)).sum()
    }

    /// Packets of a location of which nothing came back: perhaps they were counted.
    pub(super) fn lost(&self, location: usize) -> u64 {
        let came = self.received.iter().filter(|(of, _)| of.2 == location);
        let came: usize = came.map(|(_, times)| times.len()).sum();
        self.sent(location, u64::MAX).saturating_sub(came as u64)
    }

    /// Packets that came back from a life of a switch.
    pub(super) fn received_from(&self, switch: usize, life: usize) -> u64 {
        let from = |location| self.received((switch, life, location), u64::MAX);
        (0..LOCATIONS).map(from).sum()
    }
}
