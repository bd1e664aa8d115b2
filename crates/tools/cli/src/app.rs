//! An application's folder: `app.toml`, its program and its packet tests.

use crate::exit::{CommandError, Failure};
use crate::text_file;
use stateplane_apps::SpecError;
use stateplane_apps::spec::{AppFile, FILE, Spec};
use std::fs;
use std::path::{Path, PathBuf};

/// An application's folder that was read.
pub struct Folder {
    path: PathBuf,
    /// Content of `app.toml`.
    file: AppFile,
}

impl Folder {
    /// Reads the `app.toml` of a folder.
    pub fn read(folder: &Path) -> Result<Self, CommandError> {
        let path = folder.join(FILE);
        let name = path.display().to_string();
        let text = text_file::read(&path).map_err(|reason| {
            refused(&SpecError::File {
                path: name.clone(),
                reason: reason.to_string(),
            })
        })?;
        let file = AppFile::parse(&name, &text).map_err(|error| refused(&error))?;
        let folder = Self {
            path: folder.to_path_buf(),
            file,
        };
        if !folder.program().is_file() {
            let problem = format!("there is no program {}", folder.program().display());
            return Err(folder.contradiction(problem, "name a file of the folder as `program`"));
        }
        Ok(folder)
    }

    /// Refuses the folder for what its `app.toml` says.
    pub fn contradiction(&self, problem: String, help: &str) -> CommandError {
        refused(&SpecError::Contradiction {
            path: self.path.join(FILE).display().to_string(),
            problem,
            help: help.to_owned(),
        })
    }

    /// The specification in `app.toml` of an application that is replicated; refused of others.
    pub fn replicated(&self) -> Result<&Spec, CommandError> {
        match &self.file {
            AppFile::Replicated(spec) => Ok(spec),
            AppFile::Other(spec) => Err(self.contradiction(
                format!("the application is one of the system `{}`", spec.system),
                "name the folder of one that is replicated",
            )),
        }
    }

    /// Main file of the program.
    pub fn program(&self) -> PathBuf {
        self.path.join(self.file.program())
    }

    /// Macros with which the program is compiled.
    pub fn macros(&self) -> Vec<(String, String)> {
        let macros = self.file.macros().iter();
        macros
            .map(|(name, body)| (name.clone(), body.clone()))
            .collect()
    }

    /// Its packet tests, in the order of their names.
    pub fn tests(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path.join("tests"));
        let entries = entries.into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let mut tests: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "stf"))
            .collect();
        tests.sort();
        tests
    }

    /// The packet test whose packets hosts send in the simulator.
    pub fn packets(&self) -> Result<PathBuf, CommandError> {
        let spec = self.replicated()?;
        if !spec.protects {
            let problem = "the program is not one that `stateplane protect` makes fault-tolerant";
            let help = "annotate it and say `protects = true`, or write hosts for it in Rust \
                        (docs/your-own-application.md)";
            return Err(self.contradiction(problem.to_owned(), help));
        }
        let packets = spec.packets.as_ref().map(|test| self.path.join(test));
        packets.filter(|path| path.is_file()).ok_or_else(|| {
            let problem = "there is no packet test whose packets hosts could send".to_owned();
            self.contradiction(problem, "name one of the folder as `packets`")
        })
    }
}

fn refused(error: &SpecError) -> CommandError {
    CommandError::coded(Failure::Input, error.code(), error)
}
