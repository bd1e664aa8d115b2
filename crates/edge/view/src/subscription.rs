//! Notifications of a subscriber: what changed in the view since the last one.

use std::sync::Arc;

use stateplane_host::sync::{ReadRequest, Reading, VALUE_BYTES, ViewError};

use crate::messages::told_of;
use crate::proto::v1::Notification;

/// Bytes of a packed location.
const LOCATION_BYTES: usize = 4;

/// A subscription, and what its subscriber was told last.
pub(crate) struct Subscription {
    limits: ReadRequest,
    /// Locations that were chosen; all if there is none.
    chosen: Vec<u32>,
    heartbeat_us: u64,
    /// Values told, and of which generation.
    told: Option<(u64, Arc<Vec<u8>>)>,
    /// True if the view was within the limits; `None` before the first notification.
    met: Option<bool>,
    told_at: u64,
}

/// The locations of packed bytes.
pub(crate) fn unpack_locations(bytes: &[u8]) -> Result<Vec<u32>, ViewError> {
    let (whole, rest) = bytes.as_chunks::<LOCATION_BYTES>();
    if !rest.is_empty() {
        let message = "packed locations are 4 bytes each".to_owned();
        return Err(ViewError::Malformed(message));
    }
    Ok(whole.iter().map(|it| u32::from_le_bytes(*it)).collect())
}

impl Subscription {
    pub(crate) fn new(limits: ReadRequest, chosen: Vec<u32>, heartbeat_us: u64) -> Subscription {
        Subscription {
            limits,
            chosen,
            heartbeat_us,
            told: None,
            met: None,
            told_at: 0,
        }
    }

    /// The notification that is due at `now` µs, of the view as it is.
    pub(crate) fn next(&mut self, now: u64, present: Option<Reading>) -> Option<Notification> {
        let met = present
            .as_ref()
            .is_some_and(|reading| self.limits.is_met_by(&reading.told));
        let late = self.told_at.saturating_add(self.heartbeat_us);
        let is_late = self.heartbeat_us > 0 && now >= late;
        let is_news = self.met.replace(met) != Some(met) || is_late;
        let Some(reading) = present else {
            let began = self.told.take().is_some();
            return (is_news || began).then(|| {
                self.told_at = now;
                Notification::default()
            });
        };
        let generation = reading.told.generation;
        let before = self.told.take().filter(|(of, _)| *of == generation);
        let all = before.is_none();
        let (locations, values) = match before {
            None => self.all(&reading.values),
            Some((_, before)) => self.changed(&before, &reading.values),
        };
        self.told = Some((generation, reading.values.clone()));
        if !all && values.is_empty() && !is_news {
            return None;
        }
        self.told_at = now;
        Some(Notification {
            told: Some(told_of(&reading.told)),
            met,
            all,
            locations: locations.into(),
            values: values.into(),
        })
    }

    fn all(&self, values: &[u8]) -> (Vec<u8>, Vec<u8>) {
        if self.chosen.is_empty() {
            return (Vec::new(), values.to_vec());
        }
        self.pack(self.chosen.iter().copied(), values)
    }

    fn changed(&self, before: &Arc<Vec<u8>>, values: &Arc<Vec<u8>>) -> (Vec<u8>, Vec<u8>) {
        if Arc::ptr_eq(before, values) {
            return (Vec::new(), Vec::new());
        }
        if !self.chosen.is_empty() {
            let chosen = self.chosen.iter().copied();
            let changed = chosen.filter(|at| value(before, *at) != value(values, *at));
            return self.pack(changed, values);
        }
        let (old, _) = before.as_chunks::<VALUE_BYTES>();
        let (new, _) = values.as_chunks::<VALUE_BYTES>();
        let both = (0u32..).zip(old.iter().zip(new));
        let changed = both.filter(|(_, (old, new))| old != new);
        self.pack(changed.map(|(at, _)| at), values)
    }

    fn pack(&self, locations: impl Iterator<Item = u32>, from: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut places, mut values) = (Vec::new(), Vec::new());
        for at in locations {
            places.extend(at.to_le_bytes());
            values.extend_from_slice(value(from, at));
        }
        (places, values)
    }
}

/// The bytes of the value at a location, which is one of the group's.
fn value(values: &[u8], at: u32) -> &[u8] {
    let start = at as usize * VALUE_BYTES;
    values.get(start..start + VALUE_BYTES).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_sync::Told;

    fn reading(generation: u64, bound: Option<u64>, values: &[u64]) -> Option<Reading> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Some(Reading {
            told: Told {
                bound,
                all_but: 0,
                within: 0,
                age_us: 10,
                stamp: 1,
                poll: 1,
                generation,
                incarnation: 1,
                epoch: 0,
                sweep_us: 0,
            },
            values: Arc::new(bytes.collect()),
        })
    }

    fn said(notification: Option<Notification>) -> (bool, bool, Vec<u32>, Vec<u64>) {
        let said = notification.expect("a notification");
        let values = crate::unpack(&said.values).collect();
        let locations = unpack_locations(&said.locations).expect("whole");
        (said.met, said.all, locations, values)
    }

    fn limits(bound: u64) -> ReadRequest {
        ReadRequest {
            bound: Some(bound),
            ..ReadRequest::default()
        }
    }

    #[test]
    fn changes_follow_all_values_and_word_comes_when_limits_are_not_met() {
        let mut told = Subscription::new(limits(5), Vec::new(), 0);
        assert_eq!(said(told.next(0, None)), (false, false, vec![], vec![]));
        assert_eq!(told.next(1, None), None);
        let first = said(told.next(2, reading(1, Some(0), &[1, 2, 3])));
        assert_eq!(first, (true, true, vec![], vec![1, 2, 3]));
        assert_eq!(told.next(3, reading(1, Some(5), &[1, 2, 3])), None);
        let changed = said(told.next(4, reading(1, Some(0), &[1, 9, 3])));
        assert_eq!(changed, (true, false, vec![1], vec![9]));
        let unmet = said(told.next(5, reading(1, None, &[1, 9, 3])));
        assert_eq!(unmet, (false, false, vec![], vec![]));
        assert_eq!(told.next(6, reading(1, Some(6), &[1, 9, 3])), None);
        let met = said(told.next(7, reading(1, Some(5), &[1, 9, 3])));
        assert_eq!(met, (true, false, vec![], vec![]));
        // A view that began anew is told whole.
        let anew = said(told.next(8, reading(2, Some(0), &[1, 9, 3])));
        assert_eq!(anew, (true, true, vec![], vec![1, 9, 3]));
    }

    #[test]
    fn chosen_locations_alone_are_told_and_heartbeats_come() {
        let mut told = Subscription::new(limits(5), vec![2, 0], 100);
        let first = said(told.next(0, reading(1, Some(0), &[1, 2, 3])));
        assert_eq!(first, (true, true, vec![2, 0], vec![3, 1]));
        assert_eq!(told.next(50, reading(1, Some(0), &[1, 8, 3])), None);
        let beat = said(told.next(100, reading(1, Some(0), &[1, 8, 3])));
        assert_eq!(beat, (true, false, vec![], vec![]));
        let changed = said(told.next(101, reading(1, Some(0), &[7, 8, 3])));
        assert_eq!(changed, (true, false, vec![0], vec![7]));
        assert_eq!(unpack_locations(&[0; 5]).unwrap_err().code(), "SYNC023");
    }
}
