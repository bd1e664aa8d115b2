//! Health checks of the servers of services: TCP connections at intervals.

use std::collections::BTreeSet;
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::num::NonZeroU32;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{HealthFile, StoreFile};

/// Judges a server by its answers in a row.
#[derive(Debug, Clone, Copy)]
struct Judge {
    health: HealthFile,
    healthy: bool,
    /// Answers against the present verdict, in a row.
    against: u32,
}

impl Judge {
    fn new(health: HealthFile) -> Judge {
        Judge {
            health,
            healthy: true,
            against: 0,
        }
    }

    /// The new verdict, if this answer changes it.
    fn answered(&mut self, well: bool) -> Option<bool> {
        if well == self.healthy {
            self.against = 0;
            return None;
        }
        self.against += 1;
        let enough = if well {
            self.health.rise
        } else {
            self.health.fall
        };
        if self.against < enough.get() {
            return None;
        }
        (self.healthy, self.against) = (well, 0);
        Some(well)
    }
}

/// Asks servers in threads of its own, which end when it is dropped.
pub(crate) struct HealthChecks {
    changes: Receiver<(SocketAddrV4, bool)>,
    /// Each is dropped to end its thread.
    stops: Vec<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl HealthChecks {
    /// Asks the servers of `file`'s services that say how, each once.
    pub(crate) fn start(file: &StoreFile) -> HealthChecks {
        let (sender, changes) = mpsc::channel();
        let mut checks = HealthChecks {
            changes,
            stops: Vec::new(),
            threads: Vec::new(),
        };
        let mut asked = BTreeSet::new();
        for service in &file.service {
            let Some(health) = service.health else {
                continue;
            };
            for server in &service.servers {
                let endpoint = server.endpoint(service);
                if asked.insert(endpoint) {
                    checks.ask(endpoint, health, sender.clone());
                }
            }
        }
        checks
    }

    fn ask(
        &mut self,
        server: SocketAddrV4,
        health: HealthFile,
        changes: Sender<(SocketAddrV4, bool)>,
    ) {
        let (stop, stopped) = mpsc::channel::<()>();
        self.stops.push(stop);
        self.threads.push(std::thread::spawn(move || {
            let mut judge = Judge::new(health);
            let timeout = milliseconds(health.timeout_ms);
            let interval = milliseconds(health.interval_ms);
            loop {
                let well = TcpStream::connect_timeout(&SocketAddr::V4(server), timeout).is_ok();
                if let Some(healthy) = judge.answered(well)
                    && changes.send((server, healthy)).is_err()
                {
                    return;
                }
                if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        }));
    }

    /// Verdicts that changed since the last call. All are healthy at first.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (SocketAddrV4, bool)> {
        self.changes.try_iter()
    }
}

impl Drop for HealthChecks {
    fn drop(&mut self) {
        self.stops.clear();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn milliseconds(ms: NonZeroU32) -> Duration {
    Duration::from_millis(ms.get().into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;

    const HEALTH: &str = "{ interval_ms = 5, timeout_ms = 1000, fall = 3, rise = 2 }";

    fn file(server: SocketAddrV4) -> StoreFile {
        let (address, port) = (server.ip(), server.port());
        let text = format!(
            "[[service]]\naddress = \"198.51.100.1\"\nport = 80\n\
             servers = [{{ address = \"{address}\", port = {port} }}]\nhealth = {HEALTH}",
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn a_verdict_takes_answers_in_a_row() {
        let file = file("127.0.0.1:80".parse().unwrap());
        let mut judge = Judge::new(file.service[0].health.unwrap());
        let mut verdicts = |answers: &[bool]| -> Vec<Option<bool>> {
            answers.iter().map(|well| judge.answered(*well)).collect()
        };
        assert_eq!(verdicts(&[true, false, false, true]), [None; 4]);
        assert_eq!(
            verdicts(&[false, false, false, false]),
            [None, None, Some(false), None]
        );
        assert_eq!(
            verdicts(&[true, false, true, true]),
            [None, None, None, Some(true)]
        );
    }

    #[test]
    fn a_server_falls_and_rises() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(server) = listener.local_addr().unwrap() else {
            panic!("an IPv4 address");
        };
        let file = file(server);
        let checks = HealthChecks::start(&file);
        let begin = Instant::now();
        let change = || loop {
            assert!(begin.elapsed() < Duration::from_secs(60), "no change");
            if let Some(change) = checks.changes().next() {
                return change;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        drop(listener);
        assert_eq!(change(), (server, false));
        let _listener = TcpListener::bind(server).unwrap();
        assert_eq!(change(), (server, true));
    }
}
