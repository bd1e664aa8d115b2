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
use std::fmt::Display;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Write what is needed to run an annotated program on switches that share a store.
///
/// Protects the program as `stateplane protect` does, and writes, of the one file that describes
/// the deployment, the file of its servers (with the program's class of flows) and two for each
/// switch: its tables (`switch-N.toml`), and what the unit `stateplane-switch@N` of systemd starts
/// (`switch-N.env`). Each file is read back and set in a switch with the program, so that what
/// contradicts itself is refused here. Prints the command that starts each process, and the units
/// that do once the files are in /etc/stateplane.
///
/// `--example FOLDER` writes the program, the deployment and the network of docs/first-program.md;
/// the keys are in docs/reference/keys.md.
#[derive(Args)]
pub struct InitArguments {
    /// Annotated P4-16 program for v1model
    #[arg(value_name = "PROGRAM.p4", required_unless_present = "example")]
    program: Option<PathBuf>,
    #[command(flatten)]
    preprocess: PreprocessArguments,
    /// The deployment, with sections [[replication.switch]] and [[replication.server]]
    #[arg(long, value_name = "FILE", required_unless_present = "example")]
    deployment: Option<PathBuf>,
    /// Folder for the files, made if missing
    #[arg(
        short,
        long,
        value_name = "FOLDER",
        required_unless_present = "example"
    )]
    output: Option<PathBuf>,
    /// Write an example, a program with the files that describe its deployment and its network, to
    /// this folder, made if missing
    #[arg(
        long,
        value_name = "FOLDER",
        conflicts_with_all = ["program", "deployment", "output", "include", "define"]
    )]
    example: Option<PathBuf>,
}

/// Files of the example.
const EXAMPLE: [(&str, &str); 3] = [
    (
        "limiter.p4",
        include_str!("../../../../docs/examples/first-program/limiter.p4"),
    ),
    (
        "deployment.toml",
        include_str!("../../../../docs/examples/first-program/deployment.toml"),
    ),
    (
        "network.toml",
        include_str!("../../../../docs/examples/first-program/network.toml"),
    ),
];

/// Folder in which the units of systemd look for files.
const CONFIGURATION: &str = "/etc/stateplane";

/// Shards of a protected program unless it is compiled with another number.
const SHARDS: u16 = 4;

/// Runs the command.
pub fn run(arguments: &InitArguments) -> Result<(), CommandError> {
    if let Some(folder) = &arguments.example {
        return write_example(folder);
    }
    let (Some(program), Some(path), Some(folder)) =
        (&arguments.program, &arguments.deployment, &arguments.output)
    else {
        let message = "name a program, its --deployment and a folder for the --output";
        return Err(CommandError::new(Failure::Input, message));
    };
    make(&arguments.preprocess, program, path, folder)
}

/// Writes the example's files to `folder`.
fn write_example(folder: &Path) -> Result<(), CommandError> {
    let files = EXAMPLE.map(|(name, text)| (folder.join(name), text));
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        let message = format!("{} is there already", path.display());
        return Err(CommandError::new(Failure::Input, message));
    }
    make_folder(folder)?;
    for (path, text) in files {
        text_file::write(&path, text)?;
        println!("{}", path.display());
    }
    Ok(())
}

fn make_folder(folder: &Path) -> Result<(), CommandError> {
    fs::create_dir_all(folder).map_err(|error| {
        let message = format!("{} cannot be made: {error}", folder.display());
        CommandError::new(Failure::System, message)
    })
}

/// Writes the files of `program` in the deployment at `path` to `folder`.
fn make(
    preprocess: &PreprocessArguments,
    program: &Path,
    path: &Path,
    folder: &Path,
) -> Result<(), CommandError> {
    let source = preprocess.source(program);
    let name = program.file_name().unwrap_or("program.p4".as_ref());
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
    make_folder(folder)?;
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
            .switch_file(file, switch, class.id)
            .map_err(|error| refused(path, &error))?;
        starts.push(run.switch(switch, &(tables + &made))?);
    }
    for start in starts {
        println!("{start}");
    }
    println!("\nAs services, with these files in {CONFIGURATION} of each machine:\n");
    for unit in units(&deployment, file) {
        println!("systemctl enable --now {unit}");
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

/// Addresses of the deployment's controllers.
fn controllers(deployment: &Deployment) -> impl Iterator<Item = Ipv4Addr> {
    let controllers = deployment.controller.iter();
    controllers.flat_map(|it| it.addresses.clone())
}

/// Addresses of the deployment's servers.
fn servers(file: &StoreFile) -> Vec<Ipv4Addr> {
    match file.chain.as_slice() {
        [] => file.server.iter().map(|server| server.address).collect(),
        chain => chain.to_vec(),
    }
}

/// Units of systemd that run the deployment's processes, those first that others wait for.
fn units(deployment: &Deployment, file: &StoreFile) -> Vec<String> {
    let unit = |kind: &str, instance: &dyn Display| format!("stateplane-{kind}@{instance}");
    let controllers = controllers(deployment).map(|address| unit("controller", &address));
    let servers = servers(file).into_iter();
    let servers = servers.map(|address| unit("store", &address));
    let switches = file.switch.iter().map(|it| unit("switch", &it.number));
    controllers.chain(servers).chain(switches).collect()
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
        let controllers = controllers(deployment)
            .map(|address| format!("stateplane controller --config {config} --listen {address}"));
        let servers = servers(file)
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
        let ports = ports.map(|(interface, port)| format!("--port {port}={interface}"));
        let ports = ports.collect::<Vec<_>>().join(" ");
        let defines = self.macros.iter();
        let defines = defines.map(|(name, value)| format!("-D {name}={value}"));
        let defines = defines.collect::<Vec<_>>().join(" ");
        let name = self.program.file_name().unwrap_or_default();
        let installed = Path::new(CONFIGURATION).join(name);
        let environment = format!(
            "# What the unit stateplane-switch@{} starts; its options are OPTIONS=.\n\
             PROGRAM={}\nDEFINES={defines}\nPORTS={ports}\n",
            switch.number,
            installed.display()
        );
        let beside = path.with_extension("env");
        text_file::write(&beside, environment)?;
        let words = [
            "stateplane run",
            &self.program.display().to_string(),
            &defines,
            &ports,
            "--config",
            &path.display().to_string(),
        ];
        let words = words.into_iter().filter(|word| !word.is_empty());
        Ok(words.collect::<Vec<_>>().join(" "))
    }
}
