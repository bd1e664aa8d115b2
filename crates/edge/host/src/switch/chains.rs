//! Keeps a switch's table of chains as the controller of the store says, and tells when none
//! answers.

use super::file::{Arguments, ChainsFile, EntryFile, Setting};
use super::greeter::HeadFile;
use super::{Remote, SwitchFileCause};
use crate::clock::boot_time_us;
use crate::datagram::receive;
use crate::poll::Readable;
use crate::sealing::{Guard, KeysError, open_datagram, send_datagram};
use stateplane_chains::Rows;
use stateplane_runtime::Engine;
use stateplane_wire::control::Row;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// µs of silence after which the controllers are asked for a sign of life.
const DOUBT: u64 = 500_000;

/// µs of silence after which no controller is taken to answer.
const SILENCE: u64 = 2_000_000;

/// Shards that one line names.
const MOST_NAMED: usize = 8;

/// When a controller was heard.
struct Heard {
    at: u64,
    from: Option<SocketAddrV4>,
    silent: bool,
}

impl Heard {
    /// None so far, since `now`.
    fn since(now: u64) -> Heard {
        Heard {
            at: now,
            from: None,
            silent: false,
        }
    }

    fn hear(&mut self, now: u64, from: SocketAddrV4) {
        if self.silent {
            let silent_ms = now.saturating_sub(self.at) / 1000;
            tracing::info!(controller = %from, silent_ms, "a controller answers again");
        } else if self.from != Some(from) {
            tracing::info!(controller = %from, "follows the controller");
        }
        *self = Heard {
            at: now,
            from: Some(from),
            silent: false,
        };
    }

    /// Tells of silence at `now`; true if a sign of life should be asked for.
    fn look(&mut self, now: u64) -> bool {
        let silence = now.saturating_sub(self.at);
        if silence >= SILENCE && !std::mem::replace(&mut self.silent, true) {
            let silent_ms = silence / 1000;
            let last = self.from.map_or("none".to_owned(), |from| from.to_string());
            tracing::warn!(
                silent_ms,
                last,
                "no controller answers: until one does, the heads of the chains stay as they are"
            );
        }
        silence >= DOUBT
    }
}

/// Why the table could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum ChainsError {
    /// The socket towards the controllers cannot be used.
    #[error("chains: no socket to the controllers: {0}")]
    Socket(io::Error),
    /// The head of a shard's chain is a server that the file does not name.
    #[error(
        "chains: shard {shard}: the controller names {head}, which is not in `servers`: add it with its MAC address"
    )]
    UnknownServer {
        /// The shard.
        shard: u16,
        /// The head of its chain.
        head: Ipv4Addr,
    },
    /// The program does not take an entry.
    #[error("chains: {0}")]
    Entry(#[from] SwitchFileCause),
    /// The file of keys changed, and is not taken; the keys so far stay.
    #[error("chains: {0}; the keys so far stay")]
    Keys(#[from] KeysError),
}

impl ChainsError {
    /// A short stable code, for messages and tests; that of the inner error if there is
    /// one.
    pub fn code(&self) -> &'static str {
        match self {
            ChainsError::Socket(_) => "H231",
            ChainsError::UnknownServer { .. } => "H232",
            ChainsError::Entry(cause) => cause.code(),
            ChainsError::Keys(cause) => cause.code(),
        }
    }
}

/// Follows the controllers of `file` for the switch behind `remote`, until that has stopped. With a
/// guard only sealed messages are accepted and sent. `told` gets errors; the rows that are right
/// take effect all the same.
///
/// # Errors
///
/// [`ChainsError::Socket`].
pub fn follow_chains<E: Engine + 'static>(
    file: &ChainsFile,
    mut guard: Option<Guard>,
    remote: &Arc<Remote<E>>,
    told: &mut dyn FnMut(&ChainsError),
) -> Result<(), ChainsError> {
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
    let open = || {
        let socket = UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let socket = open().map_err(ChainsError::Socket)?;
    let descriptor = socket.as_raw_fd();
    let mut readable = Readable::new([descriptor]).map_err(ChainsError::Socket)?;
    let mut rows = Rows::new(file.switch);
    let mut buffer = vec![0; 65_536];
    let mut next = 0;
    let mut heard = Heard::since(boot_time_us());
    loop {
        let now = boot_time_us();
        if now >= next {
            next = now + Rows::PERIOD;
            let question = if heard.look(now) {
                rows.ask_for_a_sign()
            } else {
                rows.ask()
            };
            if let Some(Err(error)) = guard.as_mut().map(|guard| guard.look(now)) {
                told(&ChainsError::Keys(error));
            }
            for controller in &file.controllers {
                // One that is gone takes nothing: it is asked again.
                let _ = send_datagram(guard.as_mut(), &socket, *controller, &question);
            }
            // Asked for nothing, it says whether it still runs.
            if remote.call(|_| ()).is_none() {
                return Ok(());
            }
        }
        readable.wait_until(next).map_err(ChainsError::Socket)?;
        let received = receive(&socket, &mut buffer).map_err(ChainsError::Socket)?;
        let Some((length, from)) = received.filter(|(_, from)| file.controllers.contains(from))
        else {
            continue;
        };
        let bytes = &buffer[..length];
        let opened = open_datagram(guard.as_mut(), boot_time_us(), &socket, from, bytes);
        let Some(received) = opened else {
            continue;
        };
        heard.hear(boot_time_us(), from);
        let news = rows.handle_message(received.message);
        if !news.is_empty() {
            // Further changes are requested at once.
            next = 0;
        }
        take(file, remote, news, told)?;
    }
}

/// Puts rows into the switch's table, and tells of them by head.
fn take<E: Engine + 'static>(
    file: &ChainsFile,
    remote: &Remote<E>,
    rows: Vec<Row>,
    told: &mut dyn FnMut(&ChainsError),
) -> Result<(), ChainsError> {
    let mut begin: BTreeMap<Ipv4Addr, Vec<u16>> = BTreeMap::new();
    for row in rows {
        let (shard, address) = (row.shard, *row.head.ip());
        match file.entry(&row)? {
            Some((entry, head)) => {
                let set = remote.call(move |server| server.set_chain(shard, head, &entry));
                match set {
                    Some(Err(error)) => told(&error),
                    _ => begin.entry(address).or_default().push(shard),
                }
            }
            None => told(&ChainsError::UnknownServer {
                shard,
                head: address,
            }),
        }
    }
    for (head, shards) in begin {
        let count = shards.len();
        let shards = &shards[..count.min(MOST_NAMED)];
        tracing::info!(%head, ?shards, count, "chains begin at this server, or anew");
    }
    Ok(())
}

impl ChainsFile {
    /// The entry for `row` and its head, if that is known.
    fn entry(&self, row: &Row) -> Result<Option<(EntryFile, HeadFile)>, ChainsError> {
        let head = row.head.ip();
        let mut servers = self.servers.iter();
        let server = servers.find(|server| server.address == *head);
        let entry = server.map(|it| self.entry_for(row.shard, row.epoch, it.address, &it.mac));
        Ok(entry.zip(self.head(*head)?))
    }

    /// The entry of a shard whose chain's head is at `address`.
    pub(super) fn entry_for(
        &self,
        shard: u16,
        epoch: u32,
        address: Ipv4Addr,
        mac: &str,
    ) -> EntryFile {
        let text = |text: &str| Setting::Text(text.to_owned());
        let number = |number: u32| Setting::Number(number.into());
        EntryFile {
            table: self.table.clone(),
            keys: Arguments::Ordered(vec![number(shard.into())]),
            action: self.action.clone(),
            params: Arguments::Named(vec![
                ("address".to_owned(), text(&address.to_string())),
                ("mac".to_owned(), text(mac)),
                ("port".to_owned(), number(self.port.into())),
                ("epoch".to_owned(), number(epoch)),
                ("mtu".to_owned(), number(self.mtu.into())),
            ]),
            priority: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_lines::lines;

    #[test]
    fn silence_of_controllers_and_its_end_are_told_once() {
        let controller: SocketAddrV4 = "10.0.0.20:4795".parse().unwrap();
        let mut heard = Heard::since(0);
        let said = lines(|| {
            heard.hear(100, controller);
            heard.hear(200, controller);
        });
        assert_eq!(
            said,
            ["INFO follows the controller controller=10.0.0.20:4795"]
        );
        assert!(!heard.look(200 + DOUBT - 1));
        let said = lines(|| {
            assert!(heard.look(200 + DOUBT));
            assert!(heard.look(199 + SILENCE));
        });
        assert_eq!(said, [""; 0]);
        let said = lines(|| {
            assert!(heard.look(200 + SILENCE));
            assert!(heard.look(300 + SILENCE));
        });
        assert_eq!(
            said,
            [
                "WARN no controller answers: until one does, the heads of the chains stay as they \
                 are silent_ms=2000 last=\"10.0.0.20:4795\""
            ]
        );
        let said = lines(|| heard.hear(1_000_200 + SILENCE, controller));
        assert_eq!(
            said,
            ["INFO a controller answers again controller=10.0.0.20:4795 silent_ms=3000"]
        );
        assert!(!heard.look(1_000_300 + SILENCE));
    }
}
