//! Histories as lines, and that the checkers see through them.

use super::{Finished, Line, history};
use stateplane_history::coordination::{History, checkers};

const WRITE: &str = r#"{"event":"operation","client":1,"operation":1,"group":"g0","key":"k0","ask":"write","write":"0a","session":1,"handle":0,"invoked_ns":1000,"until_ns":9000000,"responded_ns":5000,"outcome":"done","number":281474976710657,"record":"value","record_number":281474976710657,"value":"0a"}"#;
const READ: &str = r#"{"event":"operation","client":2,"operation":2,"group":"g0","key":"k0","ask":"read","session":1,"handle":1,"invoked_ns":6000,"until_ns":9000000,"responded_ns":7000,"outcome":"done","number":281474976710657,"record":"value","record_number":281474976710657,"value":"0a"}"#;
const WHOLE: &str = r#"{"event":"whole","at_ns":7500,"groups":["g0"],"serves_within_ns":2000000}"#;

fn read(lines: &[&str]) -> History {
    let lines: Vec<Line> = lines
        .iter()
        .map(|line| {
            let read: Line = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), *line);
            read
        })
        .collect();
    history(&lines).unwrap()
}

fn objections(history: &History) -> Vec<&'static str> {
    let found = checkers::judge(history).into_iter();
    found.map(|violation| violation.checker).collect()
}

#[test]
fn a_read_behind_its_write_is_right() {
    let history = read(&[READ, WRITE, WHOLE]);
    assert_eq!(history.events.len(), 5);
    assert!(history.events.is_sorted_by_key(|event| event.at));
    assert_eq!(objections(&history), [""; 0]);
}

#[test]
fn a_read_that_misses_a_write_is_a_violation() {
    let absent = READ.replace(
        r#""outcome":"done","number":281474976710657,"record":"value","record_number":281474976710657,"value":"0a""#,
        r#""outcome":"absent","number":0,"record":"none","record_number":0"#,
    );
    // A read that shows no entry comes before all of them.
    assert!(objections(&read(&[WRITE, &absent])).contains(&checkers::NUMBERS));
    // With the same number, one of the two answers does not tell what the log holds.
    let other = READ.replace(r#""value":"0a""#, r#""value":"0b""#);
    assert!(objections(&read(&[WRITE, &other])).contains(&checkers::LINEARIZABLE));
}

#[test]
fn a_write_given_up_may_have_taken_effect_or_not() {
    let unknown = WRITE
        .replace(r#""responded_ns":5000,"outcome":"done","number":281474976710657,"record":"value","record_number":281474976710657,"value":"0a""#,
            r#""unknown_ns":5000,"responded_ns":null,"outcome":"unknown","number":0"#);
    assert_eq!(objections(&read(&[&unknown, READ])), [""; 0]);
    let absent = READ.replace(
        r#""outcome":"done","number":281474976710657,"record":"value","record_number":281474976710657,"value":"0a""#,
        r#""outcome":"absent","number":0,"record":"none","record_number":0"#,
    );
    assert_eq!(objections(&read(&[&unknown, &absent])), [""; 0]);
}

#[test]
fn a_group_that_is_silent_after_the_faults_is_a_violation() {
    let late = READ
        .replace("\"invoked_ns\":6000", "\"invoked_ns\":8000")
        .replace("\"responded_ns\":7000", "\"responded_ns\":8000000");
    assert_eq!(
        objections(&read(&[WRITE, &late, WHOLE])),
        [checkers::SERVES]
    );
}

#[test]
fn lines_that_tell_no_operation_are_refused() {
    for (from, to) in [
        ("\"0a\",\"session\"", "\"0\",\"session\""),
        ("\"done\"", "\"maybe\""),
        ("\"record\":\"value\"", "\"record\":\"stone\""),
        (",\"write\":\"0a\"", ""),
    ] {
        let line: Line = serde_json::from_str(&WRITE.replace(from, to)).unwrap();
        assert!(history(&[line]).is_err(), "{to}");
    }
}

/// A list by client 2 of group g0, whose only record is written meanwhile.
const LIST: [&str; 4] = [
    r#"{"event":"scan","at_ns":500,"client":2,"group":"g0","list":9,"scanned":"begin","number":0}"#,
    r#"{"event":"scan","at_ns":800,"client":2,"group":"g0","list":9,"scanned":"nothing","number":0}"#,
    r#"{"event":"scan","at_ns":7000,"client":2,"group":"g0","list":9,"scanned":"nothing","number":281474976710657}"#,
    r#"{"event":"scan","at_ns":7000,"client":2,"group":"g0","list":9,"scanned":"end","number":281474976710657}"#,
];

#[test]
fn a_list_may_lack_a_record_that_was_written_behind_its_first_answer() {
    let [begin, before, behind, end] = LIST;
    let lines = [begin, before, WRITE, READ, behind, end];
    assert_eq!(objections(&read(&lines)), [""; 0]);
    // Without its first answer the list would seem to have begun behind the write.
    let lines = [begin, WRITE, READ, behind, end];
    assert_eq!(objections(&read(&lines)), [checkers::LISTS]);
}

/// A watch by client 3 of group g0, which tells the write.
const WATCH: [&str; 3] = [
    r#"{"event":"told","at_ns":500,"client":3,"group":"g0","told":"begin","number":281474976710657}"#,
    r#"{"event":"told","at_ns":4000,"client":3,"group":"g0","told":"put","number":281474976710657,"key":"k0","value":"0a"}"#,
    r#"{"event":"told","at_ns":9000,"client":3,"group":"g0","told":"end","number":281474976710658}"#,
];

#[test]
fn a_watch_that_keeps_a_change_back_or_tells_it_twice_is_a_violation() {
    let [begin, put, end] = WATCH;
    assert_eq!(objections(&read(&[begin, WRITE, put, end])), [""; 0]);
    assert_eq!(objections(&read(&[begin, WRITE, end])), [checkers::WATCHES]);
    assert_eq!(
        objections(&read(&[begin, WRITE, put, put, end])),
        [checkers::WATCHES]
    );
    let other = put.replace("\"0a\"", "\"0b\"");
    assert_eq!(
        objections(&read(&[begin, WRITE, &other, end])),
        [checkers::WATCHES]
    );
    let nothing: Line = serde_json::from_str(&put.replace("put", "pat")).unwrap();
    assert!(history(&[nothing]).is_err());
}

#[test]
fn a_group_that_serves_and_is_not_watched_is_told() {
    let finished = |lines: &[&str]| {
        let lines: Vec<Line> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        Finished {
            history: history(&lines).unwrap(),
            lines,
            lost: Vec::new(),
        }
    };
    let [begin, ..] = WATCH;
    let both = WHOLE.replace(r#"["g0"]"#, r#"["g0","g1"]"#);
    let run = finished(&[begin, WRITE, &both]);
    assert_eq!(run.unwatched().collect::<Vec<_>>(), ["g1"]);
    // Nothing is asked of a group that is lost.
    let run = finished(&[begin, WRITE, WHOLE]);
    assert_eq!(run.unwatched().count(), 0);
}
