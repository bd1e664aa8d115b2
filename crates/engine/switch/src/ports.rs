//! The ports of a switch: whether they are up, and what passed them.

use crate::{MAX_FRAME, PortCounters, SwitchError};
use stateplane_runtime::{DROP_PORT, Port};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(crate) struct PortEntry {
    pub(crate) counters: PortCounters,
    /// Frames waiting for transmission.
    pub(crate) transmit_depth: u32,
    /// Bytes of the longest frame that the port sends.
    pub(crate) longest: usize,
    link_up: bool,
    /// Watches that say the port should be down.
    stale_watches: u32,
    /// State that was last reported.
    reported_up: bool,
}

impl PortEntry {
    pub(crate) fn is_up(&self) -> bool {
        self.link_up && self.stale_watches == 0
    }
}

pub(crate) struct Ports {
    entries: Vec<Option<PortEntry>>,
    numbers: Vec<Port>,
    /// Ports whose wanted state may differ from the reported one; each at most once
    /// after deduplication in [`Ports::poll_state`].
    changed: VecDeque<Port>,
}

impl Ports {
    pub(crate) fn new(ports: &[Port]) -> Result<Self, SwitchError> {
        let mut entries = vec![None; usize::from(DROP_PORT)];
        let mut numbers = ports.to_vec();
        for &port in ports {
            check_range(port)?;
            let entry = &mut entries[usize::from(port)];
            if entry.is_some() {
                return Err(SwitchError::DuplicatePort(port));
            }
            *entry = Some(PortEntry {
                counters: PortCounters::default(),
                transmit_depth: 0,
                longest: MAX_FRAME,
                link_up: true,
                stale_watches: 0,
                reported_up: true,
            });
        }
        numbers.sort_unstable();
        Ok(Self {
            entries,
            numbers,
            changed: VecDeque::new(),
        })
    }

    /// The same ports with the same links, through which nothing has passed, for a switch that
    /// watches them anew.
    pub(crate) fn fellow(&self) -> Ports {
        let entries = self.entries.iter().map(|entry| {
            entry.map(|entry| PortEntry {
                counters: PortCounters::default(),
                transmit_depth: 0,
                stale_watches: 0,
                reported_up: true,
                ..entry
            })
        });
        Ports {
            entries: entries.collect(),
            numbers: self.numbers.clone(),
            changed: VecDeque::new(),
        }
    }

    pub(crate) fn numbers(&self) -> &[Port] {
        &self.numbers
    }

    pub(crate) fn get(&self, port: Port) -> Option<&PortEntry> {
        self.entries.get(usize::from(port))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, port: Port) -> Option<&mut PortEntry> {
        self.entries.get_mut(usize::from(port))?.as_mut()
    }

    pub(crate) fn require(&self, port: Port) -> Result<(), SwitchError> {
        check_range(port)?;
        if self.get(port).is_some() {
            return Ok(());
        }
        let ports: Vec<String> = self.numbers.iter().map(ToString::to_string).collect();
        let ports = if ports.is_empty() {
            "none".to_owned()
        } else {
            ports.join(", ")
        };
        Err(SwitchError::UnknownPort(port, ports))
    }

    pub(crate) fn set_link(&mut self, port: Port, up: bool) -> Result<(), SwitchError> {
        self.require(port)?;
        if let Some(entry) = self.get_mut(port) {
            entry.link_up = up;
        }
        Ok(())
    }

    /// Counts a watch on `port` that became stale, or fresh again.
    pub(crate) fn watch_changed(&mut self, port: Port, stale: bool) {
        let Some(entry) = self.get_mut(port) else {
            return;
        };
        let was_wanted = entry.stale_watches == 0;
        entry.stale_watches = if stale {
            entry.stale_watches + 1
        } else {
            entry.stale_watches.saturating_sub(1)
        };
        if was_wanted != (entry.stale_watches == 0) && !self.changed.contains(&port) {
            self.changed.push_back(port);
        }
    }

    /// Next port whose state, as its watches want it, is another than was reported.
    pub(crate) fn poll_state(&mut self) -> Option<(Port, bool)> {
        while let Some(port) = self.changed.pop_front() {
            let Some(entry) = self.get_mut(port) else {
                continue;
            };
            let up = entry.stale_watches == 0;
            if up != entry.reported_up {
                entry.reported_up = up;
                return Some((port, up));
            }
        }
        None
    }
}

pub(crate) fn check_range(port: Port) -> Result<(), SwitchError> {
    if port < DROP_PORT {
        Ok(())
    } else {
        Err(SwitchError::PortOutOfRange(port))
    }
}
