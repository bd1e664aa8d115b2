//! `stateplane kv reap`: a reaper of sessions.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering;

use serde_json::json;
use stateplane_coordination::{
    ConnectionEvent, Lanes, Reaper, ReaperSettings, Session, SessionSettings,
};

use super::answers::Printer;
use super::{Service, system};
use crate::exit::{CommandError, Failure};
use crate::signal;

/// Time between two lists of sessions, in µs.
const LIST_US: u64 = 1_000_000;

/// Ends dead sessions until it is stopped, or, with `once`, until it watched all that there were for
/// longer than their TTL.
pub fn run(mut service: Service, printer: Printer, once: bool) -> Result<(), CommandError> {
    let stop = signal::stop_flag()?;
    let Some(own) = service.opened.lanes else {
        return Err(CommandError::new(Failure::System, "there is no session"));
    };
    let ttl_us = service.opened.ttl_us;
    let started = service.client.now();
    let end = if once { started + 2 * ttl_us } else { u64::MAX };
    let refused = |refused| CommandError::new(Failure::System, refused);
    // A reaper's own lanes are a session's, which other reapers must not end.
    let settings = SessionSettings::new(ttl_us);
    let mut session = Session::open(started, service.agent(), settings).map_err(refused)?;
    let mut reaper = Reaper::new(ReaperSettings::new(ttl_us));
    let mut closing: VecDeque<Lanes> = VecDeque::new();
    let mut listed = BTreeSet::new();
    let mut next_list = started;
    while !stop.load(Ordering::Relaxed) && service.client.now() < end {
        let now = service.client.now();
        if now >= next_list {
            next_list = now + LIST_US;
            listed.clear();
            service.client.connection().list(now, 0);
        }
        let due = [reaper.poll_timeout(), session.poll_timeout()];
        let due = due.into_iter().flatten().min().unwrap_or(u64::MAX);
        // A signal is seen within a tenth of a second.
        service
            .client
            .step(due.min(next_list).min(now + 100_000))
            .map_err(system)?;
        let now = service.client.now();
        while let Some(event) = service.client.poll_event() {
            match event {
                ConnectionEvent::Agent(event) => {
                    let agent = service.agent();
                    session.handle_event(now, agent, &event);
                    reaper.handle_event(now, agent, &event);
                }
                ConnectionEvent::Sessions { sessions, next, .. } => {
                    let others = sessions.iter().map(|(lanes, _)| *lanes);
                    for lanes in others.filter(|lanes| lanes.session != own.session) {
                        listed.insert(lanes.session);
                        reaper.watch(now, lanes);
                    }
                    match next {
                        Some(next) => service.client.connection().list(now, next),
                        None => reaper.retain(|session| listed.contains(&session)),
                    }
                }
                ConnectionEvent::Closed { session } => {
                    if printer.json {
                        printer.line(&json!({ "ended": session }));
                    } else {
                        println!("ended session {session}");
                    }
                }
                _ => {}
            }
        }
        let agent = service.agent();
        if agent.lanes().is_none() {
            return Err(CommandError::new(
                Failure::System,
                "another reaper ended this session",
            ));
        }
        session.handle_timeout(now, agent);
        reaper.handle_timeout(now, agent);
        closing.extend(std::iter::from_fn(|| reaper.poll_ended()).filter(|lanes| lanes.count > 0));
        if !service.client.connection().is_closing()
            && let Some(lanes) = closing.pop_front()
        {
            service.client.connection().close(now, lanes);
        }
    }
    let now = service.client.now();
    if session.close(now, service.agent()).is_ok() {
        service.client.step(now + 100_000).map_err(system)?;
    }
    Ok(())
}
