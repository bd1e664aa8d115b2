//! `stateplane fmt`: one layout for all P4.

mod diff;

use crate::exit::{CommandError, Failure};
use crate::text_file;
use clap::Args;
use std::path::{Path, PathBuf};

/// Format P4 programs in place.
///
/// Tokens, comments and preprocessor directives are kept, and so is the meaning; formatting a
/// formatted file changes nothing. A declaration with an #if inside its brackets is left unchanged.
#[derive(Args)]
pub struct FmtArguments {
    /// P4 files; `-` reads standard input and writes standard output
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write nothing; print the differences, and exit with 1 if there are any
    #[arg(long)]
    check: bool,
    /// Write to standard output instead of the files
    #[arg(long, conflicts_with = "check")]
    stdout: bool,
}

/// Runs the command: formats all files that can be formatted, then reports the failures.
pub fn run(arguments: &FmtArguments) -> Result<(), CommandError> {
    let mut failures = Vec::new();
    let mut differing = 0;
    for path in &arguments.files {
        match format_file(arguments, path) {
            Ok(changed) => differing += usize::from(changed),
            Err((failure, reason)) => {
                failures.push((failure, format!("{}: {reason}", path.display())));
            }
        }
    }
    if let Some((first, _)) = failures.first() {
        let reasons: Vec<&str> = failures.iter().map(|(_, reason)| reason.as_str()).collect();
        return Err(CommandError::new(*first, reasons.join("\nerror: ")));
    }
    if arguments.check && differing > 0 {
        let message = format!(
            "{differing} of {} not formatted",
            count(arguments.files.len())
        );
        return Err(CommandError::new(Failure::Expectation, message));
    }
    Ok(())
}

fn count(files: usize) -> String {
    match files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    }
}

/// Formats one file; says whether that changes it.
fn format_file(arguments: &FmtArguments, path: &Path) -> Result<bool, (Failure, String)> {
    let input = |reason: String| (Failure::Input, reason);
    let is_stdin = path.as_os_str() == "-";
    let text = if is_stdin {
        text_file::read_standard_input()
    } else {
        text_file::read(path)
    };
    let text = text.map_err(|error| input(error.to_string()))?;
    let formatted = stateplane_syntax::format(&text)
        .map_err(|error| input(format!("{error} (the file is left as it is)")))?;
    let changed = formatted != text;
    if arguments.check {
        if changed {
            let name = path.display().to_string();
            write_out(&diff::unified(&name, &text, &formatted));
        }
    } else if arguments.stdout || is_stdin {
        write_out(&formatted);
    } else if changed {
        std::fs::write(path, formatted).map_err(|error| (Failure::System, error.to_string()))?;
    }
    Ok(changed)
}

fn write_out(text: &str) {
    print!("{text}");
}
