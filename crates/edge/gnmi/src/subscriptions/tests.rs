use std::sync::Arc;

use stateplane_host::sync::Window;
use stateplane_sync::Told;

use super::*;
use crate::facts::{GroupFacts, WindowNext};
use crate::path::tests::parse;
use crate::proto::gnmi::typed_value::Value;
use crate::proto::gnmi::{
    Encoding, Notification, Path, Poll, Subscription, SubscriptionMode, TypedValue,
};

mod requests;
mod windows;

const MS: u64 = 1_000_000;

/// Groups `packets` and `bytes` of three locations each.
pub(crate) fn groups() -> Vec<GroupInfo> {
    let group = |name: &str| GroupInfo {
        name: name.into(),
        locations: 3,
    };
    vec![group("packets"), group("bytes")]
}

fn packed(values: &[u64]) -> Arc<Vec<u8>> {
    Arc::new(values.iter().flat_map(|it| it.to_le_bytes()).collect())
}

/// The promise of a view that is `generation`.
fn told(generation: u64) -> Told {
    Told {
        bound: Some(2),
        all_but: 0,
        within: 0,
        age_us: 10,
        stamp: 1,
        poll: 1,
        generation,
        incarnation: 1,
        epoch: 0,
        sweep_us: 0,
    }
}

/// Facts of both groups, whose views have these values or are incomplete.
pub(crate) fn facts(packets: Option<&[u64]>, bytes: Option<&[u64]>) -> Facts {
    let group = |values: Option<&[u64]>| GroupFacts {
        told: values.map(|_| told(1)),
        values: values.map(packed),
        ..GroupFacts::default()
    };
    Facts {
        term: 9,
        groups: vec![group(packets), group(bytes)],
        windows: Vec::new(),
    }
}

/// A window whose epoch is its number.
pub(crate) fn window(number: u64, values: &[u64]) -> Window {
    Window {
        number,
        incarnation: 1,
        epoch: number as u32,
        values: packed(values),
    }
}

/// An engine on a clock of its own, and one subscriber.
struct Bench {
    subscriptions: Subscriptions,
    now: u64,
    facts: Facts,
    /// Windows of `packets` that are kept.
    kept: Vec<Window>,
}

fn request(list: SubscriptionList) -> SubscribeRequest {
    SubscribeRequest {
        request: Some(Request::Subscribe(list)),
        extension: Vec::new(),
    }
}

fn list(mode: Mode, subscriptions: &[Subscription]) -> SubscriptionList {
    SubscriptionList {
        mode: mode.into(),
        encoding: Encoding::Proto.into(),
        subscription: subscriptions.to_vec(),
        ..SubscriptionList::default()
    }
}

fn of(path: &str, mode: SubscriptionMode) -> Subscription {
    Subscription {
        path: Some(parse(path)),
        mode: mode.into(),
        ..Subscription::default()
    }
}

fn sampled(path: &str, interval_ms: u64) -> Subscription {
    Subscription {
        sample_interval: interval_ms * MS,
        ..of(path, SubscriptionMode::Sample)
    }
}

const VALUES: &str = "/sync/groups/group[name=packets]/values";
const WINDOWS: &str = "/sync/groups/group[name=packets]/windows";

fn text(path: &Path) -> String {
    let elements = path.elem.iter().map(|elem| {
        let keys = elem
            .key
            .iter()
            .map(|(key, value)| format!("[{key}={value}]"));
        elem.name.clone() + &keys.collect::<String>()
    });
    elements.collect::<Vec<_>>().join("/")
}

fn value(typed: Option<&TypedValue>) -> String {
    match typed.and_then(|it| it.value.as_ref()) {
        Some(Value::UintVal(value)) => value.to_string(),
        Some(Value::BoolVal(value)) => value.to_string(),
        Some(Value::BytesVal(bytes)) => format!("{} bytes", bytes.len()),
        Some(Value::JsonVal(json)) => String::from_utf8_lossy(json).into_owned(),
        other => panic!("{other:?}"),
    }
}

/// A message as text: what is deleted, what is updated.
fn said(notification: &Notification) -> Vec<String> {
    let prefix = notification.prefix.as_ref().map(text).unwrap_or_default();
    let short = |path: &Path| {
        let whole = format!("{prefix}/{}", text(path));
        whole.replace("sync/groups/group[name=packets]/", "")
    };
    let atomic = if notification.atomic { "!" } else { "" };
    let deleted = notification
        .delete
        .iter()
        .map(|path| format!("-{}", short(path)));
    let updated = notification.update.iter().map(|update| {
        let path = update.path.as_ref().expect("a path");
        format!("{atomic}{}={}", short(path), value(update.val.as_ref()))
    });
    deleted.chain(updated).collect()
}

impl Bench {
    fn new(list: SubscriptionList) -> Bench {
        Bench {
            subscriptions: Subscriptions::new(&request(list), &groups()).expect("good"),
            now: 0,
            facts: facts(Some(&[5, 6, 7]), Some(&[0, 0, 0])),
            kept: Vec::new(),
        }
    }

    fn set(&mut self, values: &[u64]) {
        self.facts.groups[0].values = Some(packed(values));
    }

    /// The engine's answer for windows.
    fn window_after(&self, after: u64) -> WindowNext {
        let oldest = self.kept.first().map_or(1, |it| it.number);
        let last = self.kept.last().map_or(0, |it| it.number);
        if after < last && after + 1 < oldest {
            return WindowNext::Gone { oldest };
        }
        let next = self.kept.iter().find(|it| it.number > after);
        next.cloned().map_or(WindowNext::NotYet, WindowNext::Window)
    }

    /// Lets time pass up to `until` µs; gives what was said, `sync` for sync_response.
    fn pass(&mut self, until: u64) -> Vec<String> {
        self.try_pass(until).expect("it goes on")
    }

    fn try_pass(&mut self, until: u64) -> Result<Vec<String>, Refusal> {
        let mut all = Vec::new();
        while let Some(due) = self.subscriptions.poll_timeout()
            && due.max(self.now) <= until
        {
            self.now = self.now.max(due);
            let mut facts = self.facts.clone();
            let needs = self.subscriptions.needs();
            for (at, group) in facts.groups.iter_mut().enumerate() {
                group.values = group.values.take().filter(|_| needs.values.contains(&at));
                group.last_window = match at {
                    0 => self.kept.last().map_or(0, |it| it.number),
                    _ => 0,
                };
            }
            for (at, after) in needs.windows {
                let next = match at {
                    0 => self.window_after(after),
                    _ => WindowNext::NotYet,
                };
                facts.windows.push((at, after, next));
            }
            let moment = Moment {
                now_us: self.now,
                unix_ns: self.now as i64,
            };
            self.subscriptions.handle_facts(moment, &facts)?;
            all.extend(self.taken());
            assert!(all.len() < 10_000, "it ends");
        }
        self.now = self.now.max(until);
        Ok(all)
    }

    fn taken(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(message) = self.subscriptions.poll_transmit() {
            match message.response.expect("a response") {
                Response::Update(notification) => all.extend(said(&notification)),
                Response::SyncResponse(is_done) => {
                    assert!(is_done);
                    all.push("sync".into());
                }
                other => panic!("{other:?}"),
            }
        }
        all
    }

    fn poll(&mut self) {
        let poll = SubscribeRequest {
            request: Some(Request::Poll(Poll {})),
            extension: Vec::new(),
        };
        self.subscriptions
            .handle_request(&poll)
            .expect("it is polled");
    }
}

fn located(values: &[(u32, u64)]) -> Vec<String> {
    let text = values.iter();
    text.map(|(at, value)| format!("values/value[location={at}]/state/value={value}"))
        .collect()
}

fn all(values: [u64; 3]) -> Vec<String> {
    located(&[(0, values[0]), (1, values[1]), (2, values[2])])
}

fn with_sync(mut messages: Vec<String>) -> Vec<String> {
    messages.push("sync".into());
    messages
}

#[test]
fn once_waits_for_complete_views_and_ends() {
    let paths = [VALUES, "/sync/groups/group[name=bytes]/state/bound"];
    let subscriptions = paths.map(|path| of(path, SubscriptionMode::TargetDefined));
    let mut bench = Bench::new(list(Mode::Once, &subscriptions));
    bench.facts = facts(Some(&[5, 6, 7]), None);
    assert!(bench.pass(100 * 1_000).is_empty(), "`bytes` is incomplete");
    assert!(!bench.subscriptions.is_finished());
    bench.facts = facts(Some(&[5, 6, 8]), Some(&[0, 0, 0]));
    let mut expected = all([5, 6, 8]);
    expected.push("sync/groups/group[name=bytes]/state/bound=2".into());
    assert_eq!(bench.pass(200 * 1_000), with_sync(expected));
    assert!(bench.subscriptions.is_finished());
    assert_eq!(bench.subscriptions.poll_timeout(), None);
}

#[test]
fn a_poll_is_answered_with_all_values_and_two_polls_twice() {
    let mut bench = Bench::new(list(
        Mode::Poll,
        &[of(VALUES, SubscriptionMode::TargetDefined)],
    ));
    assert!(bench.pass(50_000).is_empty(), "nobody has polled");
    bench.poll();
    assert_eq!(bench.pass(60_000), with_sync(all([5, 6, 7])));
    bench.set(&[5, 6, 9]);
    bench.poll();
    bench.poll();
    let twice = [with_sync(all([5, 6, 9])), with_sync(all([5, 6, 9]))].concat();
    assert_eq!(bench.pass(70_000), twice);
    assert!(bench.pass(80_000).is_empty());
    let again = request(list(Mode::Poll, &[]));
    assert!(bench.subscriptions.handle_request(&again).is_err());
}

#[test]
fn on_change_tells_changes_deletes_and_views_that_begin_anew() {
    let change = of(VALUES, SubscriptionMode::OnChange);
    let mut bench = Bench::new(list(Mode::Stream, &[change]));
    bench.facts = facts(None, None);
    assert!(bench.pass(30_000).is_empty(), "the view is incomplete");
    bench.facts = facts(Some(&[5, 6, 7]), None);
    assert_eq!(bench.pass(40_000), with_sync(all([5, 6, 7])));
    assert!(bench.pass(60_000).is_empty());
    bench.set(&[5, 9, 7]);
    assert_eq!(bench.pass(80_000), located(&[(1, 9)]));
    // Another view has all values anew.
    bench.facts.groups[0].told = Some(told(2));
    let anew = [vec!["-values".to_owned()], all([5, 9, 7])].concat();
    assert_eq!(bench.pass(100_000), anew);
    bench.facts = facts(None, None);
    assert_eq!(bench.pass(120_000), ["-values"]);
    bench.facts = facts(Some(&[1, 1, 1]), None);
    assert_eq!(bench.pass(140_000), all([1, 1, 1]));
}

#[test]
fn leaves_of_state_come_and_go_and_restless_ones_once_a_second() {
    let state = "/sync/groups/group[name=packets]/state";
    let change = of(state, SubscriptionMode::OnChange);
    let mut bench = Bench::new(list(Mode::Stream, &[change]));
    bench.facts = facts(None, None);
    let first = bench.pass(5_000);
    assert_eq!(
        first,
        [
            "state/locations=3",
            "state/complete=false",
            "state/fenced=false",
            "state/last-window=0"
        ]
    );
    bench.facts = facts(Some(&[0; 3]), None);
    let complete = bench.pass(20_000);
    assert_eq!(complete[0], "state/complete=true");
    assert!(
        complete.contains(&"state/bound=2".into()) && complete.contains(&"state/age=10".into())
    );
    assert_eq!(complete.last().map(String::as_str), Some("sync"));
    let told = bench.facts.groups[0].told.as_mut().expect("complete");
    (told.age_us, told.stamp, told.bound) = (11, 2, None);
    assert_eq!(bench.pass(40_000), ["-state/bound"]);
    assert_eq!(bench.pass(1_100_000), ["state/age=11", "state/stamp=2"]);
}

#[test]
fn samples_come_at_their_interval_and_redundant_ones_are_left_out() {
    let every = sampled(VALUES, 100);
    let mut bench = Bench::new(list(Mode::Stream, std::slice::from_ref(&every)));
    assert_eq!(bench.pass(50_000), with_sync(all([5, 6, 7])));
    assert_eq!(
        bench.pass(299_000),
        [all([5, 6, 7]), all([5, 6, 7])].concat()
    );

    let changed = Subscription {
        suppress_redundant: true,
        heartbeat_interval: 1_000 * MS,
        ..every
    };
    let mut bench = Bench::new(list(Mode::Stream, &[changed]));
    assert_eq!(bench.pass(50_000), with_sync(all([5, 6, 7])));
    bench.set(&[5, 6, 8]);
    assert!(bench.pass(99_000).is_empty());
    assert_eq!(bench.pass(100_000), located(&[(2, 8)]));
    assert!(bench.pass(999_000).is_empty());
    assert_eq!(bench.pass(1_000_000), all([5, 6, 8]), "a heartbeat");
}

#[test]
fn an_incomplete_view_delays_sync_and_not_the_samples_of_others() {
    let list = list(
        Mode::Stream,
        &[sampled("/sync/groups/group/state/bound", 1_000)],
    );
    let mut bench = Bench::new(list);
    bench.facts = facts(None, Some(&[0; 3]));
    let other = "sync/groups/group[name=bytes]/state/bound=2";
    assert_eq!(bench.pass(500_000), [other]);
    bench.facts = facts(Some(&[0; 3]), Some(&[0; 3]));
    assert_eq!(bench.pass(520_000), ["state/bound=2", "sync"]);
    assert_eq!(bench.pass(1_000_000), ["state/bound=2", other]);
}

#[test]
fn heartbeats_repeat_what_has_not_changed() {
    let change = Subscription {
        heartbeat_interval: 200 * MS,
        ..of(
            &format!("{VALUES}/value[location=1]"),
            SubscriptionMode::OnChange,
        )
    };
    let mut bench = Bench::new(list(Mode::Stream, &[change]));
    assert_eq!(bench.pass(10_000), with_sync(located(&[(1, 6)])));
    bench.set(&[9, 6, 9]);
    assert!(
        bench.pass(199_000).is_empty(),
        "other locations are not asked for"
    );
    assert_eq!(bench.pass(200_000), located(&[(1, 6)]));
    assert_eq!(bench.pass(400_000), located(&[(1, 6)]));
}

#[test]
fn updates_only_begins_with_sync_and_tells_what_changes() {
    let mut list = list(Mode::Stream, &[of(VALUES, SubscriptionMode::OnChange)]);
    list.updates_only = true;
    let mut bench = Bench::new(list.clone());
    assert_eq!(bench.pass(20_000), ["sync"]);
    bench.set(&[5, 6, 8]);
    assert_eq!(bench.pass(40_000), located(&[(2, 8)]));
    list.mode = Mode::Once.into();
    let mut bench = Bench::new(list);
    assert_eq!(bench.pass(20_000), ["sync"]);
    assert!(bench.subscriptions.is_finished());
}

#[test]
fn aggregation_tells_state_as_one_value() {
    let state = "/sync/groups/group[name=packets]/state";
    let mut list = list(Mode::Stream, &[of(state, SubscriptionMode::OnChange)]);
    list.allow_aggregation = true;
    list.encoding = Encoding::Json.into();
    let mut bench = Bench::new(list);
    let first = bench.pass(5_000);
    assert!(
        first[0].starts_with(r#"state={"locations":3,"complete":true,"#),
        "{first:?}"
    );
    assert_eq!(first.len(), 2, "and sync");
}

#[test]
fn unknown_groups_and_locations_are_awaited_for_ever() {
    let paths = [
        "/sync/groups/group[name=colour]/values",
        "/sync/groups/group[name=packets]/values/value[location=3]",
    ];
    let subscriptions = paths.map(|path| of(path, SubscriptionMode::OnChange));
    let mut bench = Bench::new(list(Mode::Stream, &subscriptions));
    assert_eq!(bench.pass(20_000), ["sync"]);
    assert!(bench.pass(200_000).is_empty());
}
