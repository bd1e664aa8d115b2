//! Multicast groups and clone sessions (specification, "PacketReplicationEngineEntry").

use super::{Context, Shadow, table};
use crate::bytes::{self, Form};
use crate::proto::v1::{self, packet_replication_engine_entry as entry, replica, update::Type};
use crate::refusal::Refusal;
use stateplane_runtime::Engine;
use stateplane_switch::{MirrorSession, Replica, Switch};
use std::collections::BTreeSet;
use tonic::Code;

/// Multicast groups of the switch that hold the replicas of a clone session have numbers
/// from here on, which clients cannot use.
const SESSION_GROUPS: u16 = 0xf000;

/// Greatest class of service: v1model has no queues that it could choose, so that it is
/// kept and read back only.
const MAX_CLASS: u32 = 255;

fn number(bytes: &[u8]) -> Result<u16, Refusal> {
    let number = bytes::decode(bytes, &Form::Bits(0), &|| {
        "the port of a replica".to_owned()
    })?;
    u16::try_from(&number)
        .ok()
        .filter(|port| *port < stateplane_runtime::DROP_PORT)
        .ok_or_else(|| Refusal::invalid(format!("there is no port {number}: use 0 to 510")))
}

fn replica(port: u16, instance: u32) -> Result<Replica, Refusal> {
    let rid = u16::try_from(instance)
        .map_err(|_| Refusal::invalid(format!("the instance {instance} is above 65535")))?;
    Ok(Replica { port, rid })
}

/// A replica and its backups, the most preferred first.
fn ranked(given: &v1::Replica) -> Result<Vec<Replica>, Refusal> {
    #[expect(deprecated, reason = "clients of P4Runtime 1.3 use it")]
    let port = match &given.port_kind {
        Some(replica::PortKind::EgressPort(port)) => number(&port.to_be_bytes())?,
        Some(replica::PortKind::Port(bytes)) => number(bytes)?,
        // Until 1.3 the port was a plain number, of which 0 is not sent.
        None => 0,
    };
    let mut ranked = vec![replica(port, given.instance)?];
    for backup in &given.backup_replicas {
        let backup = replica(number(&backup.port)?, backup.instance)?;
        if ranked.iter().any(|other| other.port == backup.port) {
            return Err(Refusal::invalid(format!(
                "port {} is both that of a replica and of its backup",
                backup.port
            )));
        }
        ranked.push(backup);
    }
    Ok(ranked)
}

/// Destinations of the copies with the present state of the ports: for each copy the most preferred
/// port that is up, or, if none is, the first, which drops it.
fn replicas<E: Engine>(switch: &Switch<E>, given: &[v1::Replica]) -> Result<Vec<Replica>, Refusal> {
    let mut seen = BTreeSet::new();
    let mut replicas = Vec::new();
    for one in given {
        let ranked = ranked(one)?;
        for Replica { port, rid } in &ranked {
            if !seen.insert((*port, *rid)) {
                return Err(Refusal::invalid(format!(
                    "the replica to port {port} with instance {rid} is given twice"
                )));
            }
        }
        let live = ranked.iter().find(|one| switch.port_is_up(one.port));
        replicas.extend(live.or(ranked.first()));
    }
    Ok(replicas)
}

/// Sends copies to backups of replicas whose port went down, and back.
pub(crate) fn follow_ports<E: Engine>(switch: &mut Switch<E>, shadow: &Shadow) {
    let has_backups =
        |given: &[v1::Replica]| given.iter().any(|one| !one.backup_replicas.is_empty());
    for (id, group) in &shadow.multicast {
        if has_backups(&group.replicas)
            && let Ok(number) = u16::try_from(*id)
            && let Ok(replicas) = replicas(switch, &group.replicas)
        {
            // The group was accepted before with as many replicas.
            let _ = switch.set_multicast_group(number, replicas);
        }
    }
    for (id, session) in &shadow.sessions {
        if has_backups(&session.replicas) {
            // As above.
            let _ = set_session(switch, *id, session);
        }
    }
}

/// Writes a group or session.
pub(crate) fn write<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    given: &v1::PacketReplicationEngineEntry,
) -> Result<(), Refusal> {
    match &given.r#type {
        Some(entry::Type::MulticastGroupEntry(group)) => multicast(context, kind, group),
        Some(entry::Type::CloneSessionEntry(session)) => clone(context, kind, session),
        None => Err(Refusal::invalid(
            "neither a multicast group nor a clone session is given",
        )),
    }
}

fn check_presence(kind: Type, there: bool, what: &str, id: u32) -> Result<(), Refusal> {
    match (kind, there) {
        (Type::Unspecified, _) => Err(table::unspecified()),
        (Type::Insert, true) => Err(Refusal::new(
            Code::AlreadyExists,
            format!("{what} {id} exists already"),
        )),
        (Type::Modify | Type::Delete, false) => {
            Err(Refusal::not_found(format!("there is no {what} {id}")))
        }
        _ => Ok(()),
    }
}

fn multicast<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    given: &v1::MulticastGroupEntry,
) -> Result<(), Refusal> {
    let id = given.multicast_group_id;
    let number = u16::try_from(id)
        .ok()
        .filter(|number| (1..SESSION_GROUPS).contains(number))
        .ok_or_else(|| {
            Refusal::invalid(format!(
                "{id} is no multicast group: use 1 to {}",
                SESSION_GROUPS - 1
            ))
        })?;
    let there = context.switch.multicast_group(number).is_some();
    check_presence(kind, there, "multicast group", id)?;
    if kind == Type::Delete {
        context.switch.remove_multicast_group(number)?;
        context.shadow.multicast.remove(&id);
        return Ok(());
    }
    super::check_metadata(&given.metadata)?;
    let replicas = replicas(context.switch, &given.replicas)?;
    context.switch.set_multicast_group(number, replicas)?;
    context.shadow.multicast.insert(id, given.clone());
    Ok(())
}

fn clone<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    given: &v1::CloneSessionEntry,
) -> Result<(), Refusal> {
    let id = given.session_id;
    if !(1..1 << 15).contains(&id) {
        return Err(Refusal::invalid(format!(
            "{id} is no clone session: use 1 to 32767"
        )));
    }
    let there = context.switch.mirror_session(id).is_some();
    check_presence(kind, there, "clone session", id)?;
    let before = context.switch.mirror_session(id);
    let old_group = before.and_then(|session| session.multicast_group);
    if kind == Type::Delete {
        context.switch.remove_mirror_session(id)?;
        drop_group(context.switch, old_group);
        context.shadow.sessions.remove(&id);
        return Ok(());
    }
    set_session(context.switch, id, given)?;
    context.shadow.sessions.insert(id, given.clone());
    Ok(())
}

fn set_session<E: Engine>(
    switch: &mut Switch<E>,
    id: u32,
    given: &v1::CloneSessionEntry,
) -> Result<(), Refusal> {
    if given.class_of_service > MAX_CLASS {
        return Err(Refusal::invalid(format!(
            "the class of service {} is above {MAX_CLASS}",
            given.class_of_service
        )));
    }
    let before = switch.mirror_session(id);
    let old_group = before.and_then(|session| session.multicast_group);
    let replicas = replicas(switch, &given.replicas)?;
    let truncate = match given.packet_length_bytes {
        0 => None,
        length => Some(
            u32::try_from(length)
                .map_err(|_| Refusal::invalid(format!("the packet length {length} is negative")))?,
        ),
    };
    let mut session = MirrorSession {
        egress_port: None,
        multicast_group: None,
        truncate,
        hold_us: given.hold_us,
    };
    // One copy without an instance needs no group.
    match replicas.as_slice() {
        [Replica { port, rid: 0 }] => session.egress_port = Some(*port),
        _ => {
            let group = match old_group {
                Some(group) => group,
                None => free_group(switch)?,
            };
            switch.set_multicast_group(group, replicas)?;
            session.multicast_group = Some(group);
        }
    }
    if let Err(error) = switch.set_mirror_session(id, session) {
        if session.multicast_group != old_group {
            drop_group(switch, session.multicast_group);
        }
        return Err(error.into());
    }
    if session.multicast_group != old_group {
        drop_group(switch, old_group);
    }
    Ok(())
}

fn free_group<E: Engine>(switch: &Switch<E>) -> Result<u16, Refusal> {
    (SESSION_GROUPS..=u16::MAX)
        .find(|group| switch.multicast_group(*group).is_none())
        .ok_or_else(|| {
            Refusal::new(
                Code::ResourceExhausted,
                "no more clone sessions with several replicas",
            )
        })
}

fn drop_group<E: Engine>(switch: &mut Switch<E>, group: Option<u16>) {
    if let Some(group) = group.filter(|group| *group >= SESSION_GROUPS) {
        // It was made with the session.
        let _ = switch.remove_multicast_group(group);
    }
}

/// Groups and sessions as messages: all of a kind, or that with the number if it is not 0.
pub(crate) fn messages(
    shadow: &Shadow,
    given: &v1::PacketReplicationEngineEntry,
) -> Vec<v1::PacketReplicationEngineEntry> {
    let message = |kind| v1::PacketReplicationEngineEntry { r#type: Some(kind) };
    let groups = |wanted: u32| {
        let groups = shadow.multicast.values();
        groups
            .filter(move |group| wanted == 0 || group.multicast_group_id == wanted)
            .map(move |group| message(entry::Type::MulticastGroupEntry(group.clone())))
    };
    let sessions = |wanted: u32| {
        let sessions = shadow.sessions.values();
        sessions
            .filter(move |session| wanted == 0 || session.session_id == wanted)
            .map(move |session| message(entry::Type::CloneSessionEntry(session.clone())))
    };
    match &given.r#type {
        Some(entry::Type::MulticastGroupEntry(group)) => groups(group.multicast_group_id).collect(),
        Some(entry::Type::CloneSessionEntry(session)) => sessions(session.session_id).collect(),
        None => groups(0).chain(sessions(0)).collect(),
    }
}

/// Removes all groups and sessions that the control plane made.
pub(crate) fn clear<E: Engine>(switch: &mut Switch<E>, shadow: &mut Shadow) {
    for id in std::mem::take(&mut shadow.multicast).into_keys() {
        if let Ok(number) = u16::try_from(id) {
            let _ = switch.remove_multicast_group(number);
        }
    }
    for id in std::mem::take(&mut shadow.sessions).into_keys() {
        if let Ok(session) = switch.remove_mirror_session(id) {
            drop_group(switch, session.multicast_group);
        }
    }
}

/// A group or session before an update.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    named: v1::PacketReplicationEngineEntry,
    stored: Option<v1::PacketReplicationEngineEntry>,
}

pub(crate) fn before<E: Engine>(
    context: &Context<'_, E>,
    given: &v1::PacketReplicationEngineEntry,
) -> Option<Before> {
    let id = match given.r#type.as_ref()? {
        entry::Type::MulticastGroupEntry(group) => group.multicast_group_id,
        entry::Type::CloneSessionEntry(session) => session.session_id,
    };
    let stored = match id {
        0 => None,
        _ => messages(context.shadow, given).pop(),
    };
    Some(Before {
        named: given.clone(),
        stored,
    })
}

impl Before {
    pub(crate) fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        let there = !messages(context.shadow, &self.named).is_empty();
        match (self.stored, there) {
            (None, false) => Ok(()),
            (None, true) => write(context, Type::Delete, &self.named),
            (Some(stored), false) => write(context, Type::Insert, &stored),
            (Some(stored), true) => write(context, Type::Modify, &stored),
        }
    }
}
