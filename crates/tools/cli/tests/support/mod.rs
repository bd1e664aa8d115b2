//! The built command, run from the repository's folder.

// Each test binary uses a part of this module.
#![allow(dead_code)]
#![allow(clippy::disallowed_types)]

pub mod captures;
pub mod cluster;
pub mod etcd;
pub mod followed;
pub mod lines;
pub mod namespaces;
pub mod python;
pub mod switch;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The built command.
pub const STATEPLANE: &str = env!("CARGO_BIN_EXE_stateplane");

/// The repository's folder, to which the paths in topologies and in messages are relative.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The command with `arguments`, not started.
pub fn stateplane(arguments: &[&str]) -> Command {
    let mut command = Command::new(STATEPLANE);
    command
        .args(arguments)
        .current_dir(repository())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Obstacle to a test in network namespaces, if any: the user is not root, or one of `tools` is not
/// on the PATH.
pub fn missing(tools: &[&str]) -> Option<String> {
    let root = Path::new("/proc/self")
        .metadata()
        .is_ok_and(|own| own.uid() == 0);
    if !root {
        return Some("it needs root".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    tools
        .iter()
        .find(|tool| !std::env::split_paths(&path).any(|folder| folder.join(tool).exists()))
        .map(|tool| format!("`{tool}` is not installed"))
}

/// A folder, in memory where there is such a file system: what is written through takes no time.
pub fn in_memory() -> TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    folder.expect("a folder")
}

/// Number of servers that a test kills: as `STATEPLANE_KILLS` says, or so many.
pub fn kills(otherwise: usize) -> usize {
    let set = std::env::var("STATEPLANE_KILLS").ok();
    set.map_or(otherwise, |kills| {
        kills.parse().expect("STATEPLANE_KILLS is a number")
    })
}

/// A started process, which is killed if the test ends before it does.
pub struct Running(Option<Child>);

impl Running {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> Running {
        Running(Some(command.spawn().expect("the command starts")))
    }

    /// The process.
    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it has not been waited for")
    }

    /// Sends a signal, named as `kill` names it.
    pub fn signal(&mut self, name: &str) {
        let pid = self.child().id().to_string();
        let sent = Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid])
            .status()
            .expect("a shell");
        assert!(sent.success(), "{name} to {pid}");
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child().try_wait().expect("its status")
    }

    /// Waits for its end, at most `patience`, and gives what it said. What it writes must
    /// fit into its pipes.
    pub fn finish(mut self, patience: Duration) -> Output {
        let deadline = Instant::now() + patience;
        while self.ended().is_none() {
            assert!(
                Instant::now() < deadline,
                "it still runs after {patience:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let child = self.0.take().expect("it has not been waited for");
        child.wait_with_output().expect("its output")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Standard error of a command.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
