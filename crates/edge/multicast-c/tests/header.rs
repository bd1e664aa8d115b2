//! The header says what the library has: functions, codes, structures. A C compiler looks at it
//! (the tests that need one say so where there is none).
#![allow(unsafe_code)]

use core::mem::offset_of;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use stateplane_multicast_c::{
    ABI, Code, EventKind, Id, Message, Place, SenderEvent, StateplaneMulticastOptions,
};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn header() -> String {
    fs::read_to_string(folder().join("include/stateplane_multicast.h")).expect("the header")
}

/// The compiler's word for what is wrong with a source, or nothing; `None` without a compiler.
fn compile(compiler: &str, flags: &[&str], source: &str, kind: &str) -> Option<String> {
    let file = tempfile::Builder::new().suffix(kind).tempfile();
    let file = file.expect("a file");
    fs::write(file.path(), source).expect("a source");
    let compiled = Command::new(compiler)
        .args(["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .args(flags)
        .arg("-I")
        .arg(folder().join("include"))
        .arg(file.path())
        .output();
    match compiled {
        Ok(output) if output.status.success() => Some(String::new()),
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "not tried: {compiler}: {error}");
            None
        }
    }
}

/// `READY_NOW` of `ReadyNow`.
fn capitals(name: &str) -> String {
    let mut capitals = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !capitals.is_empty() {
            capitals.push('_');
        }
        capitals.push(letter.to_ascii_uppercase());
    }
    capitals
}

macro_rules! layout {
    ($($type:ty as $name:literal { $($field:ident),* })*) => {{
        let mut asserted = String::new();
        let mut equal = |what: String, number: usize| {
            asserted += &format!("_Static_assert({what} == {number}, \"{what}\");\n");
        };
        $(
            let name = concat!("stateplane_multicast_", $name);
            equal(format!("sizeof({name})"), size_of::<$type>());
            $(
                let field = stringify!($field);
                equal(format!("offsetof({name}, {field})"), offset_of!($type, $field));
            )*
        )*
        asserted
    }};
}

#[test]
fn structures_and_numbers_are_those_of_the_library() {
    let mut asserted = layout! {
        StateplaneMulticastOptions as "options" {
            size, controllers, address, keys, timeout_us, lanes, queue
        }
        Id as "id" { number, session, lane, reserved }
        Place as "place" { time, group, reserved }
        SenderEvent as "event" { kind, refusal, id, at }
        Message as "message" { id, at, payload, length, groups, reserved }
    };
    let mut numbers = vec![("ABI".to_owned(), ABI as i32)];
    let codes = Code::ALL.iter();
    numbers.extend(codes.map(|code| (capitals(&format!("{code:?}")), *code as i32)));
    let kinds = [EventKind::Complete, EventKind::Refused, EventKind::Unknown];
    numbers.extend(kinds.map(|kind| (capitals(&format!("{kind:?}")), kind as i32)));
    for (name, number) in &numbers {
        let name = format!("STATEPLANE_MULTICAST_{name}");
        asserted += &format!("_Static_assert({name} == {number}, \"{name}\");\n");
    }
    let source = format!("#include \"stateplane_multicast.h\"\n{asserted}");
    if let Some(said) = compile("cc", &["-std=c11"], &source, ".c") {
        assert_eq!(said, "");
        let wrong = source.replace("STATEPLANE_MULTICAST_FULL == 8", "8 == 9");
        assert!(compile("cc", &["-std=c11"], &wrong, ".c").is_some_and(|said| !said.is_empty()));
    }
    // The header has no number that the library lacks.
    let text = header();
    let named = text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("#define ");
        let (name, _) = line.split_once(" = ")?;
        name.strip_prefix("STATEPLANE_MULTICAST_")
    });
    let known: BTreeSet<&str> = numbers.iter().map(|(name, _)| name.as_str()).collect();
    for name in named {
        assert!(known.contains(name), "{name}");
    }
}

#[test]
fn the_header_is_c99_and_cpp() {
    let source = "#include \"stateplane_multicast.h\"\nint main(void) { return 0; }\n";
    for standard in ["-std=c99", "-std=c17"] {
        if let Some(said) = compile("cc", &[standard], source, ".c") {
            assert_eq!(said, "");
        }
    }
    if let Some(said) = compile("c++", &["-std=c++11"], source, ".cc") {
        assert_eq!(said, "");
    }
}

/// C's name of a type of an argument or an answer.
fn in_c(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(of) = rust.strip_prefix("*const ") {
        return format!("const {} *", in_c(of).trim_end());
    }
    if let Some(of) = rust.strip_prefix("*mut ") {
        return format!("{} *", in_c(of)).replace("* *", "**");
    }
    let own = match rust {
        "c_char" => return "char".to_owned(),
        "usize" => return "size_t".to_owned(),
        "u8" => return "uint8_t".to_owned(),
        "u32" => return "uint32_t".to_owned(),
        "u64" => return "uint64_t".to_owned(),
        "i32" => return "int32_t".to_owned(),
        "SenderHandle" => "sender",
        "ReceiverHandle" => "receiver",
        "StateplaneMulticastOptions" => "options",
        "Id" => "id",
        "SenderEvent" => "event",
        "Message" => "message",
        other => panic!("no name in C for {other}"),
    };
    format!("stateplane_multicast_{own}")
}

/// Names and types of the exported functions, as C declares pointers to them.
fn exported() -> BTreeSet<(String, String)> {
    let sources = fs::read_dir(folder().join("src")).expect("sources");
    let paths = sources.map(|entry| entry.expect("an entry").path());
    let mut found = BTreeSet::new();
    for path in paths.collect::<Vec<PathBuf>>() {
        let text = fs::read_to_string(path).expect("a source");
        for part in text.split("#[unsafe(no_mangle)]").skip(1) {
            let (_, part) = part.split_once("extern \"C\" fn ").expect("a function");
            let (name, part) = part.split_once('(').expect("arguments");
            let (arguments, part) = part.split_once(')').expect("arguments");
            let (answer, _) = part.split_once('{').expect("a body");
            let answer = answer
                .trim()
                .strip_prefix("->")
                .map_or("void".to_owned(), in_c);
            let arguments: Vec<String> = arguments
                .split(',')
                .filter(|argument| !argument.trim().is_empty())
                .map(|argument| in_c(argument.split_once(':').expect("a type").1))
                .collect();
            let arguments = match arguments.as_slice() {
                [] => "void".to_owned(),
                arguments => arguments.join(", "),
            };
            let pointer = format!("{answer} (*p{})({arguments}) = {name};", found.len());
            found.insert((name.to_owned(), pointer));
        }
    }
    found
}

#[test]
fn functions_are_those_of_the_library() {
    let exported = exported();
    assert!(exported.len() >= 16, "{exported:?}");
    let pointers = exported.iter().map(|(_, pointer)| pointer.as_str());
    let pointers: String = pointers.collect::<Vec<_>>().join("\n");
    let source = format!("#include \"stateplane_multicast.h\"\n{pointers}\n");
    if let Some(said) = compile("cc", &["-std=c11"], &source, ".c") {
        assert_eq!(said, "", "{source}");
    }
    let text = header();
    let declared = text
        .split("stateplane_multicast_")
        .skip(1)
        .filter_map(|part| {
            let (name, _) = part.split_once('(')?;
            let word = name
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '_');
            word.then(|| format!("stateplane_multicast_{name}"))
        });
    let declared: BTreeSet<String> = declared.collect();
    let names: BTreeSet<String> = exported.into_iter().map(|(name, _)| name).collect();
    assert_eq!(declared, names);
}
