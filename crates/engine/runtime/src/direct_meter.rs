//! Direct meters: of entries of tables, which all engines of a program share.

use crate::counter::Count;
use crate::meter::{Color, MeterCell, MeterConfig};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The meter of an entry. A clone is a copy; [`share`](DirectMeter::share) gives another engine the
/// same buckets.
#[derive(Debug)]
pub(crate) enum DirectMeter {
    /// Of a table without meters.
    Absent,
    /// Of an engine alone.
    Own(Box<MeterCell>),
    /// Of several engines.
    Shared(Arc<Line>),
}

/// A meter that has lines of the cache to itself, so that engines at the meters beside it do not
/// wait for its line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Line(Mutex<MeterCell>);

impl Line {
    fn lock(&self) -> MutexGuard<'_, MeterCell> {
        // Numbers of a meter are whole between any two of its steps.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DirectMeter {
    /// A meter without configuration, which other engines may have too.
    pub(crate) fn new(shared: bool) -> DirectMeter {
        let meter = DirectMeter::Own(Box::default());
        if shared { meter.into_shared() } else { meter }
    }

    fn into_shared(self) -> DirectMeter {
        match self {
            DirectMeter::Own(cell) => DirectMeter::Shared(Arc::new(Line(Mutex::new(*cell)))),
            other => other,
        }
    }

    /// Lets other engines have the meter: by [`handle`](DirectMeter::handle).
    pub(crate) fn share(&mut self) {
        *self = std::mem::replace(self, DirectMeter::Absent).into_shared();
    }

    /// The same meter, if it is shared, for another engine; else a copy.
    pub(crate) fn handle(&self) -> DirectMeter {
        match self {
            DirectMeter::Shared(line) => DirectMeter::Shared(line.clone()),
            other => other.clone(),
        }
    }

    fn with<T: Default>(&self, read: impl FnOnce(&MeterCell) -> T) -> T {
        match self {
            DirectMeter::Absent => T::default(),
            DirectMeter::Own(cell) => read(cell),
            DirectMeter::Shared(line) => read(&line.lock()),
        }
    }

    fn with_mut(&mut self, change: impl FnOnce(&mut MeterCell)) {
        match self {
            DirectMeter::Absent => {}
            DirectMeter::Own(cell) => change(cell),
            DirectMeter::Shared(line) => change(&mut line.lock()),
        }
    }

    /// The present configuration.
    pub(crate) fn config(&self) -> Option<MeterConfig> {
        self.with(MeterCell::config)
    }

    /// Counts of each color: green, yellow, red.
    pub(crate) fn counts(&self) -> [Count; 3] {
        self.with(MeterCell::counts)
    }

    /// Configures it and fills both buckets at `now`, in µs; `None` turns it off.
    pub(crate) fn configure(&mut self, config: Option<MeterConfig>, now: u64) {
        self.with_mut(|cell| cell.configure(config, now));
    }

    pub(crate) fn set_counts(&mut self, counts: [Count; 3]) {
        self.with_mut(|cell| cell.set_counts(counts));
    }

    /// Makes it what a new entry has.
    pub(crate) fn reset(&mut self) {
        self.with_mut(|cell| *cell = MeterCell::default());
    }

    /// Meters a packet as [`MeterCell::execute`] does; adds to `waits` if another engine was at it.
    pub(crate) fn execute(
        &mut self,
        (amount, bytes): (u64, u64),
        now: u64,
        waits: &mut u64,
    ) -> Color {
        match self {
            DirectMeter::Absent => Color::Green,
            DirectMeter::Own(cell) => cell.execute(amount, bytes, now),
            DirectMeter::Shared(line) => match line.0.try_lock() {
                Ok(mut cell) => cell.execute(amount, bytes, now),
                Err(TryLockError::Poisoned(cell)) => cell.into_inner().execute(amount, bytes, now),
                Err(TryLockError::WouldBlock) => {
                    *waits += 1;
                    line.lock().execute(amount, bytes, now)
                }
            },
        }
    }
}

impl Clone for DirectMeter {
    fn clone(&self) -> Self {
        match self {
            DirectMeter::Absent => DirectMeter::Absent,
            DirectMeter::Own(cell) => DirectMeter::Own(cell.clone()),
            DirectMeter::Shared(line) => {
                DirectMeter::Own(Box::new(line.lock().clone())).into_shared()
            }
        }
    }
}

impl PartialEq for DirectMeter {
    fn eq(&self, other: &Self) -> bool {
        // One lock at a time: the two may be the same meter.
        let cell = |meter: &Self| meter.with(|cell| Some(cell.clone()));
        cell(self) == cell(other)
    }
}

impl Eq for DirectMeter {}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: MeterConfig = MeterConfig {
        committed_rate: 1,
        committed_burst: 1000,
        peak_rate: 1,
        peak_burst: 1500,
    };

    #[test]
    fn engines_share_buckets_and_counts_and_clones_do_not() {
        let mut first = DirectMeter::new(false);
        first.configure(Some(CONFIG), 0);
        first.share();
        let mut second = first.handle();
        let mut copy = second.clone();
        let mut waits = 0;
        assert_eq!(second.execute((1, 60), 0, &mut waits), Color::Green);
        assert_eq!(first.counts()[0].packets, 1);
        assert_eq!(first, second);
        copy.set_counts([Count::default(); 3]);
        assert_eq!(first.counts()[0].packets, 1);
        first.reset();
        assert_eq!(second.config(), None);
        assert_eq!(waits, 0);
    }

    #[test]
    fn meters_are_equal_if_both_are_absent_or_their_cells_are() {
        assert_eq!(DirectMeter::Absent, DirectMeter::Absent);
        assert_ne!(DirectMeter::Absent, DirectMeter::new(false));
        assert_eq!(DirectMeter::new(false), DirectMeter::new(true));
        let mut configured = DirectMeter::new(false);
        configured.configure(Some(CONFIG), 0);
        assert_ne!(configured, DirectMeter::new(false));
    }

    #[test]
    fn no_packet_of_several_threads_gets_tokens_twice() {
        let mut first = DirectMeter::new(true);
        first.configure(Some(CONFIG), 0);
        let mark = |mut meter: DirectMeter| {
            move || {
                let mut waits = 0;
                let mut colors = [0; 3];
                for _ in 0..1000 {
                    colors[meter.execute((1, 60), 0, &mut waits) as usize] += 1;
                }
                colors
            }
        };
        let colors = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(mark(first.handle()))).collect();
            let each = threads.into_iter().map(|thread| thread.join().unwrap());
            each.fold([0; 3], |sum, next: [u64; 3]| {
                [0, 1, 2].map(|color| sum[color] + next[color])
            })
        });
        assert_eq!(colors, [1000, 500, 2500]);
        assert_eq!(first.counts().map(|count| count.packets), colors);
    }

    #[test]
    fn shared_meters_do_not_share_lines_of_the_cache() {
        assert_eq!(size_of::<Line>() % 64, 0);
        let meters: Vec<DirectMeter> = (0..16).map(|_| DirectMeter::new(true)).collect();
        // Of those of an array, each has lines of its own as well.
        assert_eq!(align_of::<MeterCell>(), 64);
        for meter in &meters {
            let DirectMeter::Shared(line) = meter else {
                panic!("it is shared");
            };
            assert_eq!(std::ptr::from_ref(&**line).addr() % 64, 0);
        }
    }
}
