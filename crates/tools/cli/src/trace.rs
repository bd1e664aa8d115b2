//! `stateplane trace`: one packet through a program, step by step.

use crate::exit::{CommandError, Failure};
use crate::program::{ProgramArguments, included};
use crate::text_file;
use clap::Args;
use stateplane_diagnostics::Color;
use stateplane_host::ports::read_capture;
use stateplane_host::switch::SwitchFile;
use stateplane_interp::{Interp, Options};
use stateplane_stf::{Script, StfError};
use stateplane_switch::Switch;
use stateplane_trace::Recorder;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Show the steps of a packet through a program.
///
/// The packet enters at --port and passes parser, ingress, the switch and egress: the
/// trace shows states and extracted headers, tables with their keys, the entry hit and
/// the action with its data, registers, counters, hashes, checksums, clones, drops, and
/// the frames that leave. Nothing is sent, and time does not advance.
///
/// Tables have the program's own entries, unless --config (a switch's TOML file) or --stf
/// (a packet test) fills them. With --stf and no packet, the test's own packets are
/// traced, its waits advance the time, and its macros are defined:
///
///   stateplane trace nat.p4 --stf tests/new_connection.stf
///
/// With --json, each step is an object on a line: step, depth, what, and further fields
/// of that kind of step.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct TraceArguments {
    #[command(flatten)]
    program: ProgramArguments,
    /// Packet in hexadecimal digits; blanks and colons between them are ignored
    #[arg(long, value_name = "HEX", value_parser = frame, conflicts_with = "pcap")]
    packet: Option<Frame>,
    /// Capture file (pcap or pcapng), whose packets are traced one after the other
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Port at which packets enter
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=510))]
    port: u16,
    /// Table entries, registers, mirror sessions (TOML), as for `stateplane run`
    #[arg(long, value_name = "FILE", conflicts_with = "stf")]
    config: Option<PathBuf>,
    /// Packet test from which table entries, registers and mirror sessions are taken
    #[arg(long, value_name = "FILE")]
    stf: Option<PathBuf>,
    /// Show assignments and conditions too
    #[arg(long)]
    all: bool,
    /// Print JSON, one object a line for each step
    #[arg(long)]
    json: bool,
}

/// Value of registers that a switch's file fills at random.
const RANDOM: u64 = 0x5eed_5eed_5eed_5eed;

/// The bytes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame(Vec<u8>);

fn frame(text: &str) -> Result<Frame, String> {
    let digits: Vec<u32> = text
        .trim_start_matches("0x")
        .chars()
        .filter(|c| !c.is_whitespace() && *c != ':')
        .map(|c| {
            c.to_digit(16)
                .ok_or(format!("{c:?} is no hexadecimal digit"))
        })
        .collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err(format!("{} digits are half a byte too many", digits.len()));
    }
    let bytes = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8);
    Ok(Frame(bytes.collect()))
}

fn unreadable(path: &Path, error: std::io::Error) -> CommandError {
    CommandError::new(Failure::Input, format!("{}: {error}", path.display()))
}

/// Runs the command.
pub fn run(mut arguments: TraceArguments) -> Result<(), CommandError> {
    let packets: Vec<Vec<u8>> = match (&arguments.packet, &arguments.pcap) {
        (Some(packet), _) => vec![packet.0.clone()],
        (None, Some(path)) => {
            let frames = read_capture(path)
                .map_err(|error| CommandError::coded(Failure::Input, error.code(), &error))?;
            frames.into_iter().map(|(_, frame)| frame).collect()
        }
        (None, None) if arguments.stf.is_some() => Vec::new(),
        (None, None) => {
            return Err(CommandError::new(
                Failure::Input,
                "no packet is given: use --packet, --pcap, or --stf with a test's packets",
            ));
        }
    };
    let own_packets = arguments.packet.is_none() && arguments.pcap.is_none();
    let script = arguments.stf.as_deref().map(script).transpose()?;
    if let Some(script) = &script {
        arguments.program.define(&script.defines);
    }
    let program = arguments.program.compile()?;
    let engine = Interp::observed(program, Options::default(), Recorder::new())
        .map_err(|error| CommandError::coded(Failure::Program, error.code(), error))?;
    let mut switch = match &script {
        Some(script) => {
            stateplane_trace::run_script(script, own_packets, engine).map_err(refused)?
        }
        None => configured(arguments.config.as_deref(), engine)?,
    };
    for packet in packets {
        stateplane_trace::send(&mut switch, arguments.port, &packet);
    }
    let recorder = switch.engine().observer();
    let color = if std::io::stdout().is_terminal() {
        Color::Ansi
    } else {
        Color::Never
    };
    if arguments.json {
        print!("{}", stateplane_trace::to_json(recorder, arguments.all))
    } else {
        print!(
            "{}",
            stateplane_trace::render(recorder, arguments.all, color)
        )
    }
    Ok(())
}

fn refused(error: StfError) -> CommandError {
    CommandError::coded(Failure::Input, error.code(), error)
}

fn script(path: &Path) -> Result<Script, CommandError> {
    let text = text_file::read(path).map_err(|error| unreadable(path, error))?;
    let name = path.to_string_lossy();
    stateplane_stf::parse_with(&name, &text, &|path| included(&name, path)).map_err(refused)
}

/// Switch with the configuration of a switch's file, if there is one.
fn configured(
    config: Option<&Path>,
    engine: Interp<Recorder>,
) -> Result<Switch<Interp<Recorder>>, CommandError> {
    let mut switch = stateplane_trace::switch(engine)
        .map_err(|error| CommandError::coded(Failure::Input, error.code(), error))?;
    if let Some(path) = config {
        let coded =
            |code: &'static str, error: String| CommandError::coded(Failure::Input, code, error);
        let file = SwitchFile::read(path).map_err(|e| coded(e.code(), e.to_string()))?;
        // Only the packets asked for are of interest, and no store is there to keep the
        // ports up that a watch watches.
        let file = file.without_generators().without_watches();
        // A trace can be repeated, so what the file wants random is not.
        let mut draw = || RANDOM;
        file.apply(&mut switch, &mut draw)
            .map_err(|e| coded(e.code(), e.to_string()))?;
    }
    Ok(switch)
}

#[cfg(test)]
mod tests {
    use super::{Frame, frame};

    #[test]
    fn packets_are_hexadecimal() {
        assert_eq!(frame("00ff"), Ok(Frame(vec![0, 255])));
        assert_eq!(frame("0x00:Ff 0a"), Ok(Frame(vec![0, 255, 10])));
        assert_eq!(
            frame("abc"),
            Err("3 digits are half a byte too many".to_owned())
        );
        assert_eq!(frame("0g"), Err("'g' is no hexadecimal digit".to_owned()));
    }
}
