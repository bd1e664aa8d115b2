//! `stateplane ctl coordination fill|sessions|digests`: what the switches hold, asked as a client.

use crate::control::ask::Deployment;
use crate::control::{SwitchArguments, columns, row};
use crate::exit::{CommandError, Failure};
use crate::kv::{Service, system};
use crate::store::read_keys;
use serde_json::{Value, json};
use stateplane_coordination::{
    ConnectionEvent, Event, Lanes, Operation, SessionRecord, Survey, Surveyed,
};
use stateplane_host::controller::view::GroupView;
use stateplane_host::coordination_client::ClientConfig;
use stateplane_wire::coordination::Key;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

/// Time that each question to a switch has, in µs.
const DEADLINE_US: u64 = 5_000_000;

/// Groups that are surveyed at once.
const AT_ONCE: usize = 8;

/// How a survey of one group ended.
enum End {
    Surveyed(Surveyed),
    /// The group has no member.
    Down,
    /// This member did not answer.
    Silent(Ipv4Addr),
}

/// A client of the deployment's service, without lanes.
fn client(deployment: &Deployment, keys: Option<&Path>) -> Result<Service, CommandError> {
    let controllers: Vec<SocketAddrV4> = deployment.controllers()?;
    let config = ClientConfig {
        controllers,
        address: None,
        lanes: 0,
        deadline_us: DEADLINE_US,
    };
    Service::connect(&config, keys.map(read_keys).transpose()?)
}

/// Surveys `members` of each group.
fn survey(
    service: &mut Service,
    groups: &[GroupView],
    members: impl Fn(&GroupView) -> Vec<Ipv4Addr>,
) -> Result<BTreeMap<u16, End>, CommandError> {
    let mut ends = BTreeMap::new();
    let mut waiting = groups.iter();
    let mut running: Vec<Survey> = Vec::new();
    loop {
        while running.len() < AT_ONCE
            && let Some(group) = waiting.next()
        {
            let members = members(group);
            if members.is_empty() {
                ends.insert(group.group, End::Down);
            } else {
                running.push(Survey::new(group.group, &members));
            }
        }
        let now = service.client.now();
        for survey in &mut running {
            survey.ask(now, service.agent());
        }
        running.retain(|survey| {
            let end = match survey.failed() {
                Some(member) => End::Silent(member),
                None if survey.is_done() => End::Surveyed(survey.result()),
                None => return true,
            };
            ends.insert(survey.group(), end);
            false
        });
        if running.is_empty() && waiting.len() == 0 {
            return Ok(ends);
        }
        let Some(event) = service.event(now + DEADLINE_US)? else {
            continue;
        };
        for survey in &mut running {
            if survey.handle_event(&event) {
                break;
            }
        }
    }
}

fn first_alive(group: &GroupView) -> Vec<Ipv4Addr> {
    let alive = group.members.iter().filter(|member| member.alive);
    alive.map(|member| member.address).take(1).collect()
}

fn all_alive(group: &GroupView) -> Vec<Ipv4Addr> {
    let alive = group.members.iter().filter(|member| member.alive);
    alive.map(|member| member.address).collect()
}

/// Shows the places of each group that have a record.
pub fn fill(
    switch: &SwitchArguments,
    deployment: &Deployment,
    keys: Option<&Path>,
) -> Result<(), CommandError> {
    let (_, view) = deployment.coordination()?;
    let slots = deployment.slots();
    let ends = survey(&mut client(deployment, keys)?, &view.groups, first_alive)?;
    let mut rows = vec![row(&[
        &"group", &"values", &"locks", &"kept", &"places", &"full",
    ])];
    let mut values = Vec::new();
    for (group, end) in &ends {
        let (text, value) = match end {
            End::Surveyed(it) => {
                let used = it.values + it.locks + it.empty;
                let share = used as f64 / f64::from(slots.max(1));
                let text = row(&[
                    group,
                    &it.values,
                    &it.locks,
                    &it.empty,
                    &slots,
                    &format!("{:.1} %", 100.0 * share),
                ]);
                let value = json!({
                    "group": group, "values": it.values, "locks": it.locks, "kept": it.empty,
                    "places": slots, "full": share,
                });
                (text, value)
            }
            other => unanswered(*group, other),
        };
        rows.push(text);
        values.push(value);
    }
    switch.print(&Value::from(values), &columns(&rows));
    whole(&ends)
}

/// Compares the members of each group.
pub fn digests(
    switch: &SwitchArguments,
    deployment: &Deployment,
    keys: Option<&Path>,
) -> Result<(), CommandError> {
    let (_, view) = deployment.coordination()?;
    let ends = survey(&mut client(deployment, keys)?, &view.groups, all_alive)?;
    let mut rows = vec![row(&[&"group", &"members", &"records", &"digest"])];
    let mut values = Vec::new();
    let mut same = true;
    for group in &view.groups {
        let Some(end) = ends.get(&group.group) else {
            continue;
        };
        let (text, value) = match end {
            End::Surveyed(it) => {
                let members = all_alive(group);
                let records = it.values + it.locks + it.empty;
                let (outcome, verdict) = match (it.different.len(), it.undecided) {
                    (0, 0) => ("same", format!("{:032x}", it.digest)),
                    (0, moving) => (
                        "undecided",
                        format!("{moving} records change too fast to compare"),
                    ),
                    (count, _) => (
                        "different",
                        format!("DIFFERENT: {count} records, {}", first(it)),
                    ),
                };
                same &= outcome == "same";
                let text = row(&[&group.group, &members.len(), &records, &verdict]);
                let different: Vec<Value> = it.different.iter().map(difference).collect();
                let value = json!({
                    "group": group.group, "members": members, "records": records,
                    "outcome": outcome, "digest": format!("{:032x}", it.digest),
                    "different": different, "undecided": it.undecided,
                });
                (text, value)
            }
            other => unanswered(group.group, other),
        };
        rows.push(text);
        values.push(value);
    }
    switch.print(&Value::from(values), &columns(&rows));
    whole(&ends)?;
    if same {
        Ok(())
    } else {
        Err(CommandError::explained(Failure::Expectation))
    }
}

fn first(surveyed: &Surveyed) -> String {
    let Some(first) = surveyed.different.first() else {
        return String::new();
    };
    let seen = first.seen.iter().map(|seen| match &seen.record {
        Some(record) => record.number.to_string(),
        None => "none".to_owned(),
    });
    let numbers: Vec<String> = seen.collect();
    format!(
        "of key {} the versions {}",
        hex(&first.key),
        numbers.join(", ")
    )
}

fn difference(difference: &stateplane_coordination::Difference) -> Value {
    let seen = difference.seen.iter().map(|seen| {
        json!({
            "newest": seen.newest,
            "number": seen.record.as_ref().map(|record| record.number),
            "value": seen.record.as_ref().map(|record| hex_of(&record.value)),
        })
    });
    json!({ "key": hex(&difference.key), "members": seen.collect::<Vec<_>>() })
}

fn hex(key: &Key) -> String {
    hex_of(&key.0)
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unanswered(group: u16, end: &End) -> (Vec<String>, Value) {
    let why = match end {
        End::Silent(member) => format!("{member} does not answer"),
        _ => "no member lives".to_owned(),
    };
    (
        row(&[&group, &why]),
        json!({ "group": group, "error": why }),
    )
}

/// Fails if a group was not surveyed.
fn whole(ends: &BTreeMap<u16, End>) -> Result<(), CommandError> {
    let missing = ends.values().filter(|end| !matches!(end, End::Surveyed(_)));
    match missing.count() {
        0 => Ok(()),
        count => Err(CommandError::new(
            Failure::Expectation,
            format!("{count} groups do not answer"),
        )),
    }
}

/// Shows the sessions that are open, and what each owns.
pub fn sessions(
    switch: &SwitchArguments,
    deployment: &Deployment,
    keys: Option<&Path>,
) -> Result<(), CommandError> {
    let (_, view) = deployment.coordination()?;
    let mut service = client(deployment, keys)?;
    let open = listed(&mut service)?;
    let ends = survey(&mut service, &view.groups, first_alive)?;
    let mut owned: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for end in ends.values() {
        if let End::Surveyed(surveyed) = end {
            for (session, (values, locks)) in &surveyed.owned {
                let sum = owned.entry(*session).or_default();
                *sum = (sum.0 + values, sum.1 + locks);
            }
        }
    }
    let mut rows = vec![row(&[
        &"session",
        &"state",
        &"lanes",
        &"known for",
        &"records",
        &"locks",
    ])];
    let mut values = Vec::new();
    for (lanes, known_us) in open {
        let state = state(&mut service, lanes.session)?;
        let (records, locks) = owned.remove(&lanes.session).unwrap_or_default();
        let seconds = known_us / 1_000_000;
        let last = u32::from(lanes.first) + u32::from(lanes.count) - 1;
        rows.push(row(&[
            &lanes.session,
            &state,
            &format!("{} to {last}", lanes.first),
            &format!("{seconds} s"),
            &records,
            &locks,
        ]));
        values.push(json!({
            "session": lanes.session, "state": state, "first_lane": lanes.first,
            "lanes": lanes.count, "incarnation": lanes.incarnation, "known_s": seconds,
            "records": records, "locks": locks,
        }));
    }
    // A reaper frees what sessions own that nobody knows of.
    for (session, (records, locks)) in owned {
        rows.push(row(&[&session, &"over", &"", &"", &records, &locks]));
        values.push(json!({
            "session": session, "state": "over", "records": records, "locks": locks,
        }));
    }
    switch.print(&Value::from(values), &columns(&rows));
    whole(&ends)
}

/// The sessions that the controller did not close, and for how many µs it knows of each.
fn listed(service: &mut Service) -> Result<Vec<(Lanes, u64)>, CommandError> {
    let begin = service.client.now();
    let end = begin + DEADLINE_US;
    service.client.connection().list(begin, 0);
    let mut all = Vec::new();
    loop {
        let now = service.client.now();
        while let Some(event) = service.client.poll_event() {
            if let ConnectionEvent::Sessions { sessions, next, .. } = event {
                all.extend(sessions);
                match next {
                    Some(next) => service.client.connection().list(now, next),
                    None => return Ok(all),
                }
            }
        }
        if now >= end {
            let message = "no controller lists the sessions";
            return Err(CommandError::new(Failure::System, message));
        }
        service.client.step(end).map_err(system)?;
    }
}

/// State of a session, as its record has it.
fn state(service: &mut Service, session: u32) -> Result<&'static str, CommandError> {
    let now = service.client.now();
    let read = Operation::read(SessionRecord::place(session));
    let submitted = service.agent().submit(now, read);
    let ticket = submitted.map_err(|refused| CommandError::new(Failure::System, refused))?;
    loop {
        let Some(event) = service.event(now + DEADLINE_US)? else {
            return Ok("unknown");
        };
        if event.ticket() != Some(ticket) {
            continue;
        }
        let Event::Answered { answer, .. } = event else {
            return Ok("unknown");
        };
        let record = answer.record.and_then(|it| SessionRecord::parse(&it.value));
        return Ok(match record {
            Some(record) if record.ending => "ending",
            Some(_) => "alive",
            None => "without a record",
        });
    }
}
