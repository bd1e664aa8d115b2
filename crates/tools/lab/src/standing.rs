//! A lab that stays up: how it is brought up, entered and made to fail by other commands.
//!
//! The process that owns the lab takes requests at a socket beside its record: a line `fail NODE` or
//! `recover NODE`, answered by `done` or by the error's text.

use crate::error::LabError;
use crate::running::{Lab, Setting};
use crate::runs::{self, Run};
use crate::topology::Topology;
use crate::{interrupt, rootless, tool};
use clap::Args;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Interval at which the owner looks for requests and at its processes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Maximum time for a request to arrive once its sender is there.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of the longest request.
const LONGEST: u64 = 256;
/// The answer to a request that was done.
const DONE: &str = "done";
/// The owner's report about a lab that is up.
const UP: &str = "is up;";

/// Arguments of `stateplane lab up`.
#[derive(Clone, Debug, Args)]
pub struct UpArguments {
    /// Topology file.
    file: PathBuf,
    /// Variant of the topology.
    #[arg(long, default_value = "")]
    variant: String,
    /// Directory for logs.
    #[arg(long, default_value = "target/lab")]
    logs: PathBuf,
    /// Return when the lab is up, and leave it to `lab down` to take it down (needs root).
    #[arg(long)]
    detach: bool,
}

/// Brings a lab up, and keeps it.
pub(crate) fn up(arguments: &UpArguments) -> Result<ExitCode, LabError> {
    if arguments.detach {
        return detached(arguments);
    }
    rootless::become_root()?;
    interrupt::install();
    let topology = Topology::load(&arguments.file)?;
    let program =
        std::env::current_exe().map_err(|reason| LabError::file("/proc/self/exe", reason))?;
    let setting = Setting {
        keys: false,
        variant: arguments.variant.clone(),
        directory: arguments.logs.join(&topology.name),
        stateplane: program,
    };
    let mut lab = Lab::up(topology, &setting)?;
    let requests = Requests::open(lab.run())?;
    println!(
        "{} {UP} ^C or `stateplane lab down` takes it down",
        lab.topology().name
    );
    println!("logs in {}", lab.directory().display());
    println!("enter a node with `stateplane lab exec NODE COMMAND`; the nodes are:");
    for node in &lab.topology().nodes {
        println!("  {:12} {}", node.name, node.kind);
    }
    // Whoever detached it reads this from a file.
    let _ = io::stdout().flush();
    while interrupt::wait_until(Instant::now() + LOOK_EVERY).is_ok() {
        requests.serve(&mut lab);
        lab.check_processes()?;
    }
    lab.down()?;
    Ok(ExitCode::SUCCESS)
}

/// Has a process of its own bring the lab up and keep it.
fn detached(arguments: &UpArguments) -> Result<ExitCode, LabError> {
    tool::require_root()?;
    interrupt::install();
    let program =
        std::env::current_exe().map_err(|reason| LabError::file("/proc/self/exe", reason))?;
    let logs = &arguments.logs;
    std::fs::create_dir_all(logs).map_err(|reason| LabError::file(logs, reason))?;
    let create = |name: &str| {
        let path = logs.join(name);
        let file = File::create(&path).map_err(|reason| LabError::file(&path, reason))?;
        Ok((path, file))
    };
    let (said, out) = create("up.out")?;
    let (log, err) = create("up.log")?;
    let mut command = Command::new(program);
    command
        .args(["lab", "up", "--variant", &arguments.variant, "--logs"])
        .arg(logs)
        .arg(&arguments.file)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        // A terminal's ^C is not meant for it.
        .process_group(0);
    let mut owner = command.spawn().map_err(|reason| LabError::Tool {
        command: "stateplane lab up".to_owned(),
        status: "not started".to_owned(),
        output: reason.to_string(),
    })?;
    loop {
        let ended = owner.try_wait().ok().flatten();
        let text = std::fs::read_to_string(&said).unwrap_or_default();
        if let Some(status) = ended {
            let told = std::fs::read_to_string(&log).unwrap_or_default();
            eprint!("{told}");
            return Ok(ExitCode::from(status.code().map_or(4, |code| code as u8)));
        }
        if text.lines().any(|line| line.contains(UP)) {
            print!("{}", text.replace("^C or `", "`"));
            return Ok(ExitCode::SUCCESS);
        }
        if interrupt::wait_until(Instant::now() + LOOK_EVERY).is_err() {
            let _ = runs::signal("TERM", [owner.id().to_string().as_str()]);
            let _ = owner.wait();
            return Err(LabError::Interrupted);
        }
    }
}

/// The lab that stands and was brought up last.
fn newest() -> Result<Run, LabError> {
    tool::require_root()?;
    tool::require(&tool::BUILDING)?;
    let standing = runs::list().into_iter().rfind(Run::stands);
    standing.ok_or(LabError::NoLab)
}

/// The namespace of a node of `run`.
fn namespace(run: &Run, node: &str) -> Result<String, LabError> {
    let namespace = run.namespace(node);
    let there = run.namespaces();
    if there.contains(&namespace) {
        return Ok(namespace);
    }
    let prefix = run.namespace("");
    let known: Vec<_> = there
        .iter()
        .filter_map(|n| n.strip_prefix(&prefix))
        .collect();
    Err(LabError::Unknown {
        kind: "node",
        name: node.to_owned(),
        known: known.join(", "),
    })
}

/// Becomes a command in a node of the standing lab that was brought up last.
pub(crate) fn exec(node: &str, command: &[String]) -> Result<ExitCode, LabError> {
    let namespace = namespace(&newest()?, node)?;
    // This process becomes the command, so that a signal to it reaches the command.
    let reason = Command::new("ip")
        .args(["netns", "exec", &namespace])
        .args(command)
        .exec();
    Err(LabError::Tool {
        command: command.join(" "),
        status: "not started".to_owned(),
        output: reason.to_string(),
    })
}

/// A change of a node that the lab's owner makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// [`Lab::fail`].
    Fail,
    /// [`Lab::recover`].
    Recover,
}

impl Change {
    const fn word(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Recover => "recover",
        }
    }
}

/// Asks the owner of the standing lab that was brought up last for a change of a node.
pub(crate) fn ask(change: Change, node: &str) -> Result<ExitCode, LabError> {
    let run = newest()?;
    namespace(&run, node)?;
    let request = format!("{} {node}", change.word());
    let answer = exchange(&run, &request).map_err(|reason| LabError::file(run.socket(), reason))?;
    if answer.trim() == DONE {
        return Ok(ExitCode::SUCCESS);
    }
    Err(LabError::Tool {
        command: request,
        status: "refused by the lab".to_owned(),
        output: answer.trim().to_owned(),
    })
}

fn exchange(run: &Run, request: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(run.socket())?;
    writeln!(stream, "{request}")?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The socket at which an owner takes requests.
struct Requests(UnixListener);

impl Requests {
    fn open(run: &Run) -> Result<Self, LabError> {
        let path = run.socket();
        let listener = UnixListener::bind(&path)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        listener
            .map(Self)
            .map_err(|reason| LabError::file(path, reason))
    }

    /// Does what those ask for who are there.
    fn serve(&self, lab: &mut Lab) {
        while let Ok((stream, _)) = self.0.accept() {
            // Someone who goes before the answer gets none.
            let _ = answer(stream, lab);
        }
    }
}

fn answer(stream: UnixStream, lab: &mut Lab) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LONGEST)).read_line(&mut line)?;
    let done = match line.trim_end().split_once(' ') {
        Some(("fail", node)) => lab.fail(node).map_err(|error| error.to_string()),
        Some(("recover", node)) => lab.recover(node).map_err(|error| error.to_string()),
        _ => Err("a request is `fail NODE` or `recover NODE`".to_owned()),
    };
    writeln!(
        &stream,
        "{}",
        done.map_or_else(|text| text, |()| DONE.to_owned())
    )
}
