//! The control socket: commands to a switch that runs on this machine.
//!
//! A line of JSON goes in each direction: `{"reload": {"program": null}}` to the switch, and
//! `{"exit": 0, "text": "…"}` back.

use serde_json::{Value, json};
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of the longest command.
const MAX_COMMAND: u64 = 1 << 16;

/// Maximum time for a command to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// Suffix of the sockets' names.
const SUFFIX: &str = "control";

/// Answer of the switch to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The exit code of the command that asked.
    pub exit: u8,
    /// Text for the user.
    pub text: String,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Compile the program anew, or another one, and run it.
    Reload {
        /// Another program's file.
        program: Option<PathBuf>,
    },
    /// Tell of the heads of the store's chains.
    Heads,
}

impl Command {
    fn to_json(&self) -> Value {
        match self {
            Command::Reload { program } => json!({ "reload": { "program": program } }),
            Command::Heads => json!({ "heads": {} }),
        }
    }

    fn from_json(text: &str) -> Result<Command, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if value.get("heads").is_some_and(Value::is_object) {
            return Ok(Command::Heads);
        }
        let Some(reload) = value.get("reload").and_then(Value::as_object) else {
            return Err("there are only the commands \"reload\" and \"heads\"".to_owned());
        };
        let program = match reload.get("program") {
            None | Some(Value::Null) => None,
            Some(Value::String(path)) => Some(PathBuf::from(path)),
            Some(other) => return Err(format!("{other} is no file")),
        };
        Ok(Command::Reload { program })
    }
}

/// A socket that is removed when it is dropped.
pub struct Socket {
    path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It may have been removed by somebody else.
        let _ = fs::remove_file(&self.path);
    }
}

/// Answers commands at `path`, or in the user's own folder by the name of `program`, on a thread
/// of its own.
///
/// # Errors
///
/// Returns an error if the socket cannot be made.
pub fn listen(
    path: Option<&Path>,
    program: &Path,
    mut obey: impl FnMut(Command) -> Answer + Send + 'static,
) -> io::Result<Socket> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => {
            let folder = folders().into_iter().find(|folder| own(folder));
            let folder = folder.ok_or_else(|| io::Error::other("no folder of its own for it"))?;
            // Others that died leave theirs until somebody looks.
            let _ = switches([folder.clone()]);
            folder.join(format!(
                "{}-{}.{SUFFIX}",
                name_of(program),
                std::process::id()
            ))
        }
    };
    if UnixStream::connect(&path).is_err() && is_socket(&path) {
        // Left by a process that died.
        fs::remove_file(&path)?;
    }
    let listener = UnixListener::bind(&path)?;
    let socket = Socket { path };
    std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that disconnects before the answer gets none.
                let _ = serve(&stream, &mut obey);
            }
        })?;
    Ok(socket)
}

/// Name of `program` in the name of a socket, which may have 107 bytes.
fn name_of(program: &Path) -> String {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    stem.chars().filter(char::is_ascii).take(32).collect()
}

/// Program and process in the name of a socket.
fn parts(path: &Path) -> Option<(&str, u32)> {
    let (program, process) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    Some((program, process.parse().ok()?))
}

/// Sockets in `folders` at which switches listen. Those of processes that are no more are removed.
fn switches(folders: impl IntoIterator<Item = PathBuf>) -> Vec<(PathBuf, UnixStream)> {
    let files = folders
        .into_iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let paths = files.flatten().flatten().map(|entry| entry.path());
    let sockets = paths.filter(|path| path.extension().is_some_and(|end| end == SUFFIX));
    let answering = sockets.filter_map(|path| match UnixStream::connect(&path) {
        Ok(stream) => Some((path, stream)),
        Err(_) => {
            let (_, process) = parts(&path)?;
            if is_socket(&path) && !Path::new("/proc").join(process.to_string()).exists() {
                let _ = fs::remove_file(&path);
            }
            None
        }
    });
    answering.collect()
}

fn serve(stream: &UnixStream, obey: &mut impl FnMut(Command) -> Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_COMMAND)).read_line(&mut line)?;
    let Answer { exit, text } = match Command::from_json(&line) {
        Ok(command) => obey(command),
        Err(text) => Answer { exit: 2, text },
    };
    let answer = json!({ "exit": exit, "text": text });
    let mut stream = stream;
    writeln!(stream, "{answer}")?;
    stream.shutdown(Shutdown::Write)
}

/// Sends a command to the switch at the socket `to`, or that runs the program of this name, or to
/// the only one of the user's that runs here.
///
/// # Errors
///
/// Returns the message for the user.
pub fn send(to: Option<&Path>, command: &Command) -> Result<Answer, String> {
    let own_folders = || folders().into_iter().filter(|folder| own(folder));
    let mut stream = match to {
        Some(path) if is_socket(path) || path.components().count() > 1 => UnixStream::connect(path)
            .map_err(|error| format!("no switch listens at {}: {error}", path.display()))?,
        program => only_switch(switches(own_folders()), program)?,
    };
    let failed = |error: io::Error| format!("the switch does not answer: {error}");
    writeln!(stream, "{}", command.to_json()).map_err(failed)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(failed)?;
    let answer: Value =
        serde_json::from_str(&text).map_err(|_| "the switch stopped before it answered")?;
    Ok(Answer {
        exit: answer["exit"].as_u64().map_or(4, |exit| exit as u8),
        text: answer["text"].as_str().unwrap_or_default().to_owned(),
    })
}

/// The only one of `alive`, or the only one that runs `program`.
fn only_switch(
    mut alive: Vec<(PathBuf, UnixStream)>,
    program: Option<&Path>,
) -> Result<UnixStream, String> {
    if alive.is_empty() {
        return Err("no switch of yours runs here: name its socket by --control".to_owned());
    }
    let shown = alive.iter().map(|(path, _)| match parts(path) {
        Some((name, process)) => format!("{name} (process {process}, {})", path.display()),
        None => path.display().to_string(),
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    if let Some(program) = program {
        let wanted = name_of(program);
        alive.retain(|(path, _)| parts(path).is_some_and(|(name, _)| name == wanted));
    }
    match (alive.len(), program) {
        (1, _) => Ok(alive.remove(0).1),
        (0, Some(program)) => Err(format!(
            "no switch runs {}; there are: {shown}",
            program.display()
        )),
        _ => Err(format!(
            "several switches run here, name the program of one by --control, or its socket: {shown}"
        )),
    }
}

fn uid() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|own| own.uid())
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket())
}

/// Folders for a user's sockets, best first.
fn folders() -> Vec<PathBuf> {
    let runtime =
        std::env::var_os("XDG_RUNTIME_DIR").map(|path| Path::new(&path).join("stateplane"));
    let uid = uid();
    let run = (uid == Some(0)).then(|| PathBuf::from("/run/stateplane"));
    let shared = uid.map(|uid| std::env::temp_dir().join(format!("stateplane-{uid}")));
    runtime.into_iter().chain(run).chain(shared).collect()
}

/// True if `folder` belongs to the user alone; it is made if it does not exist.
fn own(folder: &Path) -> bool {
    // It may be there already, and whatever else went wrong shows below.
    let _ = DirBuilder::new().mode(0o700).create(folder);
    fs::symlink_metadata(folder)
        .is_ok_and(|it| it.is_dir() && Some(it.uid()) == uid() && it.mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_answers_pass_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket = listen(Some(&path), "nat.p4".as_ref(), |command| Answer {
            exit: 3,
            text: match command {
                Command::Reload { program } => format!("{program:?}\nnot \"loaded\""),
                Command::Heads => String::new(),
            },
        });
        let socket = socket.unwrap();
        let command = Command::Reload {
            program: Some("a b.p4".into()),
        };
        let answer = send(Some(&path), &command).unwrap();
        assert_eq!(answer.exit, 3);
        assert_eq!(answer.text, "Some(\"a b.p4\")\nnot \"loaded\"");
        drop(socket);
        let error = send(Some(&path), &command).unwrap_err();
        assert!(error.starts_with("no switch listens at"), "{error}");
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for text in [
            "",
            "{",
            "{}",
            "{\"reload\": 1}",
            "{\"reload\": {\"program\": 1}}",
        ] {
            assert!(Command::from_json(text).is_err(), "{text}");
        }
        for command in [Command::Reload { program: None }, Command::Heads] {
            let text = command.to_json().to_string();
            assert_eq!(Command::from_json(&text), Ok(command));
        }
    }

    #[test]
    fn a_socket_that_a_dead_process_left_is_taken_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let obey = |_| Answer {
            exit: 0,
            text: String::new(),
        };
        let socket = listen(Some(&path), "nat.p4".as_ref(), obey).unwrap();
        assert!(listen(Some(&path), "nat.p4".as_ref(), obey).is_err());
        drop(socket);
        fs::write(&path, "a file").unwrap();
        assert!(listen(Some(&path), "nat.p4".as_ref(), obey).is_err());
    }

    #[test]
    fn a_switch_is_named_by_its_program_and_sockets_of_the_dead_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let socket = |name: &str| folder.path().join(format!("{name}.{SUFFIX}"));
        let own = std::process::id();
        let nat = socket(&format!("nat-{own}"));
        let _nat = UnixListener::bind(&nat).unwrap();
        // No process has a number beyond this (PID_MAX_LIMIT).
        let dead = socket("acl-4194305");
        drop(UnixListener::bind(&dead).unwrap());
        // One that lives and does not listen yet.
        let young = socket(&format!("young-{own}"));
        drop(UnixListener::bind(&young).unwrap());
        let alive = || switches([folder.path().to_owned()]);
        assert_eq!(alive().len(), 1);
        assert!(nat.exists() && young.exists() && !dead.exists());
        assert!(only_switch(alive(), None).is_ok());
        assert!(only_switch(alive(), Some("nat.p4".as_ref())).is_ok());
        let refused = only_switch(alive(), Some("acl".as_ref())).unwrap_err();
        let named = format!("no switch runs acl; there are: nat (process {own}, ");
        assert!(refused.starts_with(&named), "{refused}");

        let fw = socket("fw-1");
        let _fw = UnixListener::bind(&fw).unwrap();
        let refused = only_switch(alive(), None).unwrap_err();
        assert!(
            refused.starts_with("several switches run here"),
            "{refused}"
        );
        assert!(refused.contains("fw (process 1, "), "{refused}");
        assert!(only_switch(alive(), Some("fw".as_ref())).is_ok());
        assert!(only_switch(Vec::new(), None).is_err());
    }
}
