//! The other way to be replicated: by hand, with the library's blocks. It is to stay short, and
//! what docs/your-own-application.md shows of it is to compile.

#![allow(clippy::disallowed_methods)]

use stateplane_compile::{Refused, Source};
use stateplane_syntax::MemoryLoader;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of a program's lines that name replication.
const MOST_LINES: usize = 12;

/// The blocks of the skeleton's program that do not know of replication.
const OWN: &str = "
#include \"ipv4.p4\"
#include \"router.p4\"

const bit<8> CLASS_SOURCES = 77;

struct sources_headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

parser SourcesHeaders(packet_in packet, out sources_headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        transition accept;
    }
}
";

/// Blocks of the skeleton's program that its text leaves out.
const BLOCKS: &str = "
parser SourcesParser(packet_in packet, inout headers_t hdr) {
    SourcesHeaders() own;

    state start {
        own.apply(packet, hdr.own);
        transition accept;
    }
}

control SourcesVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control SourcesComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control SourcesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.own.ethernet);
        packet.emit(hdr.own.ipv4);
    }
}
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A line without its comment.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

/// The programs of `apps` that are replicated by hand, by their names.
fn applications() -> BTreeMap<String, String> {
    let rooms = fs::read_dir(root().join("apps"))
        .expect("a folder")
        .flatten();
    let rooms = rooms.filter(|room| room.path().is_dir());
    let files = rooms.flat_map(|room| fs::read_dir(room.path()).expect("a room").flatten());
    let files = files.filter(|file| file.path().extension().is_some_and(|end| end == "p4"));
    let texts = files.map(|file| {
        let text = fs::read_to_string(file.path()).expect("a program");
        (file.file_name().to_string_lossy().into_owned(), text)
    });
    texts
        .filter(|(_, text)| text.contains("#include \"replication.p4\""))
        .collect()
}

#[test]
fn applications_name_replication_in_few_lines() {
    let applications = applications();
    assert!(applications.contains_key("counter.p4"));
    for (name, text) in &applications {
        let naming = |line: &&str| line.to_lowercase().contains("replicat");
        let lines: Vec<&str> = text.lines().filter(naming).collect();
        assert!(lines.len() <= MOST_LINES, "{name}:\n{}", lines.join("\n"));
        // Few because they are few, not because they are long.
        for line in &lines {
            assert!(code(line).matches(';').count() <= 1, "{name}: {line}");
        }
        let formatted = stateplane_syntax::format(text).expect("it can be read");
        assert!(formatted == *text, "run `stateplane fmt` on {name}");
    }
}

#[test]
fn the_skeleton_of_the_guide_is_a_program() {
    let guide = root().join("docs/your-own-application.md");
    let guide = fs::read_to_string(guide).expect("the guide");
    let (_, rest) = guide.split_once("```p4\n").expect("a skeleton");
    let (skeleton, _) = rest.split_once("```").expect("its end");
    let marker = "// Parser, checksums and deparser of `hdr.own`.\n";
    assert_eq!(skeleton.matches(marker).count(), 1, "{skeleton}");
    let text = skeleton.replace(marker, BLOCKS);
    let loader = MemoryLoader::new()
        .with("main.p4", text)
        .with("sources.p4", OWN);
    let compiled = Source::new(loader, "main.p4").compile();
    assert!(
        compiled.program.is_some() && compiled.diagnostics.is_empty(),
        "{}",
        Refused {
            diagnostics: compiled.diagnostics,
            sources: compiled.sources,
        }
    );
    assert_eq!(
        stateplane_syntax::format(skeleton).ok().as_deref(),
        Some(skeleton)
    );
}
