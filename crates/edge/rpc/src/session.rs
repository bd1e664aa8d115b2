//! Arbitration of writers: streams, roles and election ids (specification, "Client Arbitration and
//! Controller Replication").

use crate::core::StreamId;
use crate::proto::{rpc, v1};
use crate::refusal::Refusal;
use std::collections::BTreeMap;
use tonic::Code;

/// Streams of one role that may be open.
const MAX_STREAMS: usize = 256;

/// Roles that are remembered, with their greatest election ids.
const MAX_ROLES: usize = 256;

/// Bytes of a role's longest name.
const MAX_NAME: usize = 256;

#[derive(Clone, Debug)]
struct Stream {
    role: String,
    election_id: Option<u128>,
}

#[derive(Clone, Debug, Default)]
struct Role {
    /// The greatest election id of a primary so far.
    highest: Option<u128>,
    primary: Option<StreamId>,
}

/// All live controllers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    device_id: u64,
    streams: BTreeMap<StreamId, Stream>,
    roles: BTreeMap<String, Role>,
}

/// Message for a controller.
pub(crate) type Notice = (StreamId, v1::MasterArbitrationUpdate);

fn number(id: &v1::Uint128) -> u128 {
    (u128::from(id.high) << 64) | u128::from(id.low)
}

impl Sessions {
    /// No controllers for the device.
    pub(crate) fn new(device_id: u64) -> Sessions {
        Sessions {
            device_id,
            ..Sessions::default()
        }
    }

    /// Takes an arbitration message of a stream.
    ///
    /// # Errors
    ///
    /// Returns the status with which the stream ends.
    pub(crate) fn arbitrate(
        &mut self,
        stream: StreamId,
        update: &v1::MasterArbitrationUpdate,
    ) -> Result<Vec<Notice>, Refusal> {
        let role = self.role(update.role.as_ref())?;
        let election_id = update.election_id.as_ref().map(number);
        match self.streams.get(&stream) {
            None => {
                self.check_device(update.device_id, Code::NotFound)?;
                let open = self.streams.values().filter(|it| it.role == role).count();
                if open >= MAX_STREAMS {
                    return Err(Refusal::new(
                        Code::ResourceExhausted,
                        format!("{MAX_STREAMS} streams of this role are open"),
                    ));
                }
            }
            Some(known) => {
                self.check_device(update.device_id, Code::FailedPrecondition)?;
                if known.role != role {
                    return Err(Refusal::new(
                        Code::FailedPrecondition,
                        "a stream keeps its role: open another one",
                    ));
                }
            }
        }
        if let Some(id) = election_id {
            if id == 0 {
                return Err(Refusal::invalid(
                    "the election id 0 cannot be primary: leave it out to be a backup",
                ));
            }
            let taken = self.streams.iter().any(|(other, it)| {
                *other != stream && it.role == role && it.election_id == Some(id)
            });
            if taken {
                return Err(Refusal::invalid(format!(
                    "another controller has the election id {id}"
                )));
            }
        }
        let entry = Stream {
            role: role.clone(),
            election_id,
        };
        self.streams.insert(stream, entry);
        let state = self.roles.entry(role.clone()).or_default();
        let was_primary = state.primary == Some(stream);
        let wins = election_id.is_some_and(|id| state.highest.is_none_or(|highest| id >= highest));
        if wins {
            state.highest = election_id;
            state.primary = Some(stream);
            return Ok(self.notices(&role));
        }
        if was_primary {
            state.primary = None;
            return Ok(self.notices(&role));
        }
        Ok(vec![(stream, self.notice(&role, stream))])
    }

    /// The name of the role that is meant.
    fn role(&self, given: Option<&v1::Role>) -> Result<String, Refusal> {
        let Some(given) = given else {
            return Ok(String::new());
        };
        // The meaning of a config is agreed outside the protocol; this server defines none.
        if given.config.is_some() {
            return Err(Refusal::invalid(
                "no scheme of role configs is agreed upon: leave the config of the role out",
            ));
        }
        if given.name.len() > MAX_NAME {
            return Err(Refusal::invalid(format!(
                "the role's name has {} bytes, at most {MAX_NAME} fit",
                given.name.len()
            )));
        }
        if !self.roles.contains_key(&given.name) && self.roles.len() >= MAX_ROLES {
            return Err(Refusal::new(
                Code::ResourceExhausted,
                format!("{MAX_ROLES} roles are known already"),
            ));
        }
        Ok(given.name.clone())
    }

    fn check_device(&self, device_id: u64, code: Code) -> Result<(), Refusal> {
        if device_id == self.device_id {
            Ok(())
        } else {
            Err(Refusal::new(
                code,
                format!("there is no device {device_id}; this is {}", self.device_id),
            ))
        }
    }

    /// Takes the end of a stream.
    pub(crate) fn close(&mut self, stream: StreamId) -> Vec<Notice> {
        let Some(closed) = self.streams.remove(&stream) else {
            return Vec::new();
        };
        match self.roles.get_mut(&closed.role) {
            Some(role) if role.primary == Some(stream) => {
                role.primary = None;
                self.notices(&closed.role)
            }
            _ => Vec::new(),
        }
    }

    /// Checks that a writer of that role and election id is the primary.
    ///
    /// # Errors
    ///
    /// Returns `NOT_FOUND` for another device, `PERMISSION_DENIED` for a client that is not
    /// primary.
    pub(crate) fn check_writer(
        &self,
        device_id: u64,
        role: &str,
        election_id: Option<&v1::Uint128>,
    ) -> Result<(), Refusal> {
        self.check_device(device_id, Code::NotFound)?;
        let state = self.roles.get(role);
        let primary = state.and_then(|state| state.primary);
        let id = primary.and_then(|stream| self.streams.get(&stream)?.election_id);
        if id.is_some() && id == election_id.map(number) {
            return Ok(());
        }
        Err(Refusal::new(
            Code::PermissionDenied,
            "only the primary writes: open a stream and win the arbitration",
        ))
    }

    /// True if the stream's controller is primary of its role.
    pub(crate) fn is_primary(&self, stream: StreamId) -> bool {
        self.primaries().any(|primary| primary == stream)
    }

    /// The primaries of all roles.
    pub(crate) fn primaries(&self) -> impl Iterator<Item = StreamId> {
        self.roles.values().filter_map(|role| role.primary)
    }

    /// Checks that the device id is this device's.
    pub(crate) fn check_reader(&self, device_id: u64) -> Result<(), Refusal> {
        self.check_device(device_id, Code::NotFound)
    }

    fn notices(&self, role: &str) -> Vec<Notice> {
        let streams = self.streams.iter().filter(|(_, it)| it.role == role);
        let mut notices: Vec<Notice> = streams
            .map(|(stream, _)| (*stream, self.notice(role, *stream)))
            .collect();
        // Backups first: the new primary writes when the others know.
        notices.sort_by_key(|(stream, _)| self.is_primary(*stream));
        notices
    }

    fn notice(&self, name: &str, stream: StreamId) -> v1::MasterArbitrationUpdate {
        let role = self.roles.get(name).cloned().unwrap_or_default();
        let (code, message) = match role.primary {
            Some(primary) if primary == stream => (Code::Ok, "primary"),
            Some(_) => (Code::AlreadyExists, "backup: there is a primary"),
            None => (Code::NotFound, "backup: there is no primary"),
        };
        v1::MasterArbitrationUpdate {
            device_id: self.device_id,
            role: (!name.is_empty()).then(|| v1::Role {
                name: name.to_owned(),
                ..v1::Role::default()
            }),
            election_id: role.highest.map(|id| v1::Uint128 {
                high: (id >> 64) as u64,
                low: id as u64,
            }),
            status: Some(rpc::Status {
                code: code.into(),
                message: message.to_owned(),
                details: Vec::new(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(id: Option<u64>) -> v1::MasterArbitrationUpdate {
        v1::MasterArbitrationUpdate {
            device_id: 1,
            election_id: id.map(|low| v1::Uint128 { high: 0, low }),
            ..v1::MasterArbitrationUpdate::default()
        }
    }

    fn codes(notices: &[Notice]) -> Vec<(u64, i32)> {
        let code = |update: &v1::MasterArbitrationUpdate| update.status.as_ref().unwrap().code;
        notices
            .iter()
            .map(|(stream, update)| (stream.0, code(update)))
            .collect()
    }

    const OK: i32 = 0;
    const NOT_FOUND: i32 = 5;
    const ALREADY_EXISTS: i32 = 6;

    #[test]
    fn the_greatest_election_id_is_primary() {
        let mut sessions = Sessions::new(1);
        let mut say =
            |stream, id| codes(&sessions.arbitrate(StreamId(stream), &update(id)).unwrap());
        assert_eq!(say(1, None), [(1, NOT_FOUND)], "a backup alone");
        assert_eq!(say(2, Some(5)), [(1, ALREADY_EXISTS), (2, OK)]);
        assert_eq!(
            say(3, Some(4)),
            [(3, ALREADY_EXISTS)],
            "only itself is told"
        );
        assert_eq!(
            say(3, Some(6)),
            [(1, ALREADY_EXISTS), (2, ALREADY_EXISTS), (3, OK)]
        );
        // The primary steps back; no other may take over below its id.
        assert_eq!(
            say(3, Some(1)),
            [(1, NOT_FOUND), (2, NOT_FOUND), (3, NOT_FOUND)]
        );
        assert_eq!(say(2, Some(5)), [(2, NOT_FOUND)]);
        assert_eq!(
            say(2, Some(6)),
            [(1, ALREADY_EXISTS), (3, ALREADY_EXISTS), (2, OK)]
        );
        assert_eq!(
            codes(&sessions.close(StreamId(2))),
            [(1, NOT_FOUND), (3, NOT_FOUND)]
        );
        assert!(sessions.close(StreamId(2)).is_empty());
    }

    #[test]
    fn wrong_arbitrations_end_the_stream() {
        let mut sessions = Sessions::new(1);
        let code = |result: Result<Vec<Notice>, Refusal>| result.unwrap_err().code;
        let other = v1::MasterArbitrationUpdate {
            device_id: 2,
            ..update(Some(1))
        };
        assert_eq!(
            code(sessions.arbitrate(StreamId(1), &other)),
            Code::NotFound
        );
        sessions.arbitrate(StreamId(1), &update(Some(1))).unwrap();
        assert_eq!(
            code(sessions.arbitrate(StreamId(1), &other)),
            Code::FailedPrecondition
        );
        assert_eq!(
            code(sessions.arbitrate(StreamId(2), &update(Some(1)))),
            Code::InvalidArgument
        );
        let role = v1::MasterArbitrationUpdate {
            role: Some(v1::Role {
                name: "r".to_owned(),
                ..v1::Role::default()
            }),
            ..update(Some(1))
        };
        assert_eq!(
            code(sessions.arbitrate(StreamId(1), &role)),
            Code::FailedPrecondition
        );
        let configured = v1::MasterArbitrationUpdate {
            role: Some(v1::Role {
                name: "r".to_owned(),
                config: Some(prost_types::Any::default()),
                ..v1::Role::default()
            }),
            ..update(Some(1))
        };
        assert_eq!(
            code(sessions.arbitrate(StreamId(3), &configured)),
            Code::InvalidArgument
        );
        let told = sessions.arbitrate(StreamId(3), &role).unwrap();
        assert_eq!(codes(&told), [(3, OK)], "roles have primaries of their own");
    }

    #[test]
    fn roles_are_bounded() {
        let mut sessions = Sessions::new(1);
        let named = |name: String| v1::MasterArbitrationUpdate {
            role: Some(v1::Role {
                name,
                ..v1::Role::default()
            }),
            ..update(Some(1))
        };
        for number in 0..MAX_ROLES {
            let stream = StreamId(number as u64);
            sessions
                .arbitrate(stream, &named(number.to_string()))
                .unwrap();
            sessions.close(stream);
        }
        let mut code = |name| {
            sessions
                .arbitrate(StreamId(1000), &named(name))
                .map_err(|it| it.code)
        };
        assert_eq!(code("more".to_owned()), Err(Code::ResourceExhausted));
        assert_eq!(code("x".repeat(MAX_NAME + 1)), Err(Code::InvalidArgument));
        assert!(code("7".to_owned()).is_ok(), "a known role goes on");
    }

    #[test]
    fn only_the_primary_writes() {
        let mut sessions = Sessions::new(1);
        let id = |low| v1::Uint128 { high: 0, low };
        let code = |sessions: &Sessions, device, low| {
            let outcome = sessions.check_writer(device, "", Some(&id(low)));
            outcome.map_err(|refusal| refusal.code)
        };
        assert_eq!(code(&sessions, 1, 1), Err(Code::PermissionDenied));
        sessions.arbitrate(StreamId(1), &update(Some(1))).unwrap();
        sessions.arbitrate(StreamId(2), &update(Some(2))).unwrap();
        assert_eq!(code(&sessions, 1, 1), Err(Code::PermissionDenied));
        assert_eq!(code(&sessions, 1, 2), Ok(()));
        assert_eq!(code(&sessions, 2, 2), Err(Code::NotFound));
        sessions.close(StreamId(2));
        assert_eq!(code(&sessions, 1, 2), Err(Code::PermissionDenied));
    }
}
