//! Lists that are refused, large views, and what holds for any course of events.

use proptest::prelude::*;

use super::*;

#[test]
fn a_large_view_leaves_in_batches() {
    let groups = [GroupInfo {
        name: "packets".into(),
        locations: 3_000,
    }];
    let list = list(Mode::Once, &[of(VALUES, SubscriptionMode::TargetDefined)]);
    let mut subscriptions = Subscriptions::new(&request(list), &groups).expect("good");
    let mut facts = facts(Some(&[7; 3_000]), None);
    facts.groups.truncate(1);
    let mut sizes = Vec::new();
    for _ in 0..2 {
        subscriptions
            .handle_facts(Moment::default(), &facts)
            .expect("it goes on");
        while let Some(message) = subscriptions.poll_transmit() {
            if let Some(Response::Update(notification)) = message.response {
                sizes.push(notification.update.len());
            }
        }
    }
    assert_eq!(sizes, [1_024, 1_024, 952]);
    assert!(subscriptions.is_finished());
}

#[test]
fn wrong_lists_are_refused() {
    let refused = |list: SubscriptionList| {
        let refused = Subscriptions::new(&request(list), &groups());
        refused.expect_err("a wrong list").status
    };
    let stream = |subscription| list(Mode::Stream, &[subscription]);
    let short = Subscription {
        sample_interval: 999_999 - 999,
        ..of(VALUES, SubscriptionMode::Sample)
    };
    let beat = Subscription {
        heartbeat_interval: 1,
        ..of(VALUES, SubscriptionMode::OnChange)
    };
    let target = Subscription {
        sample_interval: 10 * MS,
        ..of(VALUES, SubscriptionMode::TargetDefined)
    };
    let unknown = Subscription {
        mode: 9,
        ..of(VALUES, SubscriptionMode::OnChange)
    };
    for wrong in [
        short,
        beat,
        target,
        unknown,
        of("/colour", SubscriptionMode::OnChange),
    ] {
        assert_eq!(refused(stream(wrong)), tonic::Code::InvalidArgument);
    }
    assert_eq!(refused(list(Mode::Once, &[])), tonic::Code::InvalidArgument);
    let mut ascii = stream(of(VALUES, SubscriptionMode::OnChange));
    ascii.encoding = Encoding::Ascii.into();
    assert_eq!(refused(ascii), tonic::Code::Unimplemented);
    let nothing = SubscribeRequest::default();
    assert!(Subscriptions::new(&nothing, &groups()).is_err());
    let mut stream = Bench::new(stream(of(VALUES, SubscriptionMode::OnChange)));
    let poll = SubscribeRequest {
        request: Some(Request::Poll(Poll {})),
        extension: Vec::new(),
    };
    assert!(stream.subscriptions.handle_request(&poll).is_err());
}

proptest! {
    /// A client that applies what it is told has the engine's values at each look, and none of a
    /// view that is incomplete.
    #[test]
    fn who_applies_what_is_told_has_the_view(
        steps in prop::collection::vec(
            (1u64..30_000, prop::option::weighted(0.9, prop::array::uniform3(0u64..4)), any::<bool>()),
            1..60,
        ),
        sample in any::<bool>(),
        heartbeat in prop::option::of(1u64..60),
    ) {
        let mut subscription = if sample {
            sampled(VALUES, 7)
        } else {
            of(VALUES, SubscriptionMode::OnChange)
        };
        subscription.suppress_redundant = true;
        subscription.heartbeat_interval = heartbeat.unwrap_or(0) * MS;
        let mut bench = Bench::new(list(Mode::Stream, &[subscription]));
        let (mut known, mut generation) = (std::collections::BTreeMap::new(), 1);
        for (wait, values, is_anew) in steps {
            generation += u64::from(is_anew);
            bench.facts = facts(values.as_ref().map(|it| &it[..]), None);
            if values.is_some() {
                bench.facts.groups[0].told = Some(told(generation));
            }
            // Within a look all of it has been told.
            let until = bench.now + LOOK_US + wait;
            for said in bench.pass(until) {
                if said == "-values" {
                    known.clear();
                } else if let Some((path, value)) = said.rsplit_once('=') {
                    known.insert(path.to_owned(), value.to_owned());
                }
            }
            let expected = values.map_or(Vec::new(), all);
            let held: Vec<String> = known.iter().map(|(path, value)| format!("{path}={value}")).collect();
            prop_assert_eq!(held, expected);
        }
    }
}
