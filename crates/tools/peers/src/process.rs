//! Processes of others, and their files.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest time for a server to begin.
pub(crate) const BEGIN: Duration = Duration::from_secs(40);

/// A file system in memory, where Linux has one.
const MEMORY: &str = "/dev/shm";

/// A server, ended with it.
pub(crate) struct Server(Child);

impl Server {
    /// Starts `command`, which says nothing.
    pub(crate) fn start(command: &mut Command) -> Result<Server, String> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        Ok(Server(child))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An unused port of loopback.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
    listener.local_addr().expect("an address").port()
}

/// Asks until `done` says that it is, at most [`BEGIN`].
pub(crate) fn wait(what: &str, mut done: impl FnMut() -> bool) -> Result<(), String> {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > BEGIN {
            return Err(format!("{what} did not begin within {BEGIN:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A folder for the files of a server, on a disk or in memory.
pub(crate) fn data(on_disk: bool) -> Result<TempDir, String> {
    let memory = Path::new(MEMORY);
    let made = if on_disk || !memory.is_dir() {
        tempfile::tempdir_in(folder())
    } else {
        tempfile::tempdir_in(memory)
    };
    made.map_err(|error| error.to_string())
}

/// Folder of the files that a benchmark builds or writes.
///
/// # Panics
///
/// If it cannot be made.
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/tmp");
    std::fs::create_dir_all(&folder).expect("the folder of built files can be made");
    folder
}
