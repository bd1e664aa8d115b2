//! Processes in namespaces.

use crate::error::LabError;
use crate::{interrupt, runs, tool};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const LOG_LINES_SHOWN: usize = 15;
const READY_LIMIT: Duration = Duration::from_secs(30);

/// A child process in a node's namespace. It is killed when this is dropped, and by
/// the kernel when the thread that started it ends.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    stdin: Option<ChildStdin>,
}

impl Process {
    /// Starts `command` in `namespace`. Standard output goes to
    /// `<directory>/<name>.out`, standard error to `<directory>/<name>.log`.
    pub(crate) fn start(
        namespace: &str,
        name: &str,
        command: &[String],
        directory: &Path,
    ) -> Result<Self, LabError> {
        let create = |extension: &str| {
            let path = directory.join(format!("{name}.{extension}"));
            let file = File::create(&path).map_err(|reason| LabError::file(&path, reason))?;
            Ok((path, file))
        };
        let (_, out) = create("out")?;
        let (log, err) = create("log")?;
        // Each of these programs replaces itself with the next, so the child's id is
        // that of the last.
        let mut child = Command::new("ip")
            .args(["netns", "exec", namespace])
            .args(["setpriv", "--pdeathsig", "KILL", "--"])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .spawn()
            .map_err(|reason| LabError::Tool {
                command: command.join(" "),
                status: "not started".to_owned(),
                output: reason.to_string(),
            })?;
        let stdin = child.stdin.take();
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
            stdin,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file of its standard output.
    pub fn output(&self) -> PathBuf {
        self.log.with_extension("out")
    }

    /// The file of its standard error.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for a line on its standard output that begins with `beginning`,
    /// at most 30 s.
    ///
    /// # Errors
    /// `LAB008` if it ends or the time passes before, `LAB130` when interrupted.
    pub fn wait_for_line(&mut self, beginning: &str) -> Result<(), LabError> {
        let deadline = Instant::now() + READY_LIMIT;
        loop {
            interrupt::check()?;
            let ended = self.ended();
            let said = std::fs::read(self.output()).unwrap_or_default();
            if String::from_utf8_lossy(&said)
                .lines()
                .any(|line| line.trim_start().starts_with(beginning))
            {
                return Ok(());
            }
            if let Some(status) = ended {
                return Err(self.failure(format!("ended before it said `{beginning}` ({status})")));
            }
            if Instant::now() > deadline {
                return Err(self.failure(format!(
                    "did not say `{beginning}` on its standard output within {} s",
                    READY_LIMIT.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// An error about this process, with the end of its log.
    pub fn failure(&self, what: String) -> LabError {
        LabError::Process {
            name: self.name.clone(),
            what,
            log: self.log.clone(),
            tail: tool::tail(&self.log, LOG_LINES_SHOWN),
        }
    }

    /// Writes a line to its standard input.
    ///
    /// # Errors
    /// `LAB008` if it does not take it.
    pub fn tell(&mut self, line: &str) -> Result<(), LabError> {
        let written = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{line}"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failure(format!("does not take the line `{line}`"))),
        }
    }

    /// Sends it a signal, such as `STOP`.
    ///
    /// # Errors
    /// `LAB006`.
    pub fn signal(&self, name: &str) -> Result<(), LabError> {
        runs::signal(name, [self.id().to_string().as_str()])
    }

    /// Closes its standard input, which asks agents to come to an end.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end; `None` if it has not come by `deadline`.
    ///
    /// # Errors
    /// `LAB130` when interrupted.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<Option<ExitStatus>, LabError> {
        loop {
            if let Some(status) = self.ended() {
                return Ok(Some(status));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            interrupt::check()?;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// SIGKILL: it ends where it stands.
    pub fn kill(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
