//! Histories as hosts tell them, and that the checkers see through them.

use super::record::{events, history, last_node};
use super::report::{Counts, violations};
use super::{Event, EventKind, History, view};
use stateplane_history::multicast::checkers;

const SENDER: &str = "10 sent node=1000 message=4294967297 to=0,1 digest=a1
20 completed node=1000 message=4294967297
20 sent node=1000 message=4294967298 to=0 digest=a2
40 completed node=1000 message=4294967298
";
const RECEIVER: &str = "5 joined node=2000 group=0 after=0
# listed
15 fills node=2000 group=0 what=queue count=1
16 delivered node=2000 group=0 message=4294967297 at=7:1 digest=a1
30 delivered node=2000 group=0 message=4294967298 at=9:0 digest=a2
";
const OTHER: &str = "6 joined node=3000 group=1 after=0
18 delivered node=3000 group=1 message=4294967297 at=7:1 digest=a1
";

fn read(texts: &[&str]) -> History {
    let mut all: Vec<Event> = Vec::new();
    for text in texts {
        all.extend(events(text).unwrap());
    }
    all.extend(events("35 whole\n").unwrap());
    history(all, 1000, 1024)
}

#[test]
fn lines_of_all_hosts_are_one_history() {
    let history = read(&[SENDER, RECEIVER, OTHER]);
    assert!(history.events.is_sorted_by_key(|event| event.at));
    assert_eq!(violations(&history), [""; 0]);
    let counts = Counts::of(&history);
    assert_eq!((counts.sent, counts.completed, counts.joined), (2, 2, 2));
    assert_eq!((counts.delivered, counts.longest_queue), (3, 1));
}

#[test]
fn a_message_that_a_receiver_lacks_is_a_violation() {
    let found = violations(&read(&[
        SENDER,
        RECEIVER,
        "6 joined node=3000 group=1 after=0\n",
    ]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(checkers::AGREEMENT), "{found:?}");
    // One that was listed behind its place is not owed it.
    let later = OTHER.replace("18 delivered", "# 18 delivered");
    let later = later.replace("after=0", "after=7");
    assert_eq!(violations(&read(&[SENDER, RECEIVER, &later])), [""; 0]);
}

#[test]
fn a_place_that_falls_is_a_violation() {
    let falls = RECEIVER.replace("at=9:0", "at=6:0");
    let found = violations(&read(&[SENDER, &falls, OTHER]));
    assert!(
        found.iter().any(|it| it.contains(checkers::FINALS)),
        "{found:?}"
    );
}

#[test]
fn a_message_is_sent_before_another_is_complete_in_the_same_microsecond() {
    let history = read(&[SENDER, RECEIVER, OTHER]);
    let at_20 = history.events.iter().filter(|event| event.at == 20);
    let lines: Vec<String> = at_20.map(ToString::to_string).collect();
    assert!(lines[0].contains("sent"), "{lines:?}");
}

#[test]
fn half_a_line_of_a_host_that_was_killed_is_left_out() {
    let cut = &RECEIVER[..RECEIVER.len() - 20];
    let of = events(cut).unwrap();
    assert_eq!(of.len(), 3);
    assert_eq!(last_node(&of), Some(2000));
    assert_eq!(last_node(&[]), None);
    let again =
        format!("{RECEIVER}50 left node=2000 group=0\n60 joined node=2001 group=0 after=9\n");
    assert_eq!(last_node(&events(&again).unwrap()), Some(2001));
    assert!(events("5 joined node=2000\n").is_err());
    assert_eq!(
        events("9 died node=1\n").unwrap(),
        [Event {
            at: 9,
            kind: EventKind::Died { node: 1 }
        }]
    );
}

#[test]
fn the_status_of_the_controller_is_read() {
    assert_eq!(view("no JSON"), None);
    assert_eq!(view("{}"), None);
    let said = serde_json::json!({
        "controller": "10.30.0.20",
        "multicast": stateplane_host::controller::MulticastView {
            settled: true,
            ..Default::default()
        },
    });
    assert!(view(&said.to_string()).is_some_and(|view| view.settled));
}

const CLIENT: &str = "10 call node=4000 operation=1 request=put key=k0 value=v1
25 return node=4000 operation=1 outcome=done
30 call node=4000 operation=2 request=get key=k0
31 return node=4000 operation=2 outcome=values values=v1
";
const REPLICA: &str = "5 joined node=5000 group=0 after=0
# listed
# ready
10 executed node=5000 group=0 operation=1 at=7:0
31 executed node=5000 group=0 operation=2 at=9:0
";

/// An operation counts as executed behind its call and before its answer, in one microsecond too.
#[test]
fn lines_of_replicas_and_clients_are_one_history() {
    let history = read(&[REPLICA, CLIENT]);
    assert_eq!(violations(&history), [""; 0]);
    let counts = Counts::of(&history);
    assert_eq!((counts.called, counts.answered), (2, 2));
    assert_eq!((counts.joined, counts.sent), (1, 0));
    assert!(counts.to_string().contains("2 called, 2 answered"));
    let lines: Vec<String> = history.events.iter().map(ToString::to_string).collect();
    let at = |word: &str| lines.iter().position(|line| line.contains(word));
    assert!(at("10 call") < at("10 executed") && at("31 executed") < at("31 return"));
    assert_eq!(last_node(&events(REPLICA).unwrap()), Some(5000));
}

#[test]
fn wrong_answers_and_missing_ones_are_violations() {
    let names = |client: &str, replica: &str| {
        let found = violations(&read(&[replica, client]));
        let names = checkers::NAMES.into_iter();
        let named =
            names.filter(|name| found.iter().any(|it| it.starts_with(&format!("{name}: "))));
        named.collect::<Vec<_>>()
    };
    let wrong = CLIENT.replace("values=v1", "values=v2");
    assert_eq!(names(&wrong, REPLICA), [checkers::SERIAL]);
    let silent = CLIENT.replace("31 return", "# 31 return");
    assert_eq!(names(&silent, REPLICA), [checkers::ENDS]);
    // The get, which was called when the put was answered, does not see it.
    let early = "5 joined node=5000 group=0 after=0
30 executed node=5000 group=0 operation=2 at=6:0
30 executed node=5000 group=0 operation=1 at=7:0
";
    let missing = CLIENT.replace("values=v1", "values=-");
    assert_eq!(names(&missing, early), [checkers::STRICT]);
}
