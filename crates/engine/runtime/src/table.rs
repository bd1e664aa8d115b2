//! Match-action tables.

mod change;
mod default;
mod fellows;
mod idle;
mod indirect;
mod key;
mod log;
#[cfg(test)]
mod tests;

pub use idle::{IdleEntry, SWEEP_US};
pub use indirect::Runs;
pub use key::{KeyInfo, KeyMatch};
pub use log::{Changes, Rule};

pub(crate) use indirect::Target;
pub(crate) use log::Log;

use crate::bits;
use crate::counter::Count;
use crate::direct_meter::DirectMeter;
use crate::error::StateError;
use crate::layout::scalar_bits;
use crate::meter::Color;
use crate::names;
use crate::profile;
use crate::value::push_checked;
use idle::Idle;
use indirect::References;
use num_bigint::BigUint;
use rustc_hash::FxHashMap;
use stateplane_ir::{ActionProfileId, Const, Direction, MatchKind, Program, Type};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// An entry as the control plane writes and reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One for each key, in order.
    pub keys: Vec<KeyMatch>,
    /// Of entries that match the greatest wins. At least 1 in tables with ternary,
    /// range or optional keys, 0 in all others.
    pub priority: u32,
    /// Name of the action, or the end of it from a dot on.
    pub action: String,
    /// Action data in order.
    pub data: Vec<BigUint>,
}

/// An entry in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The entry, its action by full name.
    pub entry: Entry,
    /// Hits, if the table has a direct counter.
    pub count: Count,
    /// Member, group or set of actions that the entry runs, in a table with an action profile. The
    /// name of the entry's action is then empty.
    pub runs: Option<Runs>,
    /// True if the program wrote it and the control plane may not change it.
    pub is_const: bool,
    /// µs without a hit after which it is reported, if it ages.
    pub idle_timeout: Option<u64>,
}

/// An action that a table may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionInfo {
    /// Full control-plane name.
    pub name: String,
    /// Names and widths of the action data.
    pub data: Vec<(String, u32)>,
    /// True if entries may name it.
    pub in_entries: bool,
    /// True if it may be the default action.
    pub as_default: bool,
}

/// An action with its data, as the control plane writes and reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Name of the action, or the end of it from a dot on.
    pub action: String,
    /// Action data in order.
    pub data: Vec<BigUint>,
}

/// An action, by its position, with its data in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) action: u32,
    pub(crate) data: Box<[u128]>,
}

impl Call {
    /// The call of one of `actions` by full name.
    pub(crate) fn describe(&self, actions: &[ActionInfo]) -> Invocation {
        let info = &actions[self.action as usize];
        let mut rest = &self.data[..];
        let data = info
            .data
            .iter()
            .map(|(_, width)| {
                let (value, behind) = rest.split_at(bits::word_count(*width));
                rest = behind;
                bits::to_biguint(value)
            })
            .collect();
        Invocation {
            action: info.name.clone(),
            data,
        }
    }
}

/// The control plane's view of an action that a table lists.
pub(crate) fn action_info(program: &Program, listed: &stateplane_ir::TableAction) -> ActionInfo {
    let action = &program.actions[listed.action.index()];
    let params = action.params.iter();
    let data = params
        .filter(|param| param.direction == Direction::Data)
        .map(|param| {
            let var = &program.vars[param.var.index()];
            let name = var.name.rsplit('.').next().unwrap_or(&var.name);
            (name.to_owned(), scalar_bits(var.ty))
        })
        .collect();
    ActionInfo {
        name: action.name.clone(),
        data,
        in_entries: listed.in_entries,
        as_default: listed.as_default,
    }
}

/// Checks data for one of a table's actions.
fn checked(info: &ActionInfo, action: u32, data: &[BigUint]) -> Result<Call, StateError> {
    if data.len() != info.data.len() {
        return Err(StateError::DataCount {
            action: info.name.clone(),
            names: info.data.iter().map(|(name, _)| name.clone()).collect(),
            expected: info.data.len(),
            given: data.len(),
        });
    }
    let mut words = Vec::new();
    for (value, (name, width)) in data.iter().zip(&info.data) {
        let place = || format!("`{name}` of action `{}`", info.name);
        push_checked(value, *width, place, &mut words)?;
    }
    Ok(Call {
        action,
        data: words.into_boxed_slice(),
    })
}

/// The call that names one of `actions`; `owner` has them.
pub(crate) fn invoke(
    owner: &str,
    actions: &[ActionInfo],
    wanted: &Invocation,
) -> Result<Call, StateError> {
    let names = actions.iter().map(|action| action.name.as_str());
    match names::positions(names.clone(), &wanted.action).as_slice() {
        [position] => checked(&actions[*position], *position as u32, &wanted.data),
        _ => Err(StateError::unknown_action(owner, &wanted.action, names)),
    }
}

/// An entry. It shares no line of the cache with what another engine counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
struct Stored {
    keys: Vec<KeyMatch>,
    priority: u32,
    /// Values and masks, or ends of ranges, in the words of all keys.
    low: Box<[u128]>,
    high: Box<[u128]>,
    /// Action call of the entry, unless `target` names another.
    call: Call,
    target: Option<Target>,
    is_const: bool,
    /// Place in the order of insertion.
    serial: u64,
    count: Count,
    meter: DirectMeter,
    idle: Option<Idle>,
}

/// Values and masks, or ends of ranges, in the words of all keys.
type Bounds = (Box<[u128]>, Box<[u128]>);

/// Positions of entries by the words of all keys.
type ByKey = FxHashMap<Box<[u128]>, u32>;

/// Index that finds entries.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Index {
    /// All keys are exact.
    Exact(ByKey),
    /// One key is a prefix, the others are exact: for each length in use, longest
    /// first, the entries by their masked keys.
    Prefix {
        key: usize,
        lengths: Vec<(u32, ByKey)>,
    },
    /// By priority.
    Ordered { order: Order, same: Same },
}

/// Positions of entries by priority, greatest first, and among equals by serial.
type Order = BTreeMap<(Reverse<u32>, u64), u32>;

/// Positions of entries by the bounds of their keys and priority, which no two share.
type Same = FxHashMap<(Box<[u128]>, Box<[u128]>, u32), u32>;

/// An entry that was hit, until the table changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId(u32);

impl EntryId {
    /// The entry at a position of [`Table::rule`].
    pub fn at(position: u32) -> EntryId {
        EntryId(position)
    }
}

/// A match-action table and its entries. It shares no line of the cache with what another engine
/// counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct Table {
    name: String,
    keys: Vec<KeyInfo>,
    actions: Vec<ActionInfo>,
    default: Call,
    initial_default: Call,
    const_default: bool,
    const_entries: bool,
    /// Direct counter and meter of the default entry.
    default_count: Count,
    default_meter: DirectMeter,
    /// True if fellows have the direct meters too.
    shares_meters: bool,
    /// Direct meters at which another engine was when this one came to them.
    meter_waits: u64,
    size: u64,
    counted: bool,
    /// Hits of all entries that ever were, if `counted`.
    hits: Count,
    metered_bytes: Option<bool>,
    /// Its action profile, and which of the profile's tables it is.
    profile: Option<(ActionProfileId, usize)>,
    references: References,
    ages: bool,
    /// Entries that age.
    aging: u64,
    entries: Vec<Option<Stored>>,
    free: Vec<u32>,
    count: u64,
    next_serial: u64,
    index: Index,
    log: Log,
}

/// The amount by which a packet of `bytes` bytes fills a direct meter, if there is one: its bytes, or 1.
fn metered(by_bytes: Option<bool>, bytes: u64) -> Option<u64> {
    by_bytes.map(|by_bytes| if by_bytes { bytes } else { 1 })
}

fn number(value: &Const) -> BigUint {
    match value {
        Const::Bool(value) => BigUint::from(u32::from(*value)),
        Const::Bits(value) => value.clone(),
    }
}

impl Table {
    pub(crate) fn new(program: &Program, def: &stateplane_ir::Table) -> Result<Table, StateError> {
        let unsupported = |what, instead| StateError::Unsupported {
            what,
            place: def.name.clone(),
            instead,
        };
        let mut keys = Vec::new();
        let mut offset = 0;
        // Keys of an action selector are no part of the match.
        let matched = def.keys.iter();
        let matched = matched.filter(|key| key.match_kind != MatchKind::Selector);
        for key in matched {
            if matches!(
                key.expr.ty,
                Type::Struct(_)
                    | Type::Header(_)
                    | Type::Union(_)
                    | Type::Stack(_)
                    | Type::Varbit(_)
            ) {
                return Err(unsupported(
                    "a key that is no scalar",
                    "use its fields as keys",
                ));
            }
            let width = scalar_bits(key.expr.ty);
            let info = KeyInfo::new(key.name.clone(), width, key.match_kind, offset);
            offset = info.end();
            keys.push(info);
        }
        let actions = def.actions.iter();
        let actions = actions.map(|listed| action_info(program, listed)).collect();
        let profile = def.implementation.map(|id| {
            let mut users = profile::users(program, id);
            let slot = users.position(|user| std::ptr::eq(user, def));
            (id, slot.unwrap_or_default())
        });
        let mut table = Table {
            name: def.name.clone(),
            index: index_for(&keys),
            keys,
            actions,
            default: Call::default(),
            initial_default: Call::default(),
            const_default: def.const_default,
            const_entries: def.const_entries,
            default_count: Count::default(),
            default_meter: match def.direct_meter {
                Some(_) => DirectMeter::new(false),
                None => DirectMeter::Absent,
            },
            shares_meters: false,
            meter_waits: 0,
            size: def.size.max(def.entries.len() as u64),
            counted: def.direct_counter.is_some(),
            hits: Count::default(),
            metered_bytes: def
                .direct_meter
                .map(|meter| program.meters[meter.index()].bytes),
            profile,
            references: References::default(),
            ages: def.support_timeout,
            aging: 0,
            entries: Vec::new(),
            free: Vec::new(),
            count: 0,
            next_serial: 0,
            log: Log::default(),
        };
        let data: Vec<BigUint> = def.default_action.data.iter().map(number).collect();
        table.default = table.call(def.default_action.action, &data)?;
        table.initial_default = table.default.clone();
        table.load_entries(def)?;
        Ok(table)
    }

    /// Enters the entries of the source. Of two with equal keys the first wins.
    fn load_entries(&mut self, def: &stateplane_ir::Table) -> Result<(), StateError> {
        let ordered = matches!(self.index, Index::Ordered { .. });
        let mut entries: Vec<_> = def.entries.iter().collect();
        entries.sort_by_key(|entry| Reverse(entry.priority));
        for entry in entries {
            let sets = entry.keys.iter().zip(&def.keys);
            let sets = sets.filter(|(_, key)| key.match_kind != MatchKind::Selector);
            let given: Vec<KeyMatch> = sets
                .zip(&self.keys)
                .map(|((set, _), key)| KeyMatch::from_key_set(set, key.width))
                .collect();
            let priority = if ordered { entry.priority.max(1) } else { 0 };
            let keys = self.normalise(&given)?;
            let data: Vec<BigUint> = entry.call.data.iter().map(number).collect();
            let call = self.call(entry.call.action, &data)?;
            if self.find(&keys, priority)?.is_none() {
                self.store(keys, priority, call, None, entry.is_const)?;
            }
        }
        Ok(())
    }

    /// Full control-plane name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its keys in order, without those of an action selector.
    pub fn keys(&self) -> &[KeyInfo] {
        &self.keys
    }

    /// Its actions in the order of the program.
    pub fn actions(&self) -> &[ActionInfo] {
        &self.actions
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True if it has no entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Greatest number of entries.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// True if entries have a priority: some key is ternary, range or optional.
    pub fn has_priority(&self) -> bool {
        matches!(self.index, Index::Ordered { .. })
    }

    /// Finds the entry for the words of all keys, which it may change. Allocates
    /// nothing.
    pub fn lookup(&self, key: &mut [u128]) -> Option<EntryId> {
        let found = match &self.index {
            Index::Exact(entries) => entries.get(&*key).copied(),
            Index::Prefix {
                key: prefix,
                lengths,
            } => lengths.iter().find_map(|(length, entries)| {
                self.keys[*prefix].keep_prefix(key, *length);
                entries.get(&*key).copied()
            }),
            Index::Ordered { order, .. } => order.values().copied().find(|&entry| {
                self.entries[entry as usize].as_ref().is_some_and(|entry| {
                    self.keys
                        .iter()
                        .all(|info| info.matches(key, &entry.low, &entry.high))
                })
            }),
        };
        found.map(EntryId)
    }

    /// Position among [`Table::actions`] and data words of an entry's action, or
    /// with `None` of the default action. In a table with an action profile entries have
    /// none: [`TargetState::action_at`](crate::TargetState::action_at) finds it.
    pub fn action(&self, entry: Option<EntryId>) -> (u32, &[u128]) {
        let call = entry
            .and_then(|entry| self.entries.get(entry.0 as usize)?.as_ref())
            .map_or(&self.default, |entry| &entry.call);
        (call.action, &call.data)
    }

    /// An entry that [`Table::lookup`] found, if it is still there.
    pub fn entry(&self, entry: EntryId) -> Option<Listed> {
        let stored = self.entries.get(entry.0 as usize)?.as_ref()?;
        Some(self.listed(stored))
    }

    /// Notes a hit by a packet of `bytes` bytes at `now` in µs: counts it, and meters
    /// it if the table has a direct meter.
    pub fn hit(&mut self, entry: EntryId, bytes: u64, now: u64) -> Color {
        let Some(Some(entry)) = self.entries.get_mut(entry.0 as usize) else {
            return Color::Green;
        };
        if self.counted {
            entry.count.add(bytes);
            self.hits.add(bytes);
        }
        if let Some(idle) = &mut entry.idle {
            idle.last_hit = now;
            idle.reported = None;
        }
        let Some(amount) = metered(self.metered_bytes, bytes) else {
            return Color::Green;
        };
        let waits = &mut self.meter_waits;
        entry.meter.execute((amount, bytes), now, waits)
    }

    /// Notes a packet of `bytes` bytes that hit no entry at `now` in µs: the default entry
    /// counts and meters it.
    pub fn miss(&mut self, bytes: u64, now: u64) -> Color {
        if self.counted {
            self.default_count.add(bytes);
        }
        let Some(amount) = metered(self.metered_bytes, bytes) else {
            return Color::Green;
        };
        let waits = &mut self.meter_waits;
        self.default_meter.execute((amount, bytes), now, waits)
    }

    /// Packets that hit an entry since the program was loaded, entries that were deleted
    /// since included; `None` without a direct counter.
    pub fn hits(&self) -> Option<Count> {
        self.counted.then_some(self.hits)
    }

    /// Entries in the order of their insertion.
    pub fn entries(&self) -> Vec<Listed> {
        let mut stored: Vec<&Stored> = self.entries.iter().flatten().collect();
        stored.sort_unstable_by_key(|entry| entry.serial);
        stored.into_iter().map(|entry| self.listed(entry)).collect()
    }

    /// The entry with these keys and this priority.
    ///
    /// # Errors
    ///
    /// [`StateError::NoEntry`], and those of [`Table::insert`] about keys.
    pub fn get(&self, keys: &[KeyMatch], priority: u32) -> Result<Listed, StateError> {
        let entry = self.existing(keys, priority)?;
        self.entries[entry as usize]
            .as_ref()
            .map(|entry| self.listed(entry))
            .ok_or_else(|| self.no_entry(keys))
    }

    /// The default action by full name, and its data, if it is not the program's.
    pub(crate) fn chosen_default(&self) -> Option<(String, Vec<BigUint>)> {
        (self.default != self.initial_default).then(|| self.default_action())
    }

    /// The default action by full name, and its data.
    pub fn default_action(&self) -> (String, Vec<BigUint>) {
        let Invocation { action, data } = self.default.describe(&self.actions);
        (action, data)
    }

    fn listed(&self, stored: &Stored) -> Listed {
        let runs = stored
            .target
            .as_ref()
            .map(|target| target.describe(&self.actions));
        let Invocation { action, data } = match &runs {
            None => stored.call.describe(&self.actions),
            Some(_) => Invocation {
                action: String::new(),
                data: Vec::new(),
            },
        };
        Listed {
            entry: Entry {
                keys: stored.keys.clone(),
                priority: stored.priority,
                action,
                data,
            },
            count: stored.count,
            runs,
            is_const: stored.is_const,
            idle_timeout: stored.idle.as_ref().map(|idle| idle.timeout),
        }
    }

    fn normalise(&self, given: &[KeyMatch]) -> Result<Vec<KeyMatch>, StateError> {
        if given.len() != self.keys.len() || self.keys.is_empty() {
            return Err(StateError::KeyCount {
                owner: self.owner(),
                names: self.keys.iter().map(|key| key.name.clone()).collect(),
                expected: self.keys.len(),
                given: given.len(),
            });
        }
        let owner = self.owner();
        let keys = self.keys.iter().zip(given);
        keys.map(|(key, given)| key.normalise(&owner, given))
            .collect()
    }

    /// The table for messages about keys.
    fn owner(&self) -> String {
        format!("table `{}`", self.name)
    }

    /// The action at a position with checked data.
    fn call(&self, action: u32, data: &[BigUint]) -> Result<Call, StateError> {
        let Some(info) = self.actions.get(action as usize) else {
            let action = format!("number {action}");
            let none = std::iter::empty();
            return Err(StateError::unknown_action(&self.owner(), &action, none));
        };
        checked(info, action, data)
    }

    /// Bounds of normalised keys in the words of all keys.
    fn bounds(&self, keys: &[KeyMatch]) -> Result<Bounds, StateError> {
        let (mut low, mut high) = (Vec::new(), Vec::new());
        let owner = self.owner();
        for (info, key) in self.keys.iter().zip(keys) {
            info.bounds(&owner, key, &mut low, &mut high)?;
        }
        Ok((low.into_boxed_slice(), high.into_boxed_slice()))
    }

    /// Position of the entry with these normalised keys.
    fn find(&self, keys: &[KeyMatch], priority: u32) -> Result<Option<u32>, StateError> {
        let (low, high) = self.bounds(keys)?;
        Ok(match &self.index {
            Index::Exact(entries) => entries.get(&low).copied(),
            Index::Prefix { key, lengths } => {
                let wanted = prefix_length(&keys[*key]);
                lengths
                    .iter()
                    .find(|(length, _)| *length == wanted)
                    .and_then(|(_, entries)| entries.get(&low).copied())
            }
            Index::Ordered { same, .. } => same.get(&(low, high, priority)).copied(),
        })
    }

    pub(crate) fn existing(&self, keys: &[KeyMatch], priority: u32) -> Result<u32, StateError> {
        let normal = self.normalise(keys)?;
        self.check_priority(priority)?;
        self.find(&normal, priority)?
            .ok_or_else(|| self.no_entry(&normal))
    }

    fn no_entry(&self, keys: &[KeyMatch]) -> StateError {
        StateError::NoEntry {
            table: self.name.clone(),
            keys: describe_keys(keys),
        }
    }

    /// Enters normalised keys that are not there yet.
    fn store(
        &mut self,
        keys: Vec<KeyMatch>,
        priority: u32,
        call: Call,
        target: Option<Target>,
        is_const: bool,
    ) -> Result<(), StateError> {
        let (low, high) = self.bounds(&keys)?;
        let position = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        let stored = Stored {
            keys,
            priority,
            low,
            high,
            call,
            target,
            is_const,
            serial: self.next_serial,
            count: Count::default(),
            meter: match self.metered_bytes {
                Some(_) => DirectMeter::new(self.shares_meters),
                None => DirectMeter::Absent,
            },
            idle: None,
        };
        self.put(position, stored);
        self.next_serial += 1;
        self.log.note(position);
        Ok(())
    }

    /// Puts an entry at a position that none has.
    fn put(&mut self, position: u32, stored: Stored) {
        match &mut self.index {
            Index::Exact(entries) => {
                entries.insert(stored.low.clone(), position);
            }
            Index::Prefix { key, lengths } => {
                let wanted = prefix_length(&stored.keys[*key]);
                let at = lengths.partition_point(|(length, _)| *length > wanted);
                if lengths.get(at).is_none_or(|(length, _)| *length != wanted) {
                    lengths.insert(at, (wanted, ByKey::default()));
                }
                lengths[at].1.insert(stored.low.clone(), position);
            }
            Index::Ordered { order, same } => {
                order.insert((Reverse(stored.priority), stored.serial), position);
                let bounds = (stored.low.clone(), stored.high.clone(), stored.priority);
                same.insert(bounds, position);
            }
        }
        self.references.add(stored.target.as_ref());
        self.aging += u64::from(stored.idle.is_some());
        self.entries[position as usize] = Some(stored);
        self.count += 1;
    }

    fn remove(&mut self, position: u32) {
        if self.take(position) {
            self.free.push(position);
            self.log.note(position);
        }
    }

    /// Takes the entry at a position out; false if there is none.
    fn take(&mut self, position: u32) -> bool {
        let entry = self.entries.get_mut(position as usize);
        let Some(stored) = entry.and_then(Option::take) else {
            return false;
        };
        match &mut self.index {
            Index::Exact(entries) => {
                entries.remove(&stored.low);
            }
            Index::Prefix { key, lengths } => {
                let wanted = prefix_length(&stored.keys[*key]);
                if let Some(at) = lengths.iter().position(|(length, _)| *length == wanted) {
                    lengths[at].1.remove(&stored.low);
                    if lengths[at].1.is_empty() {
                        lengths.remove(at);
                    }
                }
            }
            Index::Ordered { order, same } => {
                order.remove(&(Reverse(stored.priority), stored.serial));
                same.remove(&(stored.low, stored.high, stored.priority));
            }
        }
        self.references.remove(stored.target.as_ref());
        self.aging -= u64::from(stored.idle.is_some());
        self.count -= 1;
        true
    }
}

fn index_for(keys: &[KeyInfo]) -> Index {
    let mut prefixes = keys
        .iter()
        .enumerate()
        .filter(|(_, key)| key.kind == MatchKind::Lpm);
    let others = keys
        .iter()
        .all(|key| matches!(key.kind, MatchKind::Exact | MatchKind::Lpm));
    match (others, prefixes.next(), prefixes.next()) {
        (true, None, _) => Index::Exact(ByKey::default()),
        (true, Some((key, _)), None) => Index::Prefix {
            key,
            lengths: Vec::new(),
        },
        _ => Index::Ordered {
            order: Order::new(),
            same: Same::default(),
        },
    }
}

fn prefix_length(key: &KeyMatch) -> u32 {
    match key {
        KeyMatch::Prefix { length, .. } => *length,
        _ => 0,
    }
}

fn describe_keys(keys: &[KeyMatch]) -> String {
    let keys: Vec<String> = keys.iter().map(KeyMatch::to_string).collect();
    format!("({})", keys.join(", "))
}
