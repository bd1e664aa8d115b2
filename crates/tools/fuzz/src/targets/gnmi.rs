//! Requests of gNMI: any bytes against the tree and the subscriptions of a small engine.

use std::sync::Arc;

use prost::Message as _;
use stateplane_gnmi::proto::gnmi::{
    Encoding, GetRequest, Path, PathElem, Poll, SubscribeRequest, SubscribeResponse, Subscription,
    SubscriptionList, SubscriptionMode, subscribe_request::Request, subscribe_response::Response,
    subscription_list::Mode,
};
use stateplane_gnmi::{Facts, GroupFacts, GroupInfo, Moment, Subscriptions, Tree, WindowNext, get};
use stateplane_host::sync::Window;
use stateplane_sync::Told;

/// Names and keys of paths.
pub(super) const WORDS: &[&str] = &[
    "sync",
    "groups",
    "group",
    "name",
    "state",
    "values",
    "value",
    "location",
    "windows",
    "window",
    "number",
    "values-packed",
    "bound",
    "age",
    "term",
    "epoch",
    "*",
    "...",
    "a",
    "b",
    "0",
    "1",
    "2",
    "stateplane-sync",
];

/// First bytes of an input: its kind.
const GET: u8 = 0;
const SUBSCRIBE: u8 = 1;

/// µs of virtual time that a subscriber stays.
const STAY: u64 = 100_000;

/// Looks of a subscriber at most.
const LOOKS: usize = 64;

fn groups() -> Vec<GroupInfo> {
    ["a", "b"]
        .map(|name| GroupInfo {
            name: name.into(),
            locations: 3,
        })
        .to_vec()
}

fn packed(of: u64) -> Arc<Vec<u8>> {
    Arc::new([of, 7, 9].iter().flat_map(|it| it.to_le_bytes()).collect())
}

fn window(number: u64) -> Window {
    Window {
        number,
        incarnation: 1,
        epoch: number as u32,
        values: packed(number),
    }
}

/// State at a time: the view of `a` changes and begins anew now and then, that of `b` is complete
/// after a while.
fn facts(now: u64) -> Facts {
    let group = |is_complete: bool| {
        let told = Told {
            bound: (now % 20_000 < 10_000).then_some(now % 3),
            all_but: 0,
            within: 0,
            age_us: now % 1_000,
            stamp: now,
            poll: now,
            generation: 1 + now / 40_000,
            incarnation: 1,
            epoch: 0,
            sweep_us: 0,
        };
        GroupFacts {
            told: is_complete.then_some(told),
            values: is_complete.then(|| packed(now / 15_000)),
            ..GroupFacts::default()
        }
    };
    Facts {
        term: 1,
        groups: vec![group(true), group(now > 30_000)],
        windows: Vec::new(),
    }
}

/// A request is answered or refused, and subscriptions make messages that can be sent, of which
/// `sync_response` is the last that ONCE gives.
pub(super) fn requests(input: &[u8]) {
    match input.split_first() {
        Some((&GET, message)) => {
            let Ok(request) = GetRequest::decode(message) else {
                return;
            };
            let (groups, facts) = (groups(), facts(50_000));
            let windows = [vec![window(4), window(5)], Vec::new()];
            let tree = Tree {
                groups: &groups,
                facts: &facts,
                windows: &windows,
                unix_ns: 1,
            };
            if let Ok(response) = get(&request, &tree) {
                let paths = request.path.len().max(1);
                assert_eq!(response.notification.len(), paths, "one for each path");
                let updates = response.notification.iter().flat_map(|it| &it.update);
                assert!(
                    updates
                        .into_iter()
                        .all(|it| it.path.is_some() && it.val.is_some())
                );
            }
        }
        Some((_, message)) => subscribe(message),
        None => {}
    }
}

fn subscribe(message: &[u8]) {
    let Ok(request) = SubscribeRequest::decode(message) else {
        return;
    };
    let Ok(mut subscriptions) = Subscriptions::new(&request, &groups()) else {
        return;
    };
    let poll = SubscribeRequest {
        request: Some(Request::Poll(Poll {})),
        extension: Vec::new(),
    };
    let is_polled = subscriptions.handle_request(&poll).is_ok();
    assert_eq!(is_polled, subscriptions.is_polled());
    let (mut now, mut is_synced) = (0, false);
    for _ in 0..LOOKS {
        let due = subscriptions.poll_timeout();
        let Some(due) = due.filter(|due| *due <= STAY) else {
            break;
        };
        now = due.max(now);
        let mut facts = facts(now);
        facts.windows = subscriptions
            .needs()
            .windows
            .into_iter()
            .map(|(group, after)| {
                let next = match after {
                    0..3 => WindowNext::Gone { oldest: 4 },
                    3..5 => WindowNext::Window(window(after + 1)),
                    _ => WindowNext::NotYet,
                };
                (group, after, next)
            })
            .collect();
        let moment = Moment {
            now_us: now,
            unix_ns: now as i64,
        };
        if subscriptions.handle_facts(moment, &facts).is_err() {
            return;
        }
        while let Some(response) = subscriptions.poll_transmit() {
            is_synced = check(&response);
        }
    }
    assert!(!subscriptions.is_finished() || is_synced);
}

/// Checks a message; true if it is a sync_response.
fn check(response: &SubscribeResponse) -> bool {
    let bytes = response.encode_to_vec();
    assert_eq!(SubscribeResponse::decode(&bytes[..]).as_ref(), Ok(response));
    match &response.response {
        Some(Response::SyncResponse(is_synced)) => *is_synced,
        Some(Response::Update(notification)) => {
            assert!(!notification.update.is_empty() || !notification.delete.is_empty());
            false
        }
        other => panic!("{other:?}"),
    }
}

fn path(text: &str) -> Path {
    let elem = text.split('/').map(|part| {
        let (name, key) = part.split_once('=').unwrap_or((part, ""));
        let key = key.split_once(':');
        PathElem {
            name: name.to_owned(),
            key: key
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into_iter()
                .collect(),
        }
    });
    Path {
        elem: elem.collect(),
        ..Path::default()
    }
}

/// Requests of all kinds.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let paths = [
        "sync",
        "sync/groups/group=name:a/state",
        "sync/groups/group/values/value=location:1",
        "sync/groups/group=name:b/values-packed",
        "sync/groups/group=name:a/windows/window=number:5",
        ".../epoch",
        "*/*/group=name:*/.../value",
    ];
    let encodings = [Encoding::Json, Encoding::JsonIetf, Encoding::Proto];
    let mut inputs = Vec::new();
    let mut push = |kind: u8, message: Vec<u8>| inputs.push([vec![kind], message].concat());
    for (at, text) in paths.iter().enumerate() {
        let encoding = encodings[at % encodings.len()].into();
        let request = GetRequest {
            path: vec![path(text), path("sync/state/term")],
            encoding,
            ..GetRequest::default()
        };
        push(GET, request.encode_to_vec());
        for (mode, style) in [
            (Mode::Once, SubscriptionMode::TargetDefined),
            (Mode::Poll, SubscriptionMode::TargetDefined),
            (Mode::Stream, SubscriptionMode::OnChange),
            (Mode::Stream, SubscriptionMode::Sample),
        ] {
            let subscription = Subscription {
                path: Some(path(text)),
                mode: style.into(),
                sample_interval: match style {
                    SubscriptionMode::Sample => 5_000_000,
                    _ => 0,
                },
                heartbeat_interval: 20_000_000,
                ..Subscription::default()
            };
            let list = SubscriptionList {
                subscription: vec![subscription],
                mode: mode.into(),
                encoding,
                allow_aggregation: true,
                ..SubscriptionList::default()
            };
            let request = SubscribeRequest {
                request: Some(Request::Subscribe(list)),
                extension: Vec::new(),
            };
            push(SUBSCRIBE, request.encode_to_vec());
        }
    }
    inputs
}
