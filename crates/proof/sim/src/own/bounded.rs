//! Programs in bounded-inconsistency mode (RedPlane §4.4): of each start of each switch,
//! packets are processed as the original processes them in the order in which they came, the
//! newest complete snapshot in the store is what the arrays were at some time, and what came
//! after it was counted within ε, or with an alarm.

use super::reference::{Reference, State};
use super::{MOST_TOLD, Own, Released};
use crate::device::Device;
use crate::simulator::SimError;
use stateplane_history::Program as _;
use stateplane_history::replication::Occupant;
use stateplane_interp::Interp;
use stateplane_protect::{Array, Snapshots};
use stateplane_runtime::Engine as _;
use stateplane_store::newest_snapshots;
use stateplane_switch::Switch;
use stateplane_wire::replication::Key;

/// Hosts that send the packets of the test.
pub(super) const HOSTS: usize = 8;
/// Most frames in a millisecond of a walk that a switch of the simulator keeps up with.
const MOST_FRAMES: u32 = 24;
/// Allowed difference between two clocks within ε, which the switch's clock measures: one part in
/// this many.
const SLACK: u64 = 300;

/// The values of each array.
type Contents = Vec<Vec<u128>>;

/// A packet that a switch took from its ring.
pub(crate) struct Handled {
    at: u64,
    number: u64,
    /// True if the packet was counted as one for which ε was not kept.
    alarm: bool,
    /// Contents of the arrays after that.
    after: Contents,
}

/// Contents of the arrays of a switch.
fn contents(arrays: &[Array], device: &dyn Device) -> Contents {
    let of = |array: &Array| {
        let copies = device.words(&array.copies);
        let last = device.words(&array.updated);
        (0..array.elements as usize)
            .map(|at| {
                let last = last.get(at).copied().unwrap_or(0) as usize & 1;
                copies.get(2 * at + last).copied().unwrap_or(0)
            })
            .collect()
    };
    arrays.iter().map(of).collect()
}

/// Registers of the original program that the arrays were, by number.
fn registers(arrays: &[Array], original: &Switch<Interp>) -> Vec<Option<usize>> {
    let state = original.engine().state();
    let place = |array: &Array| {
        let mut all = state.registers().iter();
        all.position(|register| register.name() == array.register)
    };
    arrays.iter().map(place).collect()
}

/// Contents of the arrays in a state of the original.
fn of_state(arrays: &[Array], registers: &[Option<usize>], state: &State) -> Contents {
    let pairs = arrays.iter().zip(registers);
    pairs
        .map(|(array, register)| {
            let mut values = vec![0; array.elements as usize];
            for &(number, index, value) in state {
                if Some(number) == *register
                    && let Some(place) = values.get_mut(index as usize)
                {
                    *place = value;
                }
            }
            values
        })
        .collect()
}

/// True if an element of the store's snapshot equals that of the arrays.
fn is(snapshot: &[Vec<u32>], contents: &Contents) -> bool {
    snapshot.iter().enumerate().all(|(at, values)| {
        values
            .iter()
            .zip(contents)
            .all(|(value, array)| u128::from(*value) == array.get(at).copied().unwrap_or(0))
    })
}

impl Own {
    /// Checks that a switch of the simulator can keep the snapshots.
    pub(super) fn can_walk(snapshots: &Snapshots) -> Result<(), SimError> {
        if snapshots.batch > MOST_FRAMES {
            Err(SimError::Walk {
                elements: snapshots.elements,
                period: snapshots.period,
                batch: snapshots.batch,
                most: MOST_FRAMES,
            })
        } else {
            Ok(())
        }
    }

    /// True if packets do not wait for the store.
    pub(crate) fn is_bounded(&self) -> bool {
        self.snapshots.is_some()
    }

    /// Notes that `device` took packet `number`; `alarm` says whether it was counted as one
    /// for which ε was not kept.
    pub(crate) fn handled(
        &self,
        (at, by): (u64, Occupant),
        number: u64,
        alarm: bool,
        device: &dyn Device,
        released: &mut Released,
    ) {
        if let Some(snapshots) = &self.snapshots {
            let handled = Handled {
                at,
                number,
                alarm,
                after: contents(&snapshots.arrays, device),
            };
            released.handled.entry(by).or_default().push(handled);
        }
    }

    /// Differences between `records`, of the store's tail, and each start of each switch.
    pub(crate) fn recovered(&self, records: &[(Key, Vec<u8>)], released: &Released) -> Vec<String> {
        let Some(snapshots) = &self.snapshots else {
            return Vec::new();
        };
        let records = records.iter().map(|(key, state)| (key, &state[..]));
        let of_class = records.filter(|(key, _)| key.class() == self.class.id);
        let newest = newest_snapshots(of_class, 0, snapshots.elements);
        let mut found = Vec::new();
        for (life, handled) in &released.handled {
            let snapshot = newest
                .iter()
                .find(|(of, _)| (of.switch, of.incarnation) == (life.switch, life.incarnation));
            let elements = snapshot.map(|(_, snapshot)| &snapshot.elements[..]);
            let bound = u64::from(snapshots.bound) * 1000;
            if let Some(because) = too_old(&snapshots.arrays, handled, elements, bound) {
                found.push(format!("{life}: {because}"));
            }
        }
        found
    }

    /// Differences between each start of each switch and the original program that gets the same
    /// packets.
    pub(super) fn judge_lives(
        &self,
        snapshots: &Snapshots,
        reference: &Reference<'_>,
        released: &Released,
    ) -> Vec<String> {
        let registers = registers(&snapshots.arrays, &self.configured);
        let mut found = Vec::new();
        for (life, handled) in &released.handled {
            let mut state = reference.start();
            for packet in handled {
                let Some(&template) = released.templates.get(&packet.number) else {
                    continue;
                };
                let seen = released.outputs.get(&packet.number);
                let (output, next) = reference.step(&state, template);
                let held =
                    |state: &State| packet.after == of_state(&snapshots.arrays, &registers, state);
                if seen == output.as_ref() && held(&next) {
                    state = next;
                } else if seen.is_some() || !held(&state) {
                    found.push(format!(
                        "{life}: packet {} left otherwise than from the original program, or changed the arrays otherwise: {:02x?}",
                        packet.number, self.templates[template]
                    ));
                    break;
                }
            }
        }
        found.truncate(MOST_TOLD);
        found
    }
}

/// Violation by `snapshot`, the newest of a switch's start, if it is too old.
fn too_old(
    arrays: &[Array],
    handled: &[Handled],
    snapshot: Option<&[Vec<u32>]>,
    bound: u64,
) -> Option<String> {
    let nothing: Contents = arrays
        .iter()
        .map(|array| vec![0; array.elements as usize])
        .collect();
    let matches = |contents: &Contents| match snapshot {
        Some(elements) => is(elements, contents),
        None => *contents == nothing,
    };
    // Packets after the last moment at which the arrays were as the snapshot says.
    let last = handled.iter().rposition(|packet| matches(&packet.after));
    let lost = match last {
        Some(last) => &handled[last + 1..],
        None if matches(&nothing) => handled,
        None => return Some("a snapshot is what the arrays never were".into()),
    };
    let mut before = last.map_or(&nothing, |last| &handled[last].after);
    let mut changes = Vec::new();
    for packet in lost {
        if packet.after != *before && !packet.alarm {
            changes.push(packet.at);
        }
        before = &packet.after;
    }
    let late = changes.last()? - changes.first()?;
    (late > bound + bound / SLACK).then(|| {
        format!(
            "what {} packets changed over {late} µs is lost, more than ε = {bound} µs",
            changes.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays() -> Vec<Array> {
        vec![Array {
            register: "row".into(),
            elements: 2,
            copies: "row.copies".into(),
            updated: "row.updated".into(),
        }]
    }

    fn handled(at: u64, after: [u128; 2]) -> Handled {
        Handled {
            at,
            number: 0,
            alarm: false,
            after: vec![after.to_vec()],
        }
    }

    #[test]
    fn states_that_never_were_and_losses_beyond_the_bound_are_objected_to() {
        let packets = [
            handled(10, [1, 0]),
            handled(500, [1, 1]),
            handled(61_000, [2, 1]),
        ];
        let judge = |snapshot: Option<[u32; 2]>| {
            let elements = snapshot.map(|values| values.map(|value| vec![value]));
            too_old(
                &arrays(),
                &packets,
                elements.as_ref().map(|e| &e[..]),
                60_000,
            )
        };
        assert_eq!(judge(Some([2, 1])), None);
        assert!(judge(Some([1, 0])).is_some());
        assert_eq!(judge(Some([1, 1])), None);
        assert!(judge(Some([2, 0])).is_some());
        assert!(judge(None).is_some());
        assert!(too_old(&arrays(), &packets[..2], None, 60_000).is_none());
    }

    #[test]
    fn what_was_lost_with_an_alarm_is_not_held_against_the_switch() {
        let mut packets = [handled(10, [1, 0]), handled(90_000, [2, 0])];
        assert!(too_old(&arrays(), &packets, None, 60_000).is_some());
        packets[1].alarm = true;
        assert!(too_old(&arrays(), &packets, None, 60_000).is_none());
    }
}
