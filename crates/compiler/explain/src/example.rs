//! Examples, and the programs that they are parts of.

/// The declarations that examples may use.
const SHELL: &str = include_str!("shell.p4");

/// The name of the struct that the programs of examples keep between blocks.
const METADATA: &str = "\
struct metadata_t {
    bit<8>  class;
    bit<16> length;
    int<8>  level;
    bool    urgent;
}
";

/// The blocks of the pipeline: name, kind with parameters, body.
const BLOCKS: &[(&str, &str, &str)] = &[
    (
        "MyParser",
        "parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, \
         inout standard_metadata_t standard)",
        "state start { packet.extract(hdr.ethernet); transition accept; }",
    ),
    (
        "MyVerify",
        "control MyVerify(inout headers_t hdr, inout metadata_t meta)",
        "apply {}",
    ),
    (
        "MyIngress",
        "control MyIngress(inout headers_t hdr, inout metadata_t meta, \
         inout standard_metadata_t standard)",
        "apply {}",
    ),
    (
        "MyEgress",
        "control MyEgress(inout headers_t hdr, inout metadata_t meta, \
         inout standard_metadata_t standard)",
        "apply {}",
    ),
    (
        "MyCompute",
        "control MyCompute(inout headers_t hdr, inout metadata_t meta)",
        "apply {}",
    ),
    (
        "MyDeparser",
        "control MyDeparser(packet_out packet, in headers_t hdr)",
        "apply { packet.emit(hdr); }",
    ),
];

/// Part of a program in which an example stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The example is a whole program.
    Program,
    /// Among the declarations at the top level. A block or `metadata_t` that the example
    /// declares takes the place of the usual one.
    Top,
    /// The body of the ingress control.
    Control,
    /// The `apply` block of the ingress control.
    Apply,
    /// The body of the parser.
    States,
}

impl Place {
    /// The place that the word after `p4` in a fence means; no word means [`Place::Top`].
    fn of(word: &str) -> Option<Place> {
        Some(match word {
            "" => Place::Top,
            "program" => Place::Program,
            "control" => Place::Control,
            "apply" => Place::Apply,
            "states" => Place::States,
            _ => return None,
        })
    }

    /// Description of that part for the reader; empty where that is plain.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Place::Program | Place::Top => "",
            Place::Control => "in a control",
            Place::Apply => "in the `apply` block of a control",
            Place::States => "in a parser",
        }
    }
}

/// An example of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The language, as the fence names it: `p4`, `toml`, `console`.
    pub language: &'static str,
    /// Part of the program, for P4; `None` for other languages.
    pub place: Option<Place>,
    /// The example.
    pub text: &'static str,
}

impl Example {
    /// The first fenced block of a piece of Markdown.
    pub(crate) fn parse(markdown: &'static str) -> Option<Example> {
        let (_, rest) = markdown.split_once("```")?;
        let (info, rest) = rest.split_once('\n')?;
        let (text, _) = rest.split_once("```")?;
        let (language, word) = info.split_once(' ').unwrap_or((info, ""));
        let place = match language {
            "p4" => Some(Place::of(word)?),
            _ => None,
        };
        Some(Example {
            language,
            place,
            text,
        })
    }

    /// The whole program that a P4 example is a part of; `None` for other languages.
    #[must_use]
    pub fn program(&self) -> Option<String> {
        let place = self.place?;
        if place == Place::Program {
            return Some(self.text.to_owned());
        }
        let mut program = SHELL.to_owned();
        if !(place == Place::Top && self.text.contains("struct metadata_t ")) {
            program.push('\n');
            program.push_str(METADATA);
        }
        if place == Place::Top {
            program.push('\n');
            program.push_str(self.text);
        }
        for (name, head, body) in BLOCKS {
            let own = match (place, *name) {
                (Place::Top, _) => declares(self.text, name).then_some(String::new()),
                (Place::Control, "MyIngress") | (Place::States, "MyParser") => {
                    Some(format!("{head} {{\n{}}}\n", self.text))
                }
                (Place::Apply, "MyIngress") => {
                    Some(format!("{head} {{\napply {{\n{}}}\n}}\n", self.text))
                }
                _ => None,
            };
            program.push('\n');
            program.push_str(&own.unwrap_or_else(|| format!("{head} {{\n    {body}\n}}\n")));
        }
        program.push_str(
            "\nV1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;\n",
        );
        Some(program)
    }
}

/// True if the text declares a parser or control of this name.
fn declares(text: &str, name: &str) -> bool {
    ["parser", "control"].iter().any(|kind| {
        text.lines()
            .any(|line| line.starts_with(&format!("{kind} {name}(")))
    })
}
