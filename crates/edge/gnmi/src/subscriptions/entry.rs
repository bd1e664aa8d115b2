//! One subscription of a list, and what was told of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::job::{Head, Job, Values, named, update, values_path};
use super::windows::{Windows, windows_of};
use super::{LOOK_US, Moment};
use crate::facts::{Facts, GroupInfo, Needs};
use crate::path::Selection;
use crate::proto::gnmi::subscription_list::Mode;
use crate::proto::gnmi::{Encoding, Subscription, SubscriptionList, SubscriptionMode, Update};
use crate::refusal::Refusal;
use crate::schema::{Leaf, MODULE, state_leaves, state_name};
use crate::value::{Scalar, json, of_engine, of_group};

/// Shortest interval between samples and between heartbeats, in µs.
const LEAST_US: u64 = 1_000;

/// µs between two ON_CHANGE updates of a restless leaf.
const RESTLESS_US: u64 = 1_000_000;

/// When values are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    OnChange,
    Sample { interval: u64, changed_only: bool },
}

/// A subscription.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) selection: Selection,
    pub(super) head: Head,
    style: Style,
    /// µs between heartbeats; none if 0.
    heartbeat: u64,
    /// `state` is told as one value.
    is_aggregated: bool,
    /// When the next sample, or look for changes, is due.
    due: u64,
    /// When the next heartbeat is due.
    beat: u64,
    term: Option<Scalar>,
    pub(super) groups: Vec<Told>,
}

/// State of a group as the subscriber was told it last.
#[derive(Debug)]
pub(super) struct Told {
    /// Its place in the engine's file.
    pub(super) at: usize,
    pub(super) info: GroupInfo,
    /// Leaves of `state`, and all values packed, with the times at which they were told.
    leaves: BTreeMap<Leaf, (Scalar, u64)>,
    /// Generation and values.
    values: Option<(u64, Arc<Vec<u8>>)>,
    /// A complete view was told, or none is asked for.
    is_whole: bool,
    pub(super) windows: Option<Windows>,
}

fn ns_to_us(ns: u64) -> u64 {
    ns.div_ceil(1_000)
}

impl Entry {
    pub(super) fn new(
        list: &SubscriptionList,
        subscription: &Subscription,
        mode: Mode,
        encoding: Encoding,
        groups: &[GroupInfo],
    ) -> Result<Entry, Refusal> {
        let selection = Selection::of(list.prefix.as_ref(), subscription.path.as_ref())?;
        let style = style(subscription, mode, &selection.text)?;
        let heartbeat = ns_to_us(subscription.heartbeat_interval);
        if mode == Mode::Stream && heartbeat > 0 && heartbeat < LEAST_US {
            return Err(too_short("heartbeat_interval", &selection.text));
        }
        let is_whole_state = state_leaves().all(|leaf| selection.leaves.contains(&leaf));
        let of_windows = selection.has_any(Leaf::is_of_window);
        let needs_view = selection.has_any(Leaf::needs_view);
        let all = groups.iter().enumerate();
        let meant = all.filter(|(_, info)| selection.has_group(&info.name));
        let groups = meant.map(|(at, info)| Told {
            at,
            info: info.clone(),
            leaves: BTreeMap::new(),
            values: None,
            is_whole: !needs_view,
            windows: of_windows.then(|| windows_of(&selection)),
        });
        Ok(Entry {
            head: Head::of(&selection, encoding),
            style,
            heartbeat,
            is_aggregated: list.allow_aggregation && is_whole_state && encoding != Encoding::Proto,
            due: 0,
            beat: u64::MAX,
            term: None,
            groups: groups.collect(),
            selection,
        })
    }

    /// Adds the facts that the next look wants.
    pub(super) fn add_needs(&self, mode: Mode, needs: &mut Needs) {
        let is_reported = |leaf| matches!(leaf, Leaf::Fenced | Leaf::LastWindow);
        needs.report |= self.selection.has_any(is_reported);
        let has_values = |leaf| matches!(leaf, Leaf::Value | Leaf::ValuesPacked);
        if self.selection.has_any(has_values) {
            needs
                .values
                .extend(self.groups.iter().map(|group| group.at));
        }
        for group in &self.groups {
            let Some(windows) = group.windows else {
                continue;
            };
            if !windows.is_over {
                needs.windows.insert((group.at, windows.after));
            }
            if mode == Mode::Stream && windows.oldest > 0 {
                needs.windows.insert((group.at, windows.oldest - 1));
            }
        }
    }

    /// True if all views that are asked for are complete.
    pub(super) fn is_complete(&self, facts: &Facts) -> bool {
        let needs_view = self.selection.has_any(Leaf::needs_view);
        let mut groups = self.groups.iter().filter_map(|it| facts.groups.get(it.at));
        !needs_view || groups.all(|group| group.told.is_some())
    }

    /// True if complete views have been told, of all groups that are asked for.
    pub(super) fn is_whole(&self) -> bool {
        let mut groups = self.groups.iter();
        groups.all(|it| it.is_whole && it.windows.is_none_or(|windows| windows.is_whole))
    }

    /// When the next look is due, after one at `now`.
    pub(super) fn next_look(&self, now: u64) -> u64 {
        let has_windows = |it: &Told| it.windows.is_some_and(|windows| !windows.is_idle());
        let is_awaited = self.groups.iter().any(|it| !it.is_whole || has_windows(it));
        let awaited = if is_awaited { now + LOOK_US } else { u64::MAX };
        self.due.min(self.beat).min(awaited)
    }

    /// Takes what there is for told.
    pub(super) fn skip(&mut self, moment: Moment, facts: &Facts) {
        self.tell(moment, facts, true, &mut VecDeque::new());
        for group in &mut self.groups {
            group.is_whole = true;
            if let (Some(windows), Some(facts)) = (&mut group.windows, facts.groups.get(group.at)) {
                windows.after = windows.after.max(facts.last_window);
                (windows.is_begun, windows.is_whole) = (true, true);
            }
        }
        self.begin(moment.now_us);
    }

    /// Begins to count time: the first values have been noted.
    fn begin(&mut self, now: u64) {
        self.due = now.saturating_add(self.period());
        if self.heartbeat > 0 {
            self.beat = now.saturating_add(self.heartbeat);
        }
    }

    fn period(&self) -> u64 {
        match self.style {
            Style::Sample { interval, .. } => interval,
            Style::OnChange => LOOK_US,
        }
    }

    /// STREAM: notes what is due, and views that have become complete.
    pub(super) fn stream(&mut self, moment: Moment, facts: &Facts, jobs: &mut VecDeque<Job>) {
        let now = moment.now_us;
        let (is_due, is_beat) = (now >= self.due, now >= self.beat);
        if !is_due && !is_beat {
            self.tell_groups(moment, facts, false, |it| !it.is_whole, jobs);
            return;
        }
        let is_first = self.due == 0;
        let samples_all = matches!(
            self.style,
            Style::Sample {
                changed_only: false,
                ..
            }
        );
        let all = is_beat || (samples_all && !is_first);
        self.tell(moment, facts, all, jobs);
        if is_first {
            self.begin(now);
            return;
        }
        if is_due {
            self.due = next(self.due, self.period(), now);
        }
        if is_beat {
            self.beat = next(self.beat, self.heartbeat, now);
        }
    }

    /// Notes all values, or those that changed.
    pub(super) fn tell(
        &mut self,
        moment: Moment,
        facts: &Facts,
        all: bool,
        jobs: &mut VecDeque<Job>,
    ) {
        if self.selection.leaves.contains(&Leaf::Term) {
            let term = of_engine(Leaf::Term, facts);
            if let Some(scalar) = term.as_ref().filter(|_| all || term != self.term) {
                let mut notification = self.head.of_engine(moment.unix_ns);
                let path = named(&["state", "term"]);
                let update = update(path, scalar, self.head.encoding);
                notification.update.push(update);
                jobs.push_back(Job::ready(notification));
            }
            self.term = term;
        }
        self.tell_groups(moment, facts, all, |_| true, jobs);
    }

    fn tell_groups(
        &mut self,
        moment: Moment,
        facts: &Facts,
        all: bool,
        which: fn(&Told) -> bool,
        jobs: &mut VecDeque<Job>,
    ) {
        let mut groups = std::mem::take(&mut self.groups);
        for group in groups.iter_mut().filter(|it| which(it)) {
            self.tell_leaves(moment, facts, all, group, jobs);
            self.tell_values(moment, facts, all, group, jobs);
            let state = facts.groups.get(group.at);
            group.is_whole |= state.is_some_and(|it| it.told.is_some());
        }
        self.groups = groups;
    }

    fn tell_leaves(
        &self,
        moment: Moment,
        facts: &Facts,
        all: bool,
        group: &mut Told,
        jobs: &mut VecDeque<Job>,
    ) {
        let Some(state) = facts.groups.get(group.at) else {
            return;
        };
        let now = moment.now_us;
        let mut notification = self.head.of_group(moment.unix_ns, &group.info.name);
        let leaves = self.selection.leaves.iter().copied();
        for leaf in leaves.filter(|it| it.is_of_state() || *it == Leaf::ValuesPacked) {
            let path = match leaf {
                Leaf::ValuesPacked => named(&["values-packed"]),
                _ => named(&["state", state_name(leaf)]),
            };
            let Some(scalar) = of_group(leaf, &group.info, state) else {
                if group.leaves.remove(&leaf).is_some() {
                    notification.delete.push(path);
                }
                continue;
            };
            let is_old = group.leaves.get(&leaf).is_some_and(|(told, at)| {
                let rests = leaf.is_restless() && self.style == Style::OnChange;
                *told == scalar || (rests && now < at.saturating_add(RESTLESS_US))
            });
            if is_old && !all {
                continue;
            }
            notification
                .update
                .push(update(path, &scalar, self.head.encoding));
            group.leaves.insert(leaf, (scalar, now));
        }
        if self.is_aggregated {
            self.aggregate(&mut notification.update, group);
        }
        if !notification.update.is_empty() || !notification.delete.is_empty() {
            jobs.push_back(Job::ready(notification));
        }
    }

    /// Puts one value for `state` in the place of updates of its leaves.
    fn aggregate(&self, updates: &mut Vec<Update>, group: &Told) {
        let before = updates.len();
        updates.retain(|it| it.path == Some(named(&["values-packed"])));
        if updates.len() == before {
            return;
        }
        let ietf = self.head.encoding == Encoding::JsonIetf;
        let mut text = String::from("{");
        let leaves = group.leaves.iter().filter(|(leaf, _)| leaf.is_of_state());
        for (at, (leaf, (scalar, _))) in leaves.enumerate() {
            let module = if ietf {
                format!("{MODULE}:")
            } else {
                String::new()
            };
            let comma = if at > 0 { "," } else { "" };
            text += &format!("{comma}\"{module}{}\":", state_name(*leaf));
            scalar.write_json(ietf, &mut text);
        }
        text.push('}');
        updates.push(Update {
            path: Some(named(&["state"])),
            val: Some(json(text, self.head.encoding)),
            ..Update::default()
        });
    }

    fn tell_values(
        &self,
        moment: Moment,
        facts: &Facts,
        all: bool,
        group: &mut Told,
        jobs: &mut VecDeque<Job>,
    ) {
        let range = match self.selection.location() {
            None => 0..group.info.locations,
            Some(location) if location < group.info.locations => location..location + 1,
            Some(_) => return,
        };
        if !self.selection.leaves.contains(&Leaf::Value) {
            return;
        }
        let path = || values_path(self.selection.location());
        let state = facts.groups.get(group.at);
        let present = state.and_then(|it| Some((it.told?.generation, it.values.clone()?)));
        let Some((generation, values)) = present else {
            if group.values.take().is_some() {
                let mut notification = self.head.of_group(moment.unix_ns, &group.info.name);
                notification.delete.push(path());
                jobs.push_back(Job::ready(notification));
            }
            return;
        };
        let before = group.values.replace((generation, values.clone()));
        let is_anew = before.as_ref().is_some_and(|(of, _)| *of != generation);
        let before = before
            .filter(|_| !all && !is_anew)
            .map(|(_, values)| values);
        if before.as_ref().is_some_and(|it| Arc::ptr_eq(it, &values)) {
            return;
        }
        jobs.push_back(Job::Values(Values {
            head: self.head.clone(),
            name: group.info.name.clone(),
            unix_ns: moment.unix_ns,
            before,
            values,
            rest: range,
            delete: is_anew.then(path),
        }));
    }
}

/// The first time of a series behind `now`.
fn next(due: u64, period: u64, now: u64) -> u64 {
    let next = due.saturating_add(period);
    if next > now {
        next
    } else {
        now.saturating_add(period)
    }
}

fn too_short(field: &str, path: &str) -> Refusal {
    Refusal::invalid(format!(
        "{field} of {path} is in ns, and {} at least",
        LEAST_US * 1_000
    ))
}

/// The style of a subscription.
fn style(subscription: &Subscription, mode: Mode, path: &str) -> Result<Style, Refusal> {
    let interval = ns_to_us(subscription.sample_interval);
    if mode != Mode::Stream {
        return Ok(Style::OnChange);
    }
    match SubscriptionMode::try_from(subscription.mode) {
        Ok(SubscriptionMode::OnChange) => Ok(Style::OnChange),
        Ok(SubscriptionMode::TargetDefined) if interval > 0 => Err(Refusal::invalid(format!(
            "sample_interval of {path} is set, and its mode is TARGET_DEFINED: give SAMPLE"
        ))),
        Ok(SubscriptionMode::TargetDefined) => Ok(Style::OnChange),
        Ok(SubscriptionMode::Sample) if interval > 0 && interval < LEAST_US => {
            Err(too_short("sample_interval", path))
        }
        Ok(SubscriptionMode::Sample) => Ok(Style::Sample {
            interval: interval.max(LEAST_US),
            changed_only: subscription.suppress_redundant,
        }),
        Err(_) => Err(Refusal::invalid(format!(
            "there is no mode {} of subscriptions: {path}",
            subscription.mode
        ))),
    }
}
