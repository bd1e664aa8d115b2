//! Nodes of the lab: processes of this program in them, which take orders and give answers, JSON, a
//! line each; commands in them; loss on their links.

use crate::error::EvalError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use stateplane_lab::Lab;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The node that all switches, hosts and the controller of coordination and multicast are joined to.
pub const FABRIC: &str = "fabric";

/// A process in its node.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    what: &'static str,
    logs: PathBuf,
}

impl Client {
    /// Starts `stateplane` with `words` in `node`; it must say `ready`, and then answers line by
    /// line. `what` names it in errors.
    ///
    /// # Errors
    /// The other answer, or the end of its log.
    pub fn start(
        lab: &Lab,
        stateplane: &Path,
        node: &str,
        words: &[&str],
        what: &'static str,
    ) -> Result<Client, EvalError> {
        let logs = lab.directory().to_path_buf();
        let log = logs.join(format!("client-{node}.log"));
        let file = File::create(&log).map_err(|reason| EvalError::file(&log, reason))?;
        let wrong = |reason| EvalError::file(stateplane, reason);
        let mut child = Command::new("ip")
            .args(["netns", "exec", &lab.run().namespace(node)])
            .arg(stateplane)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(wrong)?;
        let missing = || wrong(std::io::ErrorKind::BrokenPipe.into());
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(missing)?;
        let mut client = Client {
            child,
            input,
            output: BufReader::new(output),
            what,
            logs,
        };
        let said = client.line();
        if said == "ready" {
            return Ok(client);
        }
        let _ = client.child.wait();
        if !said.is_empty() {
            return Err(client.nothing(&said));
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        Err(client.nothing(said.trim()))
    }

    /// The next line that it says; empty at its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = self.output.read_line(&mut line);
        line.trim().to_owned()
    }

    /// An error about it.
    pub fn nothing(&self, reason: &str) -> EvalError {
        EvalError::Nothing {
            what: self.what.to_owned(),
            reason: reason.to_owned(),
            logs: self.logs.clone(),
        }
    }

    /// Gives it an order.
    ///
    /// # Errors
    /// `EV005` if it has ended.
    pub fn tell(&mut self, order: &impl Serialize) -> Result<(), EvalError> {
        let line = serde_json::to_string(order).unwrap_or_default();
        let written = self.input.as_mut().map(|input| writeln!(input, "{line}"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.nothing("its client ended")),
        }
    }

    /// Waits for its answer.
    ///
    /// # Errors
    /// `EV005` if it has ended.
    pub fn answer<A: DeserializeOwned>(&mut self) -> Result<A, EvalError> {
        let line = self.line();
        // A client that fails says why in place of its answer.
        let reason = if line.is_empty() { "it ended" } else { &line };
        let answer = serde_json::from_str(&line);
        answer.map_err(|_| self.nothing(reason))
    }

    /// Gives it something to do, and waits for the answer.
    ///
    /// # Errors
    /// `EV005` if it has ended.
    pub fn exchange<A: DeserializeOwned>(&mut self, ask: &impl Serialize) -> Result<A, EvalError> {
        self.tell(ask)?;
        self.answer()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The end of its input ends it, and it ends its servers.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Runs a command in a node to its end and gives what it prints.
///
/// # Errors
/// `EV003` with what it says if it fails.
pub fn run(lab: &Lab, node: &str, words: &[&str], input: &str) -> Result<String, EvalError> {
    let refused = |reason: String| EvalError::Refused {
        what: words.join(" "),
        reason,
    };
    let wrong = |error: std::io::Error| refused(error.to_string());
    let mut child = Command::new("ip")
        .args(["netns", "exec", &lab.run().namespace(node)])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(wrong)?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes()).map_err(wrong)?;
    }
    let output = child.wait_with_output().map_err(wrong)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(refused(said.trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Rules of nftables by which a share of the packets, 0 to 1, is lost at a hook.
pub fn loss(family: &str, hook: &str, share: f64) -> String {
    const ALL: u64 = 1_000_000;
    let lost = (share * ALL as f64).round() as u64;
    let mut rules = format!(
        "add table {family} loss\n\
         add chain {family} loss some {{ type filter hook {hook} priority 0; }}\n\
         flush chain {family} loss some\n"
    );
    if lost > 0 {
        rules += &format!("add rule {family} loss some numgen random mod {ALL} < {lost} drop\n");
    }
    rules
}

/// Processor time of this process, in s (proc(5), `stat`, fields 14 and 15).
pub fn processor_s() -> f64 {
    /// Ticks in a second: Linux's `USER_HZ`.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command name in parentheses may hold anything; fields 3 and on follow it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let fields = fields.split_whitespace().skip(11).take(2);
    fields
        .filter_map(|text| text.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS
}
