//! `stateplane kv` and `stateplane ctl coordination` against four switches that run the program that
//! ships, in network namespaces (needs root; passes with a message otherwise).
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use support::namespaces::apart;
use support::{Running, errors, missing, repository};

/// Each command writes a line: its name, its exit code, and what it said, in one line.
const SCRIPT: &str = r#"
set -u
stateplane lab up "$LAB/coordination.toml" --detach --logs logs || exit 1
kv() { stateplane lab exec host -- stateplane kv --controller 10.20.0.20 "$@"; }
ctl() {
    stateplane lab exec ctl -- \
        stateplane ctl coordination --config logs/coordination/controller.toml "$@"
}
say() {
    local name=$1 code=0 said
    shift
    said=$("$@") || code=$?
    echo "$name $code $(echo -n "$said" | tr '\n\t' "${ends:-;},")"
}
say whole ctl wait 30
say absent kv get lamp
say put kv put lamp on
say get kv get lamp
say chain kv get --chain lamp
say stale kv get --stale lamp
say exists kv put --absent lamp off
say mismatch kv cas lamp off on
say cas kv cas lamp on off
say json kv --json get lamp
say guarded kv put --number 1 lamp late
say token kv put --token 9 fenced new
say fenced kv put --token 8 fenced old
say name kv put "" x
long=shelf/a-name-longer-than-a-key
say long kv put $long "$(printf %0900d 7)"
say short kv put shelf/1 one
say list kv list shelf/
say empty kv list nothing/
say wrong-kind kv lock --try lamp -- true
kv lock backup -- sh -c 'echo "$STATEPLANE_LOCK" "$STATEPLANE_TOKEN"; echo > held; cat wait; exit 33' \
    > lock.out &
lock=$!
kv session --lanes 3 -- sh -c 'echo > open; cat wait' > session.out &
session=$!
mkfifo wait
until [ -e held ] && [ -e open ]; do sleep 0.05; done
say taken kv lock --try backup -- true
say waited kv lock --wait 0.2 backup -- true
say sessions kv session --list
ends=' '
say owned ctl --json sessions
say fill ctl --json fill
say digests ctl --json digests
ends=
kv watch lamp --count 4 > watch.out &
watch=$!
until [ -s watch.out ]; do sleep 0.05; done
say red kv put lamp red
say deleted kv del lamp
say again kv del lamp
say green kv put lamp green
wait $watch
echo "watched $? $(tr '\n\t' ';,' < watch.out)"
: > wait & wait $lock
echo "locked $? $(tr '\n' ';' < lock.out)"
: > wait & wait $session
echo "session $? $(tr '\n' ';' < session.out)"
say free kv lock --try backup -- true
stateplane lab exec host -- nft add table inet cut
stateplane lab exec host -- nft add chain inet cut in '{ type filter hook input priority 0; }'
stateplane lab exec host -- nft add rule inet cut in udp sport 4797 drop
say unread kv --timeout 0.5 get lamp
say unknown kv --timeout 0.5 put lamp blue
stateplane lab exec host -- nft delete table inet cut
say known kv get lamp
stateplane lab down
"#;

/// Result of each command: its exit code, and its words.
struct Told(BTreeMap<String, (String, String)>);

impl Told {
    fn is(&self, name: &str, code: u8, words: &str) {
        let (got, said) = &self.0[name];
        assert_eq!(
            (got.as_str(), said.as_str()),
            (&*code.to_string(), words),
            "{name}"
        );
    }

    fn ends(&self, name: &str, code: u8) -> &str {
        let (got, said) = &self.0[name];
        assert_eq!(*got, code.to_string(), "{name}: {said}");
        said
    }

    fn rows(&self, name: &str) -> Vec<Value> {
        serde_json::from_str(self.ends(name, 0)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

fn sum(rows: &[Value], field: &str) -> u64 {
    rows.iter()
        .map(|row| row[field].as_u64().expect(field))
        .sum()
}

#[test]
fn the_command_line_serves_itself_from_switches() {
    if let Some(missing) = missing(&["ip", "ethtool", "bridge", "bash", "unshare", "nft"]) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = apart(SCRIPT);
    command
        .env("LAB", repository().join("lab").canonicalize().expect("lab"))
        .current_dir(folder.path());
    let output = Running::start(&mut command).finish(Duration::from_secs(240));
    let said = String::from_utf8_lossy(&output.stdout);
    let context = format!("{said}\n{}", errors(&output));
    assert!(output.status.success(), "{context}");
    eprintln!("{context}");
    let lines = said.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        let name = words.next()?.to_owned();
        let code = words.next()?.to_owned();
        Some((name, (code, words.next().unwrap_or_default().to_owned())))
    });
    let told = Told(lines.collect());
    records(&told);
    locks(&told);
    surveys(&told);
}

fn records(told: &Told) {
    told.ends("whole", 0);
    told.is("absent", 1, "");
    told.ends("put", 0);
    for read in ["get", "chain", "stale"] {
        told.is(read, 0, "on");
    }
    for refused in ["exists", "mismatch", "guarded", "fenced"] {
        told.ends(refused, 5);
    }
    told.ends("cas", 0);
    assert!(told.ends("json", 0).contains(r#""value":"off""#));
    told.ends("token", 0);
    told.ends("name", 2);
    told.ends("long", 0);
    let value = format!("{:0900}", 7);
    let listed = format!("shelf/1,one;shelf/a-name-longer-than-a-key,{value}");
    told.is("list", 0, &listed);
    told.is("empty", 0, "");
    // The first line is the record as it was.
    let watched = told.ends("watched", 0);
    let changes: Vec<&str> = watched
        .split_terminator(';')
        .filter_map(|line| line.split_once(',').map(|(_, change)| change))
        .collect();
    assert_eq!(changes, ["put,off", "put,red", "deleted", "put,green"]);
    told.ends("again", 1);
    // Nothing answers: a read changed nothing, of a write nobody knows.
    told.ends("unread", 4);
    told.ends("unknown", 7);
    told.is("known", 0, "blue");
}

fn locks(told: &Told) {
    told.ends("wrong-kind", 2);
    told.ends("taken", 6);
    told.ends("waited", 6);
    let held = told.ends("locked", 33);
    let token = held
        .strip_prefix("backup ")
        .and_then(|it| it.strip_suffix(';'));
    assert!(
        token.is_some_and(|it| it.parse::<u64>().is_ok_and(|it| it > 0)),
        "{held}"
    );
    let session = told.ends("session", 0);
    assert!(
        session.contains(" connected;") && session.ends_with(" closed;"),
        "{session}"
    );
    told.ends("free", 0);
}

fn surveys(told: &Told) {
    let fill = told.rows("fill");
    assert_eq!(fill.len(), 64);
    assert!(fill.iter().all(|row| row["places"] == 1024), "{fill:?}");
    assert_eq!(sum(&fill, "locks"), 1);
    let owned = told.rows("owned");
    let alive: Vec<&Value> = owned.iter().filter(|row| row["state"] == "alive").collect();
    // The holder's session, the one that is kept, and the reaper's; and four records. The sessions of
    // the three who did not get a lock are closed, and a reaper removes them meanwhile.
    assert_eq!(alive.len(), 3, "{owned:?}");
    assert!((7..=10).contains(&sum(&fill, "values")), "{fill:?}");
    let digests = told.rows("digests");
    assert_eq!(digests.len(), 64);
    for row in &digests {
        assert_eq!(row["outcome"], "same", "{row}");
        // A group that lost a switch for want of a processor may wait for another one.
        let members = row["members"].as_array().map_or(0, Vec::len);
        assert!((2..=3).contains(&members), "{row}");
    }
    assert!((8..=11).contains(&sum(&digests, "records")), "{digests:?}");
    assert_eq!(alive.iter().filter(|row| row["locks"] == 1).count(), 1);
    assert_eq!(alive.iter().filter(|row| row["lanes"] == 3).count(), 1);
    let listed = told.ends("sessions", 0);
    for row in alive {
        let number = format!("{},", row["session"]);
        let named = listed.split(';').any(|line| line.starts_with(&number));
        assert!(named, "{number} in {listed}");
    }
}
