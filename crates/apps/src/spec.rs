//! `app.toml`: what an application says of itself to store, simulator, lab and experiments.

use core::net::SocketAddrV4;
use serde::{Deserialize, Serialize};
use stateplane_library::text;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::OnceLock;
use thiserror::Error;

/// Name of the file in an application's room.
pub const FILE: &str = "app.toml";

/// An `app.toml` that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// It cannot be read.
    #[error("{path}: {reason}; an application's folder has a file {FILE}")]
    File {
        /// The file.
        path: String,
        /// Error of the operating system.
        reason: String,
    },
    /// It is not TOML, or does not have the fields that it should.
    #[error("{path}: {reason}")]
    Syntax {
        /// The file.
        path: String,
        /// Line, column and reason, as the TOML reader gives them.
        reason: String,
    },
    /// It contradicts itself, or its program.
    #[error("{path}: {problem}; {help}")]
    Contradiction {
        /// The file.
        path: String,
        /// Description of the error.
        problem: String,
        /// How to mend it.
        help: String,
    },
}

impl SpecError {
    /// Code of the error, stable between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::File { .. } => "APP001",
            Self::Syntax { .. } => "APP002",
            Self::Contradiction { .. } => "APP003",
        }
    }
}

/// An application's `app.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Main file of the program, in the room.
    pub program: String,
    /// True if the program is annotated, and runs in the form that `stateplane protect` gives it.
    #[serde(default)]
    pub protects: bool,
    /// Parts of the key space, as the program is compiled.
    pub shards: u16,
    /// Macros with which the program is compiled.
    #[serde(default)]
    pub macros: BTreeMap<String, String>,
    /// Packet test in the room, whose packets hosts send in the simulator where the program is
    /// annotated.
    #[serde(default)]
    pub packets: Option<String>,
    /// Its tables in the section `[replication]` of a deployment: `class`, `service` and `nat`.
    pub replication: ReplicationTables,
    /// Scenario of `stateplane lab run`.
    #[serde(default)]
    pub lab: Option<LabScenario>,
    /// How the experiments measure it, where it differs from the others.
    #[serde(default)]
    pub measured: Measured,
    /// The same program compiled otherwise, by the names of the applications that this makes.
    #[serde(default)]
    pub variant: BTreeMap<String, Variant>,
}

/// The `app.toml` of a program whose state another system than replication keeps: of its own
/// it has a program and packet tests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherSpec {
    /// Name of the system: one of [`OTHER_SYSTEMS`].
    pub system: String,
    /// Main file of the program, in the room.
    pub program: String,
    /// Macros with which the program is compiled.
    #[serde(default)]
    pub macros: BTreeMap<String, String>,
}

/// Systems besides replication that keep the state of an application.
pub const OTHER_SYSTEMS: [&str; 3] = ["coordination", "multicast", "sync"];

/// An `app.toml`, of whichever system.
#[derive(Clone, Debug, PartialEq)]
pub enum AppFile {
    /// Of an application that is replicated.
    Replicated(Box<Spec>),
    /// Of one of another system.
    Other(OtherSpec),
}

impl AppFile {
    /// Reads an `app.toml`, which `path` names in errors: one that names a `system` is that
    /// system's.
    ///
    /// # Errors
    /// As [`Spec::parse`], and [`SpecError::Contradiction`] if there is no such system.
    pub fn parse(path: &str, text: &str) -> Result<Self, SpecError> {
        let syntax = |error: toml::de::Error| SpecError::Syntax {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let table: toml::Table = toml::from_str(text).map_err(syntax)?;
        if !table.contains_key("system") {
            return Spec::parse(path, text).map(|spec| Self::Replicated(Box::new(spec)));
        }
        let spec: OtherSpec = toml::from_str(text).map_err(syntax)?;
        if !OTHER_SYSTEMS.contains(&spec.system.as_str()) {
            return Err(SpecError::Contradiction {
                path: path.to_owned(),
                problem: format!("there is no system `{}`", spec.system),
                help: format!(
                    "leave `system` out for replication, or name one of {OTHER_SYSTEMS:?}"
                ),
            });
        }
        Ok(Self::Other(spec))
    }

    /// Main file of the program, in the room.
    pub fn program(&self) -> &str {
        match self {
            Self::Replicated(spec) => &spec.program,
            Self::Other(spec) => &spec.program,
        }
    }

    /// Macros with which the program is compiled.
    pub fn macros(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Replicated(spec) => &spec.macros,
            Self::Other(spec) => &spec.macros,
        }
    }
}

/// Tables of an application in the section `[replication]` of a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicationTables {
    /// Classes of flows, first that of the program's own keys.
    pub class: Vec<Class>,
    /// Services whose flows the store gives to servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service: Vec<toml::Table>,
    /// Public endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat: Option<toml::Table>,
}

/// A class of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// First byte of its keys.
    pub id: u8,
    /// Bytes of state of a flow.
    pub state_length: u16,
    /// Source of a flow's first state: `zero`, `nat-outbound`, `nat-dependent`, `server` or `none`.
    pub first_lease: String,
    /// Settings that the store alone reads.
    #[serde(flatten)]
    pub rest: toml::Table,
}

/// The same program compiled otherwise.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Macros besides those of the application.
    #[serde(default)]
    pub macros: BTreeMap<String, String>,
    /// Classes of flows, first that of the program's own keys, in place of the application's, if
    /// there are any.
    #[serde(default)]
    pub class: Vec<Class>,
}

/// Scenario of `stateplane lab run`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabScenario {
    /// Description of the traffic.
    pub about: String,
    /// Main file of the program, if it is another than the application's.
    #[serde(default)]
    pub program: Option<String>,
    /// The application whose hosts speak and whose judge judges, if it is another.
    #[serde(default)]
    pub hosts: Option<String>,
    /// Values for the configuration of switch and store.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// TCP connections, where the application lets them through.
    #[serde(default)]
    pub sessions: Option<Sessions>,
    /// Sketches that are read from the store in the end.
    #[serde(default)]
    pub sketches: Option<Sketches>,
}

/// A side of the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Side of the hosts inside.
    Inside,
    /// Side of the hosts outside.
    Outside,
}

/// Real TCP connections of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Side that opens the connections; servers are on the other side.
    pub from: Side,
    /// The endpoint to which they are opened.
    pub to: SocketAddrV4,
    /// Ports at which the servers listen.
    pub ports: Vec<u16>,
}

/// Sketches that switches keep in bounded-inconsistency mode.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sketches {
    /// Elements of a row.
    pub slots: usize,
    /// Name of the value that says how many packets are heavy.
    pub limit: String,
    /// Name of the value that says what ε is, in µs.
    pub bound: String,
}

/// How the experiments measure an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Template of the switch's configuration in the folder `lab`; that of the room unless set.
    pub switch: Option<String>,
    /// Another one in the folder `lab`, for a switch with a store.
    pub besides: Option<String>,
    /// Macro with the number of shards.
    pub shards_macro: Option<String>,
    /// Macro with the number of tenants.
    pub tenants_macro: Option<String>,
    /// The program without replication, if it is another one.
    pub bare: Option<Bare>,
    /// The program whose state an external controller makes.
    pub controlled: Option<String>,
}

/// A program without replication.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bare {
    /// Its main file, in the room.
    pub program: String,
    /// Template of the switch's configuration in the folder `lab`.
    pub switch: String,
    /// Values for the template.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

impl Spec {
    /// Reads an `app.toml`, which `path` names in errors.
    ///
    /// # Errors
    /// [`SpecError`] if it is not TOML, lacks fields or contradicts itself.
    pub fn parse(path: &str, text: &str) -> Result<Self, SpecError> {
        let spec: Self = toml::from_str(text).map_err(|error| SpecError::Syntax {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        let refuse = |problem: String, help: &str| {
            Err(SpecError::Contradiction {
                path: path.to_owned(),
                problem,
                help: help.to_owned(),
            })
        };
        if spec.replication.class.is_empty() {
            return refuse(
                "no class of flows".to_owned(),
                "declare it as [[replication.class]] with id, state_length and first_lease",
            );
        }
        if !spec.shards.is_power_of_two() {
            return refuse(
                format!("shards = {}", spec.shards),
                "the number of shards is a power of two",
            );
        }
        let mut ids = BTreeSet::new();
        if let Some(class) = spec
            .replication
            .class
            .iter()
            .find(|class| !ids.insert(class.id))
        {
            return refuse(
                format!("two classes have id = {}", class.id),
                "the first byte of a key tells the classes apart: give each its own",
            );
        }
        if let Some(lab) = &spec.lab
            && let Some(sketches) = &lab.sketches
        {
            for value in [&sketches.limit, &sketches.bound] {
                let number = lab.values.get(value).map(|value| value.parse::<u64>());
                if !matches!(number, Some(Ok(_))) {
                    return refuse(
                        format!("the sketches need a number `{value}`"),
                        "declare it among the values of [lab], as a text of digits",
                    );
                }
            }
        }
        Ok(spec)
    }

    /// The class of the program's own keys.
    pub fn class(&self) -> &Class {
        &self.replication.class[0]
    }

    /// The class whose first states are made in this way, if there is one.
    pub fn class_made(&self, first_lease: &str) -> Option<&Class> {
        let mut classes = self.replication.class.iter();
        classes.find(|class| class.first_lease == first_lease)
    }

    /// The part of a deployment's file that belongs to the application: tables of the section
    /// `[replication]`.
    pub fn store_file(&self) -> String {
        let section = BTreeMap::from([("replication", &self.replication)]);
        // Tables with text keys, which TOML can always write.
        toml::to_string(&section).unwrap_or_default()
    }

    /// The application that the variant of this name is.
    fn into_variant(mut self, name: &str) -> Option<Self> {
        let variant = self.variant.remove(name)?;
        self.macros.extend(variant.macros);
        if !variant.class.is_empty() {
            self.replication.class = variant.class;
        }
        self.lab = None;
        Some(self)
    }
}

/// The room of an application that comes with Stateplane, and its [`Spec`].
#[derive(Debug)]
pub struct Room {
    folder: &'static str,
    name: &'static str,
    variant: bool,
    spec: OnceLock<Spec>,
}

impl Room {
    /// The room `name` in `folder`, a path from the repository's root.
    pub const fn new(folder: &'static str, name: &'static str) -> Self {
        Self {
            folder,
            name,
            variant: false,
            spec: OnceLock::new(),
        }
    }

    /// The variant `name` of the application with the room `folder`, a path from the repository's
    /// root.
    pub const fn variant(folder: &'static str, name: &'static str) -> Self {
        Self {
            folder,
            name,
            variant: true,
            spec: OnceLock::new(),
        }
    }

    /// Name of the application.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if it is a variant of the application whose room it has.
    pub fn is_variant(&self) -> bool {
        self.variant
    }

    /// The room's folder, as a path from the repository's root.
    pub fn folder(&self) -> String {
        if self.variant {
            self.folder.to_owned()
        } else {
            format!("{}/{}", self.folder, self.name)
        }
    }

    /// Main file of the program, as a path from the repository's root.
    pub fn path(&self) -> String {
        format!("{}/{}", self.folder(), self.program)
    }

    fn read(&self) -> Result<Spec, SpecError> {
        let path = format!("{}/{FILE}", self.folder());
        let found = text(&path).ok_or_else(|| SpecError::File {
            path: path.clone(),
            reason: "not among the built-in files".to_owned(),
        })?;
        let spec = Spec::parse(&path, found)?;
        if !self.variant {
            return Ok(spec);
        }
        spec.into_variant(self.name)
            .ok_or_else(|| SpecError::Contradiction {
                path,
                problem: format!("there is no variant {}", self.name),
                help: format!("declare it as [variant.{}]", self.name),
            })
    }
}

impl Deref for Room {
    type Target = Spec;

    /// The room's `app.toml`, which is part of the binary, as every test of the application reads.
    fn deref(&self) -> &Spec {
        self.spec.get_or_init(|| match self.read() {
            Ok(spec) => spec,
            Err(error) => panic!("{error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: &str = "program = \"sources.p4\"\nshards = 4\n\
                           [[replication.class]]\nid = 200\nstate_length = 8\nfirst_lease = \"zero\"\n\
                           idle_timeout_s = { default = 300 }\n";

    fn refused(text: &str, replaced: &str, by: &str) -> SpecError {
        let text = text.replace(replaced, by);
        Spec::parse("app.toml", &text).expect_err(&text)
    }

    #[test]
    fn the_store_is_told_what_app_toml_says_of_it() {
        let spec = Spec::parse("app.toml", SOURCES).expect("a whole file");
        let class = spec.class();
        assert_eq!((class.id, class.state_length), (200, 8));
        let told: toml::Table = toml::from_str(&spec.store_file()).expect("TOML");
        let all: toml::Table = toml::from_str(SOURCES).expect("TOML");
        assert_eq!(told.get("replication"), all.get("replication"));
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn a_file_that_names_a_system_is_read_as_that_systems() {
        let text =
            "system = \"coordination\"\nprogram = \"switch.p4\"\nmacros = { RING = \"8\" }\n";
        let file = AppFile::parse("app.toml", text).expect("a whole file");
        assert_eq!(file.program(), "switch.p4");
        assert_eq!(file.macros()["RING"], "8");
        let replicated = AppFile::parse("app.toml", SOURCES).expect("a whole file");
        assert!(matches!(replicated, AppFile::Replicated(_)));
        let unknown = text.replace("coordination", "telepathy");
        let error = AppFile::parse("app.toml", &unknown).expect_err("no such system");
        assert_eq!(error.code(), "APP003");
        assert!(error.to_string().contains("`telepathy`"), "{error}");
        let error = AppFile::parse("app.toml", &format!("{text}shards = 4\n"));
        assert_eq!(error.expect_err("a field of replication").code(), "APP002");
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let error = refused(SOURCES, "shards = 4", "shards = 3");
        assert_eq!(error.code(), "APP003");
        let error = refused(SOURCES, "shards = 4", "shard = 4");
        assert_eq!(error.code(), "APP002");
        assert!(error.to_string().contains("line 2"), "{error}");
        let error = refused(SOURCES, "id = 200", "id = 300");
        assert_eq!(error.code(), "APP002");
        let twice = format!(
            "{SOURCES}[[replication.class]]\nid = 200\nstate_length = 1\nfirst_lease = \"none\"\n"
        );
        assert_eq!(refused(&twice, "", "").code(), "APP003");
        let sketches = format!(
            "{SOURCES}[lab]\nabout = \"-\"\nvalues = {{ limit = \"few\", bound = \"4\" }}\n\
             sketches = {{ slots = 8, limit = \"limit\", bound = \"bound\" }}\n"
        );
        assert!(refused(&sketches, "", "").to_string().contains("`limit`"));
    }
}
