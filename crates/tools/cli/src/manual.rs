//! Man pages and completions of shells, made from the definition of the command line.

use crate::exit::{CommandError, Failure};
use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// Print the completions of a shell.
///
/// For one session of bash: `source <(stateplane completions bash)`. Packages install those of bash,
/// zsh and fish.
#[derive(Args)]
pub struct CompletionsArguments {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write a man page for the command and for each of its subcommands.
#[derive(Args)]
pub struct ManualArguments {
    /// Folder for the pages, made if missing
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Prints the completions of `command`.
pub fn complete(arguments: &CompletionsArguments, mut command: clap::Command) {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut text);
    print!("{}", String::from_utf8_lossy(&text));
}

/// Writes the pages of `command`.
pub fn write(arguments: &ManualArguments, command: clap::Command) -> Result<(), CommandError> {
    let folder = &arguments.folder;
    // Pages of one release are the same whatever its commit.
    let command = command
        .version(env!("CARGO_PKG_VERSION"))
        .long_version(None::<&str>);
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .map_err(|error| {
            let message = format!("{} cannot be written: {error}", folder.display());
            CommandError::new(Failure::System, message)
        })
}
