//! One run of a scenario.

use super::figures::Lives;
use super::list::{Scenario, Sketches};
use super::report::{FaultReport, Move, ScenarioReport};
use super::sessions::{self, Talk};
use super::sketch::{self, Death, Merged};
use super::{Fault, Options, view};
use crate::agent::hosts::HostsReport;
use crate::agent::{client::ClientReport, now_us};
use crate::error::LabError;
use crate::process::Process;
use crate::running::{Lab, Setting};
use crate::topology::{DISKS, Topology};
use crate::{agent, interrupt};
use stateplane_apps::heavy_hitter::TENANTS;
use stateplane_apps::judged;
use stateplane_history::replication::{Document, EventKind, History, judge};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time until all hosts send and all flows have their leases.
const SETTLING: Duration = Duration::from_millis(2500);
const ENDING: Duration = Duration::from_secs(5);
const HOSTS: &str = "hosts";
/// The last server of the chain.
const TAIL: &str = "st2";
/// From a move to the time from which no packet may be lost any more, in µs: that in which a
/// switch that lives gives up its leases, or a dead one's terms end, with transmissions that are
/// repeated.
const AFTER_MOVE: u64 = 500_000;
/// Time in which switches replicate their last counts.
const LAST_SNAPSHOTS: Duration = Duration::from_secs(3);

/// About how long the hosts speak, in milliseconds.
pub(super) fn longest_ms(options: &Options) -> u64 {
    let phase = Duration::from_millis(options.phase_ms);
    let faults: Duration = options.faults.iter().map(|it| it.duration(phase)).sum();
    let besides = 1000 * options.faults.len() as u64;
    (SETTLING + faults).as_millis() as u64 + besides
}

/// Brings the scenario's variant up, lets the faults happen and takes it down.
pub(super) fn run(
    topology: &Topology,
    options: &Options,
    scenario: &Scenario,
) -> Result<ScenarioReport, LabError> {
    eprintln!("{}: building", scenario.name);
    let program =
        std::env::current_exe().map_err(|reason| LabError::file("/proc/self/exe", reason))?;
    let setting = Setting {
        variant: scenario.name.to_owned(),
        directory: options.logs.join(format!("run-{}", scenario.name)),
        stateplane: program,
        keys: false,
    };
    let mut network = topology.clone();
    network.set_switch_workers(options.switch_workers);
    if options.faults.contains(&Fault::PowerCut) {
        network.give_disks();
        forget(&setting.directory.join(DISKS))?;
    }
    let mut lab = Lab::up(network, &setting)?;
    let command = |words: &[&str]| agent::command(&setting.stateplane, words);
    let mut talk = None;
    if let Some(sessions) = &scenario.sessions {
        talk = Some(Talk::begin(&lab, sessions, command)?);
    }
    let mut client = None;
    if scenario.watched {
        client = Some(view::Client::begin(&lab, command)?);
    }
    let mut hosts = None;
    let speaks = topology.nodes.iter().any(|node| node.name == HOSTS);
    if let Some(application) = scenario.hosts.filter(|_| speaks) {
        let words = [
            HOSTS,
            application,
            "--flows",
            &options.flows.to_string(),
            "--interval-ms",
            &options.interval_ms.to_string(),
            "--seed",
            &options.seed.to_string(),
        ];
        let mut words = words.to_vec();
        words.extend(scenario.watched.then_some("--marked"));
        hosts = Some(lab.spawn(HOSTS, HOSTS, &command(&words))?);
    }
    let mut wait = |lab: &mut Lab, time: Duration| watch(lab, hosts.as_mut(), time);
    wait(&mut lab, SETTLING)?;
    let phase = Duration::from_millis(options.phase_ms);
    let (mut moves, mut deaths) = (Vec::new(), Vec::new());
    for &fault in &options.faults {
        eprintln!("{}: {fault}", scenario.name);
        let from_us = now_us();
        let happened = fault.happen(&mut lab, &mut wait, phase)?;
        let died = happened.iter().filter(|moved| !moved.owner_alive);
        deaths.extend(died.map(|moved| Death {
            from_us,
            to_us: moved.at_us,
        }));
        moves.extend(happened.into_iter().map(|moved| (fault, moved)));
    }
    let ended_us = now_us();
    let (history, mut wrong) = match hosts {
        Some(hosts) => saw(hosts)?,
        None => (History::default(), Vec::new()),
    };
    let readings = client.map(view::Client::end).transpose()?;
    let talked = talk.map(|talk| talk.end(&without_store(&moves)));
    let (sessions, client) = talked.transpose()?.unzip();
    let merged = match &scenario.sketches {
        Some(sketches) => Some(read_sketches(&mut lab, &setting, sketches)?),
        None => None,
    };
    lab.check_processes()?;
    let directory = lab.directory().to_path_buf();
    lab.down()?;
    wrong.extend(judge(&history).iter().map(ToString::to_string));
    let (mut sketch, mut bound_us) = (None, None);
    if let (Some(sketches), Some(merged)) = (&scenario.sketches, merged) {
        let numbers = (
            value(topology, scenario, &sketches.limit)? as u32,
            value(topology, scenario, &sketches.bound)?,
        );
        bound_us = Some(numbers.1);
        let (report, objections) = sketch::judge(&history, sketches, &merged, &deaths, numbers);
        wrong.extend(objections);
        sketch = Some(report);
    }
    let mut told = None;
    if let Some(readings) = readings {
        let (report, objections) = view::examine(&readings, &history, &moves);
        wrong.extend(objections);
        told = Some(report);
    }
    let lives = Lives::of(&history);
    let calm = calm_times(&moves, bound_us, ended_us);
    let count = |is: fn(&EventKind) -> bool| {
        let events = history.events.iter();
        events.filter(|event| is(&event.kind)).count() as u64
    };
    let sent = count(|kind| matches!(kind, EventKind::Call { .. }));
    let received = count(|kind| matches!(kind, EventKind::Return { .. }));
    let report = ScenarioReport {
        scenario: scenario.name.to_owned(),
        sent,
        received,
        dropped: lives.dropped,
        lost: lives.lost(),
        sent_in_calm: lives.sent_in(&calm),
        lost_in_calm: lives.lost_in(&calm),
        wrong,
        sessions,
        sketch,
        view: told,
        moves: judge_moves(&lives, client.as_ref(), moves, ended_us),
    };
    write(&directory, "history.txt", &text(history))?;
    let json = serde_json::to_string_pretty(&report).unwrap_or_default();
    write(&directory, "result.json", &json)?;
    Ok(report)
}

/// Removes a folder that an earlier run may have left.
fn forget(folder: &std::path::Path) -> Result<(), LabError> {
    match std::fs::remove_dir_all(folder) {
        Err(reason) if reason.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::file(folder, reason))
        }
        _ => Ok(()),
    }
}

/// A number among the values of the scenario's variant.
fn value(topology: &Topology, scenario: &Scenario, name: &str) -> Result<u64, LabError> {
    let values = topology.variants.get(scenario.name);
    let value = values.and_then(|values| values.get(name));
    value.and_then(|value| value.parse().ok()).ok_or_else(|| {
        LabError::Options(format!(
            "the variant {} in {} needs a number `{name}`",
            scenario.name,
            topology.path.display()
        ))
    })
}

/// Sketches at the store, after all switches had the time for another snapshot.
fn read_sketches(
    lab: &mut Lab,
    setting: &Setting,
    sketches: &Sketches,
) -> Result<Vec<Merged>, LabError> {
    watch(lab, None, LAST_SNAPSHOTS)?;
    let config = lab.directory().join(format!("{TAIL}.toml"));
    let words = [
        &setting.stateplane.display().to_string(),
        "ctl",
        "--json",
        "store",
        "--config",
        &config.display().to_string(),
        "sketch",
        "--class",
        &sketches.class.to_string(),
        "--keys",
        &TENANTS.to_string(),
        "--slots",
        &sketches.slots.to_string(),
    ];
    let mut reader = lab.spawn(TAIL, "sketch", &words.map(str::to_owned))?;
    reader.wait_until(Instant::now() + ENDING)?;
    sessions::whole_output(&reader)
}

fn text(history: History) -> String {
    let document = Document {
        expectation: None,
        history,
    };
    document.to_string()
}

fn write(directory: &std::path::Path, name: &str, text: &str) -> Result<(), LabError> {
    let path = directory.join(name);
    std::fs::write(&path, text).map_err(|reason| LabError::file(path, reason))
}

/// Waits, and refuses if something ends by itself meanwhile.
fn watch(lab: &mut Lab, hosts: Option<&mut Process>, time: Duration) -> Result<(), LabError> {
    interrupt::wait_until(Instant::now() + time)?;
    lab.check_processes()?;
    if let Some(hosts) = hosts
        && let Some(status) = hosts.ended()
    {
        return Err(hosts.failure(format!("ended by itself ({status})")));
    }
    Ok(())
}

/// History that the hosts recorded, and frames that none would take.
fn saw(mut hosts: Process) -> Result<(History, Vec<String>), LabError> {
    hosts.close_input();
    hosts.wait_until(Instant::now() + ENDING)?;
    let report: HostsReport = sessions::last_line(&hosts, Some)?;
    let document = Document::read(&report.history, &judged())
        .map_err(|error| hosts.failure(format!("wrote no history: {error}")))?;
    Ok((document.history, report.strange))
}

/// The times at which all flows had come over the last move and the next was not begun, in µs.
/// `bound_us` is ε of an application that keeps sketches: once its store is back it passes nothing
/// before the snapshot under way and the next one are whole, each of which takes up to ε.
fn calm_times(moves: &[(Fault, Move)], bound_us: Option<u64>, ended_us: u64) -> Vec<Range<u64>> {
    let next = moves.iter().skip(1).map(|(_, moved)| moved.began_us);
    let come_over = |(fault, moved): &(Fault, Move)| {
        let snapshots = bound_us.filter(|_| fault.is_of_store()).unwrap_or(0);
        moved.at_us + AFTER_MOVE + 2 * snapshots
    };
    moves
        .iter()
        .zip(next.chain([ended_us]))
        .filter(|((_, moved), _)| moved.left_alone)
        .map(|(moved, end)| come_over(moved)..end)
        .collect()
}

/// The times, in ms, at which the store may have been away for so long that both switches lowered
/// their ports.
fn without_store(moves: &[(Fault, Move)]) -> Vec<Range<u64>> {
    let moves = moves.iter().filter(|(fault, _)| fault.is_of_store());
    moves
        .map(|(_, moved)| moved.began_us / 1000..(moved.at_us + AFTER_MOVE) / 1000)
        .collect()
}

fn judge_moves(
    lives: &Lives,
    client: Option<&ClientReport>,
    moves: Vec<(Fault, Move)>,
    ended_us: u64,
) -> Vec<FaultReport> {
    let next = moves.iter().skip(1);
    let next: Vec<_> = next
        .map(|(_, moved)| (moved.began_us, moved.at_us))
        .collect();
    let next = next.into_iter().chain([(ended_us, ended_us)]);
    let ms = |us: u64| us as f64 / 1000.0;
    moves
        .into_iter()
        .zip(next)
        .map(|((fault, moved), (next_begins, end))| {
            let stalls = lives.stalls(moved.at_us, end);
            let (median, slowest) = stalls.released_us;
            FaultReport {
                fault,
                flows: stalls.flows,
                silent: stalls.silent,
                released_median_ms: ms(median),
                released_slowest_ms: ms(slowest),
                usual_ms: ms(stalls.usual_us),
                longest_stall_ms: ms(stalls.longest_us),
                tcp_stall_ms: client.map(|client| {
                    // Connections stall from when the network begins to change.
                    sessions::longest_stall(client, moved.began_us / 1000, next_begins / 1000)
                }),
                moved,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(began_us: u64, at_us: u64) -> Move {
        Move {
            what: "moved".to_owned(),
            began_us,
            at_us,
            owner_alive: true,
            left_alone: true,
        }
    }

    #[test]
    fn sketches_take_up_to_two_snapshots_to_come_over_a_store_that_was_away() {
        let moves = [
            (Fault::Reroute, moved(1_000_000, 1_100_000)),
            (Fault::PowerCut, moved(4_000_000, 5_000_000)),
        ];
        let calm = |bound_us| calm_times(&moves, bound_us, 9_000_000);
        assert_eq!(calm(None), [1_600_000..4_000_000, 5_500_000..9_000_000]);
        let sketches = calm(Some(400_000));
        assert_eq!(sketches, [1_600_000..4_000_000, 6_300_000..9_000_000]);
    }

    #[test]
    fn routers_may_have_no_way_while_the_store_is_away_and_at_no_other_time() {
        let moves = [
            (Fault::LinkDown, moved(1_000_000, 1_100_000)),
            (Fault::ServerStandStill, moved(4_000_000, 9_000_000)),
        ];
        let away = without_store(&moves);
        let is_away = |ms| away.iter().any(|time| time.contains(&ms));
        assert_eq!(
            [1_050, 3_999, 4_000, 9_499, 9_500].map(is_away),
            [false, false, true, true, false]
        );
    }
}
