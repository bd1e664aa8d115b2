//! The page of keys: every key of every TOML file.

use super::source::{Field, Shape, Sources, arguments, last_segment};
use syn::Type;

/// A file's kind: its title, its introduction, the struct that reads it and where that stands.
struct Kind {
    title: &'static str,
    about: &'static str,
    file: &'static str,
    name: &'static str,
}

const KINDS: [Kind; 7] = [
    Kind {
        title: "A deployment",
        about: "`stateplane controller --config`, `stateplane store --config`, `stateplane ctl \
                store --config`: one file for all servers and controllers.",
        file: "crates/edge/host/src/deployment.rs",
        name: "Deployment",
    },
    Kind {
        title: "A switch",
        about: "`stateplane run --config`.",
        file: "crates/edge/host/src/switch/file.rs",
        name: "SwitchFile",
    },
    Kind {
        title: "Keys of messages",
        about: "`--keys` of `run`, `store` and `controller` \
                ([message-authentication.md](../message-authentication.md)).",
        file: "crates/edge/host/src/sealing/file.rs",
        name: "KeysFile",
    },
    Kind {
        title: "An engine of sync",
        about: "`stateplane engine --config` ([sync-engine.md](../sync-engine.md)).",
        file: "crates/edge/host/src/sync/file.rs",
        name: "SyncEngineFile",
    },
    Kind {
        title: "A topology of namespaces",
        about: "`stateplane lab up`.",
        file: "crates/tools/lab/src/topology/file.rs",
        name: "File",
    },
    Kind {
        title: "A replicated application",
        about: "`app.toml` in the folder of an application \
                ([your-own-application.md](../your-own-application.md)).",
        file: "crates/apps/src/spec.rs",
        name: "Spec",
    },
    Kind {
        title: "An application of another system",
        about: "`app.toml` of an application that names a `system`.",
        file: "crates/apps/src/spec.rs",
        name: "OtherSpec",
    },
];

/// Words in place of types.
const TYPES: [(&str, &str); 24] = [
    ("bool", "true or false"),
    ("u8", "integer to 255"),
    ("u16", "integer to 65535"),
    ("u32", "integer to 2³²−1"),
    ("u64", "integer"),
    ("usize", "integer"),
    ("NonZeroU32", "integer from 1"),
    ("NonZeroU64", "integer from 1"),
    ("KeyId", "integer to 65535"),
    ("Port", "port's number"),
    ("String", "text"),
    ("PathBuf", "path"),
    ("IpAddr", "IPv4 or IPv6 address, a text"),
    ("Ipv4Addr", "IPv4 address"),
    ("SocketAddr", "address:port"),
    ("SocketAddrV4", "IPv4 address:port"),
    ("Prefix", "IPv4 address/length"),
    ("Mac", "MAC address"),
    ("Setting", "number, true or false, text, or list of these"),
    ("Arguments", "list of values, or table of names and values"),
    ("Table", "table"),
    ("f64", "number"),
    ("Value", "any value"),
    ("i64", "integer"),
];

/// Units by the ends of keys.
const UNITS: [(&str, &str); 9] = [
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_s", "s"),
    ("_mb", "MiB"),
    ("_mbps", "Mb/s"),
    ("_ppm", "ppm"),
    ("_percent", "%"),
    ("_bytes", "bytes"),
    ("mtu", "bytes"),
];

/// The page.
pub fn page(sources: &Sources) -> String {
    let mut page = Page {
        sources,
        text: super::HEAD.to_owned()
            + "# Keys of the TOML files\n\nA key without a default may be left out only where the \
               column says \"–\"; \"needed\" keys may not.\nAn unknown key is refused, with its \
               line.\n",
    };
    for kind in KINDS {
        page.text += &format!("\n## {}\n\n{}\n", kind.title, kind.about);
        page.table("", kind.name, sources.named(kind.file, kind.name));
    }
    page.text
}

/// A table of keys, or of tables, further down.
struct Below {
    header: String,
    name: String,
    shape: Shape,
}

struct Page<'s> {
    sources: &'s Sources,
    text: String,
}

impl Page<'_> {
    /// Adds the keys of `shape`, which stand at `path` in the file, and then those below.
    fn table(&mut self, path: &str, name: &str, shape: &Shape) {
        self.text += "\n| key | type | unit | default | meaning |\n|---|---|---|---|---|\n";
        let mut below = Vec::new();
        for field in &shape.fields {
            self.row(path, name, shape, field, &mut below);
        }
        for Below {
            header,
            name,
            shape,
        } in below
        {
            let path = header.trim_matches(['[', ']']);
            self.text += &format!("\n### `{header}`\n\n{}\n", cell(&shape.docs));
            if shape.is_enum {
                self.variants(&shape)
            } else {
                self.table(path, &name, &shape)
            }
        }
    }

    fn row(&mut self, path: &str, of: &str, shape: &Shape, field: &Field, below: &mut Vec<Below>) {
        let ty = field.ty.as_ref().expect("a field has a type");
        let key = &field.name;
        assert!(
            !field.docs.is_empty(),
            "{}: `{key}` of {of} has no meaning",
            shape.file
        );
        if field.flat {
            self.text += &format!("| any other | | | – | {} |\n", cell(&field.docs));
            return;
        }
        let Form {
            mut words,
            inner,
            optional,
            many,
        } = form(ty);
        if let Some((name, found)) = self.sources.shape(&shape.file, &inner).filter(|_| {
            // A type that reads itself has words of its own.
            words.is_none()
        }) {
            if found.is_enum {
                let names = found
                    .fields
                    .iter()
                    .map(|variant| format!("`\"{}\"`", variant.name));
                words = Some(names.collect::<Vec<_>>().join(", "));
            } else {
                let whole = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                let header = if many {
                    format!("[[{whole}]]")
                } else {
                    format!("[{whole}]")
                };
                words = Some(if many {
                    "tables, below".to_owned()
                } else {
                    "table, below".to_owned()
                });
                let (name, shape) = (name.clone(), found.clone());
                below.push(Below {
                    header,
                    name,
                    shape,
                });
            }
        } else if many {
            words = words.map(|one| format!("list: {one}"));
        }
        let words = words.unwrap_or_else(|| panic!("{}: {of}.{key} has no words", shape.file));
        let usual = self.sources.usual(of, &shape.file, field);
        let said = said(&field.docs);
        if let (Some(usual), Some(said)) = (&usual, &said) {
            let usual = usual.trim_matches('"');
            assert_eq!(
                usual, said,
                "{}: {of}.{key}: default and comment differ",
                shape.file
            );
        }
        let default = match (usual, said) {
            (Some(usual), _) => format!("`{usual}`"),
            (None, Some(said)) => format!("`{said}`"),
            (None, None) => match field.default {
                super::source::Missing::Refused if !optional => "needed".to_owned(),
                _ => "–".to_owned(),
            },
        };
        let unit = UNITS.iter().find(|(end, _)| key.ends_with(end));
        let unit = unit.map_or("", |(_, unit)| unit);
        self.text += &format!(
            "| `{key}` | {words} | {unit} | {default} | {} |\n",
            cell(&field.docs)
        );
    }

    fn variants(&mut self, shape: &Shape) {
        for variant in &shape.fields {
            self.text += &format!("* `\"{}\"`: {}\n", variant.name, cell(&variant.docs));
        }
    }
}

/// A field's type without its wrappers.
struct Form {
    /// Words for it, if it is no struct or enum of ours.
    words: Option<String>,
    inner: Type,
    optional: bool,
    many: bool,
}

fn form(ty: &Type) -> Form {
    let name = last_segment(ty).expect("a key's type is a path");
    let inside = |which: usize| form(&arguments(ty)[which]);
    match name.as_str() {
        "Option" => Form {
            optional: true,
            ..inside(0)
        },
        "Spanned" | "Box" => inside(0),
        "Vec" | "BTreeSet" => Form {
            many: true,
            ..inside(0)
        },
        "BTreeMap" => {
            let value = inside(1);
            let words = value
                .words
                .as_ref()
                .map(|words| format!("table of names: {words}"));
            Form {
                words,
                many: true,
                ..value
            }
        }
        _ => {
            let known = TYPES.iter().find(|(known, _)| *known == name);
            Form {
                words: known.map(|(_, words)| (*words).to_owned()),
                inner: ty.clone(),
                optional: false,
                many: false,
            }
        }
    }
}

/// The default that a comment names: the word before "unless set", if it is a value.
fn said(docs: &str) -> Option<String> {
    let (before, _) = docs.split_once(" unless set")?;
    let word = before
        .rsplit([' ', '('])
        .next()?
        .trim_matches('`')
        .replace(',', "");
    let value = word.starts_with(|first: char| first.is_ascii_digit() || first == '/')
        || ["true", "false", "chain", "replication_shards"].contains(&word.as_str());
    value.then_some(word)
}

/// `text` as the cell of a table.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
