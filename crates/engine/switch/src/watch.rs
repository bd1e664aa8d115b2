//! Ports that depend on the freshness of a register.

use crate::config::Watch;
use crate::error::SwitchError;
use crate::ports::Ports;
use crate::switch::TIMESTAMP_MASK;
use stateplane_runtime::{Register, Shape, TargetState};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freshness {
    /// Not yet looked at.
    Unknown,
    /// Fresh until this time, inclusive.
    FreshUntil(u64),
    /// Older than allowed, or never written.
    Stale,
}

struct ActiveWatch {
    /// Position among the state's registers.
    register: usize,
    watch: Watch,
    freshness: Freshness,
}

impl ActiveWatch {
    fn value(&self, state: &TargetState) -> Option<u64> {
        let register = state.registers().get(self.register)?;
        register.word(self.watch.index).map(|word| word as u64)
    }
}

#[derive(Default)]
pub(crate) struct Watches {
    active: Vec<ActiveWatch>,
    /// Until this time, inclusive, every watch is known to be fresh.
    fresh_until: Option<u64>,
}

impl Watches {
    pub(crate) fn len(&self) -> usize {
        self.active.len()
    }

    pub(crate) fn add(&mut self, watch: Watch, state: &TargetState) -> Result<(), SwitchError> {
        let register = match find(&watch, state) {
            Ok(position) => position,
            Err(reason) => {
                let Watch {
                    register, index, ..
                } = watch;
                return Err(SwitchError::Watch {
                    register,
                    index,
                    reason,
                });
            }
        };
        let freshness = Freshness::Unknown;
        self.fresh_until = None;
        self.active.push(ActiveWatch {
            register,
            watch,
            freshness,
        });
        Ok(())
    }

    /// Finds the registers anew after another program was loaded. One that is not there,
    /// or holds no times, is stale for ever.
    pub(crate) fn rebind(&mut self, state: &TargetState) {
        self.fresh_until = None;
        for active in &mut self.active {
            active.register = find(&active.watch, state).unwrap_or(usize::MAX);
            if active.freshness != Freshness::Stale {
                active.freshness = Freshness::Unknown;
            }
        }
    }

    /// The same watches for a switch that has not looked at them.
    pub(crate) fn fellow(&self) -> Watches {
        let active = self.active.iter().map(|active| ActiveWatch {
            register: active.register,
            watch: active.watch.clone(),
            freshness: Freshness::Unknown,
        });
        Watches {
            active: active.collect(),
            fresh_until: None,
        }
    }

    /// A watch whose register is older than allowed, or was never written.
    pub(crate) fn stale(&self) -> Option<&Watch> {
        let stale = |active: &&ActiveWatch| active.freshness == Freshness::Stale;
        self.active.iter().find(stale).map(|active| &active.watch)
    }

    /// First time at which a watch must be looked at although no packet came.
    pub(crate) fn next_check(&self, now: u64) -> Option<u64> {
        self.active
            .iter()
            .filter_map(|active| match active.freshness {
                Freshness::Unknown => Some(now),
                Freshness::FreshUntil(time) => Some(time.saturating_add(1)),
                Freshness::Stale => None,
            })
            .min()
    }

    /// Looks at every watch that is stale or has come to the end of its time.
    #[inline]
    pub(crate) fn check(&mut self, now: u64, state: &TargetState, ports: &mut Ports) {
        if self.fresh_until.is_none_or(|time| now > time) {
            self.look(now, state, ports);
        }
    }

    #[cold]
    fn look(&mut self, now: u64, state: &TargetState, ports: &mut Ports) {
        for active in &mut self.active {
            if matches!(active.freshness, Freshness::FreshUntil(time) if now <= time) {
                continue;
            }
            let value = active.value(state).unwrap_or(0);
            let freshness = freshness(value, now, active.watch.max_age_us);
            let was_stale = active.freshness == Freshness::Stale;
            let is_stale = freshness == Freshness::Stale;
            active.freshness = freshness;
            if was_stale != is_stale {
                for &port in &active.watch.ports {
                    ports.watch_changed(port, is_stale);
                }
            }
        }
        let times = self.active.iter().map(|active| match active.freshness {
            Freshness::FreshUntil(time) => Some(time),
            Freshness::Unknown | Freshness::Stale => None,
        });
        // Without a watch, nothing ever expires.
        self.fresh_until = times
            .chain([Some(u64::MAX)])
            .reduce(|first, second| Some(first?.min(second?)))
            .flatten();
    }
}

/// Freshness of a register that holds `value`, a time of 48 bits, at `now`.
fn freshness(value: u64, now: u64, max_age: u64) -> Freshness {
    if value == 0 {
        return Freshness::Stale;
    }
    let age = now.wrapping_sub(value) & TIMESTAMP_MASK;
    // The upper half of the circle is the future, which the program cannot have
    // seen; the least that it can be taken for is this moment.
    let age = if age > TIMESTAMP_MASK / 2 { 0 } else { age };
    match max_age.checked_sub(age) {
        Some(rest) => Freshness::FreshUntil(now.saturating_add(rest)),
        None => Freshness::Stale,
    }
}

/// Position of the watched register, if its elements can be times.
fn find(watch: &Watch, state: &TargetState) -> Result<usize, String> {
    let register = state
        .register(&watch.register)
        .map_err(|error| error.to_string())?;
    match register.shape() {
        Shape::Bits(48..=64) => {}
        Shape::Bits(width) => {
            return Err(format!(
                "its elements have {width} bits; a time needs 48 to 64"
            ));
        }
        Shape::Struct(_) => return Err("its elements are structs; watch one of bit<48>".to_owned()),
    }
    register
        .read(watch.index)
        .map_err(|error| error.to_string())?;
    let same = |other: &Register| std::ptr::eq(other, register);
    state
        .registers()
        .iter()
        .position(same)
        .ok_or_else(|| "it is not in the program".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Freshness, freshness};

    #[test]
    fn zero_is_never() {
        assert_eq!(freshness(0, 5, 100), Freshness::Stale);
    }

    #[test]
    fn the_greatest_age_is_still_fresh() {
        assert_eq!(freshness(100, 150, 50), Freshness::FreshUntil(150));
        assert_eq!(freshness(100, 151, 50), Freshness::Stale);
    }

    #[test]
    fn ages_wrap_at_48_bits() {
        let now = (1 << 48) + 20;
        assert_eq!(
            freshness((1 << 48) - 10, now, 50),
            Freshness::FreshUntil(now + 20)
        );
        assert_eq!(freshness((1 << 48) - 10, now, 29), Freshness::Stale);
    }

    #[test]
    fn a_time_ahead_of_the_clock_counts_from_here() {
        assert_eq!(freshness(200, 100, 50), Freshness::FreshUntil(150));
    }
}
