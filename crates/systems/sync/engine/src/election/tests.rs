//! Single steps of a candidate, and many candidates with clocks of their own and a slow store.

use super::*;

const DETECTION: u64 = 1_000_000;

fn candidate(now: u64, nonce: u64) -> Election {
    Election::new(
        now,
        ElectionSettings {
            nonce,
            address: format!("10.0.0.{nonce}:9560"),
            detection_us: DETECTION,
            least_term: 100,
        },
    )
}

fn holder(nonce: u64, term: u64) -> Holder {
    Holder {
        term,
        nonce,
        left: false,
        address: format!("10.0.0.{nonce}:9560"),
    }
}

/// The value that candidates share.
#[derive(Default)]
struct Store {
    revision: u64,
    holder: Option<Holder>,
    term: u64,
}

impl Store {
    fn answer(&mut self, request: &Request) -> Answer {
        let is_holder = |of: &Holder| self.holder.as_ref() == Some(of);
        let next = match request {
            Request::Look => {
                return Answer::Seen {
                    revision: self.revision,
                    holder: self.holder.clone(),
                    term: self.term,
                };
            }
            Request::Take { revision, holder } if *revision == self.revision => {
                assert!(holder.term > self.term, "{holder:?} after {}", self.term);
                self.term = holder.term;
                holder.clone()
            }
            Request::Renew { holder } if is_holder(holder) => holder.clone(),
            Request::Leave { holder } if is_holder(holder) => Holder {
                left: true,
                ..holder.clone()
            },
            _ => return Answer::Refused,
        };
        self.revision += 1;
        self.holder = Some(next);
        Answer::Done
    }
}

/// Lets a candidate have all answers at once.
fn settle(now: u64, election: &mut Election, store: &mut Store) -> Vec<Request> {
    let mut asked = Vec::new();
    while let Some(request) = election.poll_request(now) {
        let answer = store.answer(&request);
        election.handle_answer(now, answer);
        asked.push(request);
    }
    asked
}

#[test]
fn the_first_leads_at_once_and_the_second_when_the_first_is_silent() {
    let mut store = Store::default();
    let (mut first, mut second) = (candidate(0, 1), candidate(0, 2));
    settle(0, &mut first, &mut store);
    assert_eq!(first.leads(0), Some(100));
    settle(0, &mut second, &mut store);
    assert_eq!(second.leads(0), None);
    assert_eq!(second.leader().map(|it| it.nonce), Some(1));
    for now in (0..3 * DETECTION).step_by(10_000) {
        settle(now, &mut first, &mut store);
        settle(now, &mut second, &mut store);
        assert_eq!((first.leads(now), second.leads(now)), (Some(100), None));
    }
    // It is driven no more; its lease ends before the other leads.
    let silent = 3 * DETECTION;
    let led = (silent..).step_by(1_000).find(|now| {
        settle(*now, &mut second, &mut store);
        assert!(first.leads(*now).is_none() || second.leads(*now).is_none());
        second.leads(*now).is_some()
    });
    let led = led.expect("a leader");
    assert_eq!(second.leads(led), Some(101));
    assert!(led <= silent + DETECTION + DETECTION / 8, "{led}");
    // One that comes back finds the other.
    assert!(!settle(led, &mut first, &mut store).is_empty());
    assert_eq!(first.leads(led), None);
    assert_eq!(first.leader().map(|it| it.nonce), Some(2));
}

/// An answer that comes when the lease is over does not bring it back: work under this term has ended.
#[test]
fn a_lease_that_is_over_is_not_renewed() {
    let mut store = Store::default();
    let mut election = candidate(0, 1);
    settle(0, &mut election, &mut store);
    let sent = DETECTION / 2;
    let renew = election.poll_request(sent).expect("a renewal");
    let answer = store.answer(&renew);
    assert_eq!(election.leads(DETECTION), None);
    election.handle_answer(DETECTION, answer);
    assert_eq!(election.leads(DETECTION), None);
    settle(DETECTION, &mut election, &mut store);
    assert_eq!(election.leads(DETECTION), Some(101));
}

#[test]
fn one_that_leaves_is_followed_at_once_and_takes_nobodys_place() {
    let mut store = Store::default();
    let (mut first, mut second) = (candidate(0, 1), candidate(0, 2));
    settle(0, &mut first, &mut store);
    settle(0, &mut second, &mut store);
    first.leave(5);
    assert_eq!((first.leads(5), first.has_left()), (None, false));
    let asked = settle(5, &mut first, &mut store);
    assert_eq!(
        asked,
        [Request::Leave {
            holder: holder(1, 100)
        }]
    );
    assert!(first.has_left());
    assert_eq!(first.poll_timeout(), None);
    let next = DETECTION / LOOKS;
    settle(next, &mut second, &mut store);
    assert_eq!(second.leads(next), Some(101));
    assert_eq!(settle(10 * DETECTION, &mut first, &mut store), []);
}

#[test]
fn a_lease_that_the_store_did_not_renew_ends_and_the_next_term_is_another() {
    let mut store = Store::default();
    let mut only = candidate(0, 1);
    settle(0, &mut only, &mut store);
    let mut now = 0;
    while only.leads(now).is_some() {
        now += 1_000;
        while only.poll_request(now).is_some() {
            only.handle_answer(now, Answer::Failed);
        }
    }
    let last = DETECTION - DETECTION / DRIFT;
    assert!((last..last + 1_000).contains(&now), "{now}");
    // The store answers again: nobody else was there.
    now += DETECTION;
    settle(now, &mut only, &mut store);
    assert_eq!(only.leads(now), Some(101));
    // An answer that came too late gives no lease.
    now += DETECTION / RENEWALS;
    let request = only.poll_request(now).expect("a renewal");
    let answer = store.answer(&request);
    only.handle_answer(now + DETECTION, answer);
    assert_eq!(only.leads(now + DETECTION), None);
}

#[test]
fn a_term_beyond_that_of_a_switch_is_taken_and_a_lost_place_is_given_up() {
    let mut store = Store::default();
    let mut only = candidate(0, 1);
    settle(0, &mut only, &mut store);
    only.exceed(1, 90);
    assert_eq!(only.leads(1), Some(100));
    only.exceed(1, 5_000);
    assert_eq!(only.leads(1), None);
    settle(1, &mut only, &mut store);
    assert_eq!(only.leads(1), Some(5_001));
    only.lost(2);
    assert_eq!(only.leads(2), None);
    // Another took the place meanwhile.
    store.holder = Some(holder(2, 6_000));
    store.revision += 1;
    store.term = 6_000;
    settle(2, &mut only, &mut store);
    assert_eq!(
        (only.leads(2), only.leader()),
        (None, store.holder.as_ref())
    );
}

/// A generator of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A candidate with a clock that is fast or slow by up to one part in 80, so that two differ by less
/// than one in 32.
struct Node {
    election: Election,
    offset: u64,
    rate: u64,
    /// The message under way: the request, when the store has it, and when the answer is there.
    open: Option<(Option<Request>, u64, Answer, u64)>,
    sleeps_until: u64,
}

impl Node {
    fn local(&self, now: u64) -> u64 {
        self.offset + now * self.rate / 8_000
    }
}

#[test]
fn no_two_lead_at_one_moment_whatever_is_late_lost_or_asleep() {
    let (mut leaders, mut takeovers) = (0, 0);
    for seed in 1..=40 {
        let mut random = Numbers(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut store = Store::default();
        let mut nodes: Vec<Node> = (1..=3)
            .map(|nonce| {
                let (offset, rate) = (random.below(1 << 40), 7_900 + random.below(200));
                Node {
                    election: candidate(offset, nonce),
                    offset,
                    rate,
                    open: None,
                    sleeps_until: 0,
                }
            })
            .collect();
        let (mut last, mut late) = (None, Vec::<(u64, Request)>::new());
        for now in (0..40 * DETECTION).step_by(2_000) {
            late.retain(|(at, request)| {
                if now >= *at {
                    store.answer(request);
                }
                now < *at
            });
            for node in &mut nodes {
                // The store works whether or not the process does.
                if let Some((request, at, answer, _)) = &mut node.open
                    && now >= *at
                    && let Some(request) = request.take()
                {
                    let said = store.answer(&request);
                    if *answer != Answer::Failed {
                        *answer = said;
                    }
                }
                if now < node.sleeps_until {
                    continue;
                }
                if random.below(3_000) == 0 {
                    node.sleeps_until = now + random.below(4 * DETECTION);
                }
                let local = node.local(now);
                let has_come = |open: &mut (Option<Request>, u64, Answer, u64)| now >= open.3;
                if let Some((.., answer, _)) = node.open.take_if(has_come) {
                    node.election.handle_answer(local, answer);
                }
                if let Some(request) = node.election.poll_request(local) {
                    assert!(node.open.is_none(), "one request at a time");
                    let there = now + random.below(20_000);
                    let slowest = if random.below(20) == 0 {
                        DETECTION
                    } else {
                        20_000
                    };
                    let back = there + random.below(slowest);
                    node.open = Some(match random.below(10) {
                        0 => (None, there, Answer::Failed, back),
                        1 => (Some(request), there, Answer::Failed, back),
                        2 => {
                            // The store does it when the candidate has given it up.
                            late.push((back + random.below(2 * DETECTION), request));
                            (None, there, Answer::Failed, back)
                        }
                        _ => (Some(request), there, Answer::Refused, back),
                    });
                }
            }
            let leading = nodes
                .iter()
                .enumerate()
                .filter_map(|(at, node)| Some((at, node.election.leads(node.local(now))?)));
            let leading: Vec<_> = leading.collect();
            assert!(leading.len() <= 1, "seed {seed}, {now} µs: {leading:?}");
            if let Some((at, term)) = leading.first().copied() {
                leaders += 1;
                if let Some((before, greatest)) = last {
                    assert!(term >= greatest, "seed {seed}, {now} µs");
                    takeovers += u64::from(before != at);
                }
                last = Some((at, term));
            }
        }
    }
    assert!(
        leaders > 400_000 && takeovers > 100,
        "{leaders} {takeovers}"
    );
}
