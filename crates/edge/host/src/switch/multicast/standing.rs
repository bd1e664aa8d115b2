//! Reads how far a switch is in its groups from the program's registers.

use stateplane_runtime::{Register, StateError, TargetState};
use stateplane_wire::multicast_control::{LEADS, MOST_NUMBERS, Standing};

/// Contents of a switch's registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Which start of the switch its program has.
    pub(super) incarnation: u32,
    /// How far it is in each group in which it promised anything.
    pub(super) standings: Vec<Standing>,
    /// Of the slots asked for, those of which a log holds an entry.
    pub(super) held: Vec<u16>,
}

/// Times that a group is looked at until its base stays meanwhile.
const READINGS: u32 = 4;

/// An element of a register, 0 beyond its end.
fn word(register: &Register, index: u64) -> u64 {
    register.word(index).map_or(0, |word| word as u64)
}

/// True if `newer` follows `than`, of serial numbers.
fn is_newer(newer: u32, than: u32) -> bool {
    newer.wrapping_sub(than).cast_signed() > 0
}

/// Reads the registers of multicast's library; `ended` are slots whose sessions are ended.
///
/// # Errors
///
/// [`StateError`] if the program does not include the library.
pub(super) fn look(state: &TargetState, ended: &[u16]) -> Result<Seen, StateError> {
    let promised = state.register("multicast_promised")?;
    let ids = state.register("multicast_entry_id")?;
    let groups = promised.size().max(1);
    let window = (ids.size() / groups).max(1);
    let mut seen = Seen {
        incarnation: word(state.register("multicast_incarnation")?, 0) as u32,
        standings: Vec::new(),
        held: Vec::new(),
    };
    for group in 0..groups {
        if word(promised, group) == 0 {
            continue;
        }
        let standing = at_one_base(state, group, window)?;
        let mut index = standing.base;
        while !ended.is_empty() && index != standing.end {
            index = index.wrapping_add(1);
            let id = word(ids, group * window + u64::from(index) % window);
            let slot = (id >> 48) as u16;
            if id != 0 && ended.contains(&slot) && !seen.held.contains(&slot) {
                seen.held.push(slot);
            }
        }
        seen.standings.push(standing);
    }
    Ok(seen)
}

/// Map of the numbers of `map` whose element of `register`, from `first` on, is before `index`.
fn behind(register: &Register, first: u64, map: u32, index: u32) -> u8 {
    let numbers = (0..MOST_NUMBERS).filter(|number| map & (1 << number) != 0);
    let behind = numbers.filter(|number| {
        let reached = word(register, first + u64::from(*number)) as u32;
        is_newer(index, reached)
    });
    behind.fold(0, |map, number| map | (1 << number))
}

/// How far the switch is in a group. Its workers may go on meanwhile, and what is lacking is of the entry
/// behind the base: where that moves again and again, nothing is lacking for long.
fn at_one_base(state: &TargetState, group: u64, window: u64) -> Result<Standing, StateError> {
    let base = state.register("multicast_base")?;
    for _ in 0..READINGS {
        let standing = standing(state, group, window)?;
        if word(base, group) as u32 == standing.base {
            return Ok(standing);
        }
    }
    Ok(Standing {
        lacks_members: 0,
        lacks_receivers: 0,
        lacks_decided: 0,
        lacks_done: 0,
        ..standing(state, group, window)?
    })
}

fn standing(state: &TargetState, group: u64, window: u64) -> Result<Standing, StateError> {
    let of = |name: &str| state.register(name).map(|it| word(it, group) as u32);
    let promised = of("multicast_promised")?;
    let leads = of("multicast_led")? == promised;
    let mut standing = Standing {
        group: u8::try_from(group).unwrap_or(u8::MAX),
        flags: u8::from(leads) * LEADS,
        promised,
        base: of("multicast_base")?,
        end: of("multicast_end")?,
        commit: of("multicast_commit")?,
        lacks_members: 0,
        lacks_receivers: 0,
        lacks_decided: 0,
        lacks_done: 0,
        received: [0; 32],
    };
    let first = group * u64::from(MOST_NUMBERS);
    let received = state.register("multicast_received")?;
    let all = (0..u64::from(MOST_NUMBERS)).map(|number| word(received, first + number) as u32);
    standing.set_received_by(all);
    let oldest = standing.base.wrapping_add(1);
    if !leads || standing.base == standing.end {
        return Ok(standing);
    }
    if is_newer(oldest, standing.commit) {
        let members = of("multicast_members")?;
        let matches = state.register("multicast_match")?;
        standing.lacks_members = behind(matches, first, members, oldest);
        return Ok(standing);
    }
    standing.lacks_receivers = behind(received, first, of("multicast_receivers")?, oldest);
    let place = group * window + u64::from(oldest) % window;
    let entry = |name: &str| state.register(name).map(|it| word(it, place) as u32);
    let mut others = entry("multicast_entry_destinations")?;
    others &= !1u32.checked_shl(group as u32).unwrap_or(0);
    let known = entry("multicast_entry_known_in")? == promised;
    let marks = |name: &str| entry(name).map(|marks| if known { marks } else { 0 });
    standing.lacks_decided = others & !marks("multicast_entry_decided")?;
    standing.lacks_done = others & !marks("multicast_entry_done")?;
    Ok(standing)
}
