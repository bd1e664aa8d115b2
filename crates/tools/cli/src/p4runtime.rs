//! `stateplane run --p4runtime`: controllers drive the switch that runs.

use crate::exit::{CommandError, Failure};
use crate::program::ProgramArguments;
use clap::Args;
use stateplane_host::ports::PortSpec;
use stateplane_host::switch::{ControlPlane, ControlReport};
use stateplane_ir::{Interface, Program};
use stateplane_rpc::{
    Client, Compile, Core, Driver, Loader, Options, PacketHeader, Prepared, Refusal, Server, Tls,
};
use stateplane_runtime::{Digest, Engine};
use stateplane_switch::{Fellows, Switch};
use stateplane_syntax::MemoryLoader;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Options of the connection of controllers.
#[derive(Args)]
pub struct P4RuntimeArguments {
    /// Serve P4Runtime at this address, by default 127.0.0.1:9559
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:9559"
    )]
    p4runtime: Option<SocketAddr>,
    /// Device id that controllers use
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        requires = "p4runtime"
    )]
    device_id: u64,
    /// Port of packets to and from controllers; it has no interface
    #[arg(long, value_name = "N", requires = "p4runtime", value_parser = clap::value_parser!(u16).range(0..=510))]
    cpu_port: Option<u16>,
    /// Use TLS with this certificate (PEM); without it the address must be a loopback one
    #[arg(long, value_name = "FILE", requires_all = ["p4runtime", "tls_key"])]
    tls_certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Serve only clients with a certificate signed by these roots (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_client_roots: Option<PathBuf>,
}

impl P4RuntimeArguments {
    /// True if controllers are served.
    pub fn is_served(&self) -> bool {
        self.p4runtime.is_some()
    }

    /// The port of packets to and from controllers.
    pub fn cpu_port(&self) -> Option<u16> {
        self.cpu_port
    }

    fn tls(&self) -> Result<Option<Tls>, CommandError> {
        read_tls(
            self.tls_certificate.as_deref(),
            self.tls_key.as_deref(),
            self.tls_client_roots.as_deref(),
        )
    }

    /// Settings of the server, checked before the switch starts.
    ///
    /// # Errors
    ///
    /// For keys that cannot be read, and for an address that others reach without TLS.
    pub fn settings(&self, ports: &[(u16, PortSpec)]) -> Result<Option<Settings>, CommandError> {
        let Some(address) = self.p4runtime else {
            return Ok(None);
        };
        let tls = self.tls()?;
        if tls.is_none() && !address.ip().is_loopback() {
            let message = format!(
                "P4Runtime at {address} would let anyone drive the switch: give --tls-certificate \
                 and --tls-key, or listen at 127.0.0.1"
            );
            return Err(CommandError::new(Failure::Input, message));
        }
        Ok(Some(Settings {
            address,
            tls,
            device_id: self.device_id,
            cpu_port: self.cpu_port,
            port_names: ports
                .iter()
                .map(|(number, spec)| (*number, spec.to_string()))
                .collect(),
        }))
    }
}

/// The keys of a gRPC server, from the files named on the command line; `None` without a
/// certificate.
///
/// # Errors
///
/// For files that cannot be read.
pub fn read_tls(
    certificate: Option<&Path>,
    key: Option<&Path>,
    client_roots: Option<&Path>,
) -> Result<Option<Tls>, CommandError> {
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return Ok(None);
    };
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| {
            let message = format!("{} cannot be read: {error}", path.display());
            CommandError::new(Failure::Input, message)
        })
    };
    Ok(Some(Tls {
        certificate: read(certificate)?,
        key: read(key)?,
        client_roots: client_roots.map(read).transpose()?,
    }))
}

/// Address of the server, with its keys.
pub struct Settings {
    address: SocketAddr,
    tls: Option<Tls>,
    device_id: u64,
    cpu_port: Option<u16>,
    port_names: BTreeMap<u16, String>,
}

/// Makes an engine of a program.
pub type MakeEngine<E> = fn(Program) -> Result<E, String>;

/// A program with its interface, as a pipeline.
fn prepare<E: Engine + Send + 'static>(
    program: Program,
    interface: &Interface,
    make: MakeEngine<E>,
) -> Result<Prepared<E>, Refusal> {
    let info = stateplane_p4info::generate(&program, interface).map_err(Refusal::invalid)?;
    let load: Loader<E> = Arc::new(move || make(program.clone()).map_err(Refusal::invalid));
    Ok(Prepared {
        engine: None,
        load,
        info,
        headers: PacketHeader::of(interface),
    })
}

/// Compiles a program that a controller pushes; what it may include is the library.
fn compiler<E: Engine + Send + 'static>(make: MakeEngine<E>) -> Compile<E> {
    Arc::new(move |source| {
        let text = std::str::from_utf8(source).map_err(|_| {
            Refusal::invalid("p4_device_config is not text: it is the source of a P4-16 program")
        })?;
        if text.trim_start().starts_with('{') {
            return Err(Refusal::invalid(
                "p4_device_config is JSON, as for BMv2: give the source of the P4-16 program",
            ));
        }
        let loader = MemoryLoader::new().with("pipeline.p4", text);
        let (program, interface) = stateplane_compile::Source::new(loader, "pipeline.p4")
            .program_and_interface()
            .map_err(Refusal::invalid)?;
        prepare(program, &interface, make)
    })
}

/// The driver as the host knows it.
struct Served<E: Engine> {
    driver: Driver<E>,
    server: Server,
}

impl<E: Engine> ControlPlane<E> for Served<E> {
    fn descriptor(&self) -> RawFd {
        self.driver.descriptor().as_raw_fd()
    }

    fn packet_in(&mut self, frame: &[u8]) {
        self.driver.packet_in(frame);
    }

    fn digest(&mut self, digest: &Digest, now: u64) {
        self.driver.digest(digest, now);
    }

    fn due(&mut self, now: u64) -> Option<u64> {
        self.driver.due(now)
    }

    fn serve(
        &mut self,
        switch: &mut Switch<E>,
        fellows: &mut dyn Fellows<E>,
        now: u64,
    ) -> Option<u64> {
        self.driver.serve_with(switch, fellows, now)
    }

    fn report(&self) -> ControlReport {
        let connections = self.server.connections();
        ControlReport {
            open: connections.open,
            accepted: connections.accepted,
            closed_idle: connections.closed_idle,
            closed_late: connections.closed_late,
            refused: connections.refused,
            messages_dropped: self.driver.dropped(),
        }
    }
}

/// Starts the server for a switch.
///
/// # Errors
///
/// Returns the message for the user.
pub fn attach<E: Engine + Send + 'static>(
    settings: &Settings,
    program: &Program,
    interface: &Interface,
    make: MakeEngine<E>,
    switch: &Switch<E>,
) -> Result<Box<dyn ControlPlane<E>>, String> {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i64);
    let since_boot = stateplane_host::clock::boot_time_us() as i64 * 1000;
    let options = Options {
        device_id: settings.device_id,
        cpu_port: settings.cpu_port,
        epoch_ns: since_epoch.saturating_sub(since_boot),
        port_names: settings.port_names.clone(),
    };
    let said = |refusal: Refusal| refusal.message;
    let prepared = prepare(program.clone(), interface, make).map_err(said)?;
    let core = Core::new(options, prepared, switch).map_err(said)?;
    let (driver, client): (Driver<E>, Client<E>) =
        stateplane_rpc::channel(core).map_err(|error| error.to_string())?;
    let server = stateplane_rpc::serve(
        client,
        compiler(make),
        settings.address,
        settings.tls.as_ref(),
    )
    .map_err(|error| error.to_string())?;
    eprintln!("P4Runtime: {}", server.address());
    Ok(Box::new(Served { driver, server }))
}

/// The program, and what controllers see of it.
///
/// # Errors
///
/// Returns an error if the program has errors; they are on standard error.
pub fn compile(
    arguments: &ProgramArguments,
    served: bool,
) -> Result<(Program, Interface), CommandError> {
    if served {
        arguments.compile_with_interface()
    } else {
        Ok((arguments.compile()?, Interface::default()))
    }
}
