//! A switch that runs and serves P4Runtime.

use super::{STATEPLANE, captures};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// `stateplane run`, killed when the test ends.
pub struct Served {
    child: Child,
    /// Address at which the switch serves P4Runtime.
    pub address: String,
}

impl Served {
    /// Starts `command`, a `stateplane run` that serves P4Runtime, and waits until it does.
    ///
    /// # Panics
    ///
    /// If it ends without.
    pub fn start(command: &mut Command) -> Served {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let mut said = String::new();
        let address = lines.find_map(|line| {
            let found = line.strip_prefix("P4Runtime: ").map(str::to_owned);
            said.push_str(&line);
            said.push('\n');
            found
        });
        let Some(address) = address else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the switch does not serve P4Runtime:\n{said}");
        };
        // Later output is read, so that the process never blocks on it.
        std::thread::spawn(move || lines.for_each(drop));
        Served { child, address }
    }

    /// Starts `program` on `engine` with a CPU port 510 and a port 0 at which nothing comes:
    /// a capture without frames in `folder`.
    pub fn alone(program: &Path, engine: &str, folder: &Path, options: &[&str]) -> Served {
        std::fs::write(folder.join("in.pcap"), captures::empty()).unwrap();
        let mut command = Command::new(STATEPLANE);
        command
            .current_dir(folder)
            .arg("run")
            .arg(program.canonicalize().unwrap())
            .args(["--engine", engine])
            .args(["--p4runtime", "127.0.0.1:0", "--cpu-port", "510"])
            .args(["--port", "0=pcap:in.pcap,out.pcap"])
            .args(options);
        Served::start(&mut command)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
