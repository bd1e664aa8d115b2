//! `stateplane lab up --detach`, and the commands that enter such a lab, make its nodes fail, bring
//! them back and take it down (needs root; passes with a message otherwise).
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::time::Duration;
use support::namespaces::apart;
use support::{Running, errors, missing};

const SCRIPT: &str = r#"
set -eu
stateplane init --example first
stateplane init first/limiter.p4 --deployment first/deployment.toml --output first/run
stateplane lab up first/network.toml --detach
state() { echo "$1 $(stateplane lab exec switch1 ip -br link show eth0 | awk '{ print $2 }')"; }
refused() { code=0; "$@" || code=$?; echo "refused with $code"; }
state begins
stateplane lab fail switch1
state failed
refused stateplane lab fail nothing
stateplane lab recover switch1
# The system tells the state of a link some time after it changed.
for _ in $(seq 50); do case "$(state now)" in *UP) break ;; esac; sleep 0.1; done
state recovered
sleep 100 & other=$!
started=$(cut -d ' ' -f 22 /proc/$other/stat)
echo "{\"prefix\":\"sp${other}n0\",\"topology\":\"other\",\"owner\":$other,\"started\":$started}" > /run/stateplane-lab/sp${other}n0
state beside-the-lab-of-another-command:
stateplane lab down
kill -0 $other && echo "the other command runs on"
refused stateplane lab exec switch1 true
refused stateplane lab recover switch1
refused stateplane lab up first/network.toml --detach --variant none
stateplane lab down --all
echo "$(ls /run/netns | wc -l) namespaces, $(ls /run/stateplane-lab | wc -l) records"
"#;

#[test]
fn nodes_of_a_lab_that_stands_fail_and_come_back() {
    if let Some(missing) = missing(&["ip", "ethtool", "bash", "unshare"]) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = apart(SCRIPT);
    command.current_dir(folder.path());
    let output = Running::start(&mut command).finish(Duration::from_secs(120));
    let said = String::from_utf8_lossy(&output.stdout);
    let context = format!("{said}\n{}", errors(&output));
    assert!(output.status.success(), "{context}");
    let told = [
        "first is up; `stateplane lab down` takes it down",
        "begins UP",
        "failed DOWN",
        "refused with 2",
        "recovered UP",
        "beside-the-lab-of-another-command: UP",
        "1 lab taken down",
        "the other command runs on",
        "refused with 4",
        "refused with 4",
        "refused with 2",
        "1 lab taken down",
        "0 namespaces, 0 records",
    ];
    let mut lines = said.lines();
    for line in told {
        assert!(
            lines.any(|said| said == line),
            "no {line:?} in its place in: {context}"
        );
    }
    for reason in ["no node `nothing`", "no lab stands", "no variant `none`"] {
        assert!(
            errors(&output).contains(reason),
            "no {reason:?} in: {context}"
        );
    }
}
