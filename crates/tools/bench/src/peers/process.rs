//! Processes of others, started for a benchmark.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time for a server to begin.
pub(super) const BEGIN: Duration = Duration::from_secs(20);

/// A server, ended with it.
pub(super) struct Peer(Child);

impl Peer {
    /// Starts `command`, which says nothing.
    pub(super) fn start(command: &mut Command) -> Result<Peer, String> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        Ok(Peer(child))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An unused port of loopback.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
    listener.local_addr().expect("an address").port()
}

/// Asks until `done` says that it is, at most [`BEGIN`].
pub(super) fn wait(what: &str, mut done: impl FnMut() -> bool) -> Result<(), String> {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > BEGIN {
            return Err(format!("{what} did not begin within {BEGIN:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Folder of the files that a benchmark builds or writes.
///
/// # Panics
///
/// If it cannot be made.
pub(super) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/tmp");
    std::fs::create_dir_all(&folder).expect("the folder of built files can be made");
    folder
}
