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
}

impl Command {
    fn to_json(&self) -> Value {
        let Command::Reload { program } = self;
        json!({ "reload": { "program": program } })
    }

    fn from_json(text: &str) -> Result<Command, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Some(reload) = value.get("reload").and_then(Value::as_object) else {
            return Err("there is only the command \"reload\"".to_owned());
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

/// Answers commands at `path`, or in the user's own folder, on a thread of its own.
///
/// # Errors
///
/// Returns an error if the socket cannot be made.
pub fn listen(
    path: Option<&Path>,
    mut obey: impl FnMut(Command) -> Answer + Send + 'static,
) -> io::Result<Socket> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => {
            let folder = folders().into_iter().find(|folder| own(folder));
            let folder = folder.ok_or_else(|| io::Error::other("no folder of its own for it"))?;
            folder.join(format!("{}.{SUFFIX}", std::process::id()))
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

/// Sends a command to the switch at `path`, or to the only one of the user's that runs
/// here.
///
/// # Errors
///
/// Returns the message for the user.
pub fn send(path: Option<&Path>, command: &Command) -> Result<Answer, String> {
    let mut stream = match path {
        Some(path) => UnixStream::connect(path)
            .map_err(|error| format!("no switch listens at {}: {error}", path.display()))?,
        None => only_switch()?,
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

fn only_switch() -> Result<UnixStream, String> {
    let files = folders().into_iter().filter(|folder| own(folder));
    let paths = files
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == SUFFIX));
    let mut alive: Vec<(PathBuf, UnixStream)> = paths
        .filter_map(|path| {
            let stream = UnixStream::connect(&path).ok()?;
            Some((path, stream))
        })
        .collect();
    match alive.len() {
        0 => Err("no switch of yours runs here: name its socket by --control".to_owned()),
        1 => Ok(alive.remove(0).1),
        _ => {
            let paths = alive.iter().map(|(path, _)| path.display().to_string());
            Err(format!(
                "several switches run here, name one by --control: {}",
                paths.collect::<Vec<_>>().join(", ")
            ))
        }
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
        let socket = listen(Some(&path), |Command::Reload { program }| Answer {
            exit: 3,
            text: format!("{program:?}\nnot \"loaded\""),
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
        let plain = Command::Reload { program: None };
        assert_eq!(Command::from_json(&plain.to_json().to_string()), Ok(plain));
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
        let socket = listen(Some(&path), obey).unwrap();
        assert!(listen(Some(&path), obey).is_err());
        drop(socket);
        fs::write(&path, "a file").unwrap();
        assert!(listen(Some(&path), obey).is_err());
    }
}
