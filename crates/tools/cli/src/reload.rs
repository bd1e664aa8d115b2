//! `stateplane reload`: another program in a switch that runs.

use crate::command_socket::{self, Answer, Command};
use crate::exit::{CommandError, Failure};
use crate::p4runtime::MakeEngine;
use crate::program::ProgramArguments;
use clap::Args;
use serde_json::json;
use stateplane_host::switch::Remote;
use stateplane_runtime::Engine;
use std::path::PathBuf;
use std::sync::Arc;

/// Recompile the program of a running `stateplane run` and replace it.
///
/// The program is compiled while packets are forwarded by the old one, and replaces it between two
/// packets, so that none is lost. Registers, counters and meters are kept where name and type
/// agree, table entries where they fit. If the program does not compile, the old one stays, and the
/// exit code is 3.
#[derive(Args)]
pub struct ReloadArguments {
    /// Path of another program; by default the switch reads the file that it runs
    #[arg(value_name = "PROGRAM.p4")]
    program: Option<PathBuf>,
    /// Program that the switch runs, by its file's name, or path of the switch's control socket; by
    /// default the only switch that runs here
    #[arg(long, value_name = "PROGRAM|PATH")]
    control: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &ReloadArguments) -> Result<(), CommandError> {
    let program = match &arguments.program {
        Some(path) => Some(std::path::absolute(path).map_err(|error| {
            CommandError::new(Failure::Input, format!("{}: {error}", path.display()))
        })?),
        None => None,
    };
    let command = Command::Reload { program };
    let answer = command_socket::send(arguments.control.as_deref(), &command)
        .map_err(|text| CommandError::new(Failure::System, text))?;
    let Answer { exit, text } = answer;
    match exit {
        0 => {
            println!("{text}");
            Ok(())
        }
        code => {
            eprintln!("{}", text.trim_end());
            Err(CommandError::explained(match code {
                2 => Failure::Input,
                3 => Failure::Program,
                _ => Failure::System,
            }))
        }
    }
}

/// A switch's answers to `reload`.
pub struct Reloader<E: Engine> {
    /// The program that runs, and how it is compiled.
    pub program: ProgramArguments,
    /// Makes an engine of it.
    pub make: MakeEngine<E>,
    /// The switch.
    pub remote: Arc<Remote<E>>,
    /// Why the switch keeps its program, if it does.
    pub refusal: Option<&'static str>,
}

impl<E: Engine + Send + 'static> Reloader<E> {
    /// Compiles and swaps.
    pub fn obey(&mut self, command: Command) -> Answer {
        let answer = |failure: Failure, text: String| Answer {
            exit: failure as u8,
            text,
        };
        let program = match command {
            Command::Reload { program } => program,
            Command::Heads => return self.heads(),
        };
        if let Some(refusal) = self.refusal {
            return answer(Failure::Input, format!("error: {refusal}"));
        }
        let mut arguments = self.program.clone();
        if let Some(path) = program {
            arguments.program = path;
        }
        let (program, warnings) = match arguments.compile_to_text() {
            Ok(compiled) => compiled,
            Err(text) => return answer(Failure::Program, text),
        };
        let engine = match (self.make)(program) {
            Ok(engine) => engine,
            Err(text) => return answer(Failure::Program, format!("error: {text}")),
        };
        let swapped = self.remote.call(|server| server.replace_program(engine));
        // The engine before is given up here, not on the packets' thread.
        let Some(Some((_, adopted))) = swapped else {
            return answer(Failure::System, "error: the switch has stopped".to_owned());
        };
        self.program = arguments;
        let text = format!(
            "{warnings}{} runs; {adopted}",
            self.program.program.display()
        );
        tracing::info!("reload: {text}");
        Answer { exit: 0, text }
    }

    /// The report of greetings as JSON, with that of terms as `terms`.
    fn heads(&self) -> Answer {
        let report = self.remote.call(|server| {
            let report = server.report();
            let terms = report.terms;
            report.greeting.map(|greeting| (greeting, terms))
        });
        let (exit, text) = match report {
            Some(Some((greeting, terms))) => {
                let mut report = json!(greeting);
                report["terms"] = json!(terms);
                (0, report.to_string())
            }
            Some(None) => {
                let text = "error: the switch's program is not replicated, or a controller sets it";
                (Failure::Input as u8, text.to_owned())
            }
            None => (
                Failure::System as u8,
                "error: the switch has stopped".to_owned(),
            ),
        };
        Answer { exit, text }
    }
}
