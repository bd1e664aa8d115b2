//! `stateplane init`: from a program and a deployment to the files of every machine.

use crate::exit::{CommandError, Failure};
use crate::program::{PreprocessArguments, print_hint, print_text};
use crate::text_file;
use clap::Args;
use stateplane_host::deployment::Deployment;
use stateplane_host::store::{DeploymentSwitchFile, InitError, StoreFile};
use stateplane_host::switch::SwitchFile;
use stateplane_interp::Interp;
use stateplane_switch::{Switch, SwitchConfig};
use std::fs;
use std::path::{Path, PathBuf};

/// Write what is needed to run an annotated program on switches that share a store.
///
/// Protects the program as `stateplane protect` does, and writes, of the one file that describes
/// the deployment, the file of its servers (with the program's class of flows) and one for each
/// switch. Each file is read back and set in a switch with the program, so that what contradicts
/// itself is refused here. Prints the command that starts each process.
///
/// docs/first-program.md is an example; the keys are in docs/reference/keys.md.
#[derive(Args)]
pub struct InitArguments {
    /// Annotated P4-16 program for v1model
    #[arg(value_name = "PROGRAM.p4")]
    program: PathBuf,
    #[command(flatten)]
    preprocess: PreprocessArguments,
    /// The deployment, with sections [[replication.switch]] and [[replication.server]]
    #[arg(long, value_name = "FILE")]
    deployment: PathBuf,
    /// Folder for the files, made if missing
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
}

/// Shards of a protected program unless it is compiled with another number.
const SHARDS: u16 = 4;

/// Runs the command.
pub fn run(arguments: &InitArguments) -> Result<(), CommandError> {
    let source = arguments.preprocess.source(&arguments.program);
    let made = stateplane_protect::protect(source.loader(), source.main_file(), source.options());
    print_text(&made.diagnostics, &made.sources);
    print_hint(&made.diagnostics);
    let Some((program, class)) = made.program else {
        return Err(CommandError::explained(Failure::Program));
    };
    if class.snapshots.is_some() {
        let message = "a program with mode = \"bounded\" has a packet generator of its own: write \
                       its switches' files by hand (docs/protect.md)";
        return Err(CommandError::new(Failure::Input, message));
    }
    let path = &arguments.deployment;
    let input = |error: &dyn std::fmt::Display| {
        CommandError::new(Failure::Input, format!("{}: {error}", path.display()))
    };
    let text = text_file::read(path).map_err(|error| input(&error))?;
    let deployment = parse(path, &text)?;
    let file = deployment
        .replication()
        .map_err(|error| CommandError::coded(Failure::Input, error.code(), error))?;
    let missing = deployment
        .missing_class(class.id, class.state_length, class.lease_period)
        .map_err(|error| refused(path, &error))?;
    let text = text + &missing;
    check_servers(path, &text)?;

    let switches = deployment
        .switches(file)
        .map_err(|error| refused(path, &error))?;
    let folder = &arguments.output;
    fs::create_dir_all(folder).map_err(|error| {
        let message = format!("{} cannot be made: {error}", folder.display());
        CommandError::new(Failure::System, message)
    })?;
    let name = arguments
        .program
        .file_name()
        .unwrap_or("program.p4".as_ref());
    let program_path = folder.join(name);
    text_file::write(&program_path, &program)?;
    text_file::write(folder.join("store.toml"), &text)?;
    let run = Run {
        program: &program_path,
        macros: match file.shards {
            SHARDS => Vec::new(),
            shards => vec![("PROTECTED_SHARDS".to_owned(), shards.to_string())],
        },
        folder,
    };
    let mut starts = run.stores(&deployment, file);
    for switch in switches {
        let tables = tables(path, switch)?;
        let made = deployment
            .switch_file(file, switch)
            .map_err(|error| refused(path, &error))?;
        starts.push(run.switch(switch, &(tables + &made))?);
    }
    for start in starts {
        println!("{start}");
    }
    Ok(())
}

fn refused(path: &Path, error: &InitError) -> CommandError {
    let message = format!("{}: {error}", path.display());
    CommandError::coded(Failure::Input, error.code(), message)
}

fn parse(path: &Path, text: &str) -> Result<Deployment, CommandError> {
    Deployment::parse(path, text)
        .map_err(|error| CommandError::coded(Failure::Input, error.code(), error))
}

/// Checks the servers' file, whose text is `text`, for each server of a chain that never changes.
fn check_servers(path: &Path, text: &str) -> Result<(), CommandError> {
    let mut deployment = parse(path, text)?;
    let chain = deployment
        .replication
        .iter()
        .flat_map(|file| file.chain.clone());
    for listen in chain.collect::<Vec<_>>() {
        deployment.listen = listen;
        deployment
            .replica_config()
            .map_err(|error| CommandError::coded(Failure::Input, error.code(), error))?;
    }
    Ok(())
}

/// The text of a switch's own tables.
fn tables(path: &Path, switch: &DeploymentSwitchFile) -> Result<String, CommandError> {
    let Some(tables) = &switch.tables else {
        return Ok(String::new());
    };
    let tables = path.parent().unwrap_or(Path::new("")).join(tables);
    let text = text_file::read(&tables).map_err(|error| {
        CommandError::new(Failure::Input, format!("{}: {error}", tables.display()))
    })?;
    Ok(text + "\n")
}

/// How the processes are started.
struct Run<'r> {
    program: &'r Path,
    macros: Vec<(String, String)>,
    folder: &'r Path,
}

impl Run<'_> {
    /// The commands of controllers and servers.
    fn stores(&self, deployment: &Deployment, file: &StoreFile) -> Vec<String> {
        let config = self.folder.join("store.toml");
        let config = config.display();
        let controllers = deployment.controller.iter().flat_map(|it| &it.addresses);
        let controllers = controllers
            .map(|address| format!("stateplane controller --config {config} --listen {address}"));
        let servers = match file.chain.as_slice() {
            [] => file.server.iter().map(|server| server.address).collect(),
            chain => chain.to_vec(),
        };
        let servers = servers
            .into_iter()
            .map(|address| format!("stateplane store --config {config} --listen {address}"));
        controllers.chain(servers).collect()
    }

    /// Writes the file of a switch, checks it with the program, and gives the switch's command.
    fn switch(&self, switch: &DeploymentSwitchFile, text: &str) -> Result<String, CommandError> {
        let path = self.folder.join(format!("switch-{}.toml", switch.number));
        text_file::write(&path, text)?;
        let coded = |code: &str, error: &dyn std::fmt::Display| {
            CommandError::coded(Failure::Input, code, error)
        };
        let file = SwitchFile::parse(&path, text).map_err(|error| coded(error.code(), &error))?;
        let source = crate::program::source(self.program, &self.macros);
        let program = source.compile().program.ok_or_else(|| {
            let shown = self.program.display();
            let message = format!("{shown} does not compile: `stateplane check {shown}` says why");
            CommandError::new(Failure::Program, message)
        })?;
        let engine = Interp::new(program, Default::default())
            .map_err(|error| CommandError::coded(Failure::Program, error.code(), error))?;
        let config = SwitchConfig {
            ports: (0..).take(switch.interfaces.len()).collect(),
            ..SwitchConfig::default()
        };
        let mut set = Switch::new(engine, config).map_err(|error| coded(error.code(), &error))?;
        file.apply(&mut set, &mut || 1)
            .map_err(|error| coded(error.code(), &error))?;

        let ports = switch.interfaces.iter().zip(0..);
        let ports = ports.map(|(interface, port)| format!(" --port {port}={interface}"));
        let defines = self
            .macros
            .iter()
            .map(|(name, value)| format!(" -D {name}={value}"));
        Ok(format!(
            "stateplane run {}{}{} --config {}",
            self.program.display(),
            defines.collect::<String>(),
            ports.collect::<String>(),
            path.display()
        ))
    }
}
