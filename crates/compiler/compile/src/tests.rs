use super::*;

const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
#include \"headers.p4\"
struct headers_t { ethernet_t ethernet; }
struct metadata_t { }
parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control C(inout headers_t h, inout metadata_t m) { apply { } }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = PORT; }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t h) { apply { } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
";

#[test]
fn a_text_compiles_with_the_library_and_its_macros() {
    let source = text(PROGRAM).define("PORT", "3");
    assert!(source.program().is_ok());
    assert_eq!(source.compile().diagnostics.iter().count(), 0);
    assert!(source.tree().is_ok());
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let refused = text(PROGRAM).program().expect_err("`PORT` is undefined");
    let told = refused.to_string();
    assert!(told.contains("program.p4:11"), "{told}");
    assert!(told.contains("PORT"), "{told}");
    assert_eq!(format!("{refused:?}"), told);
    let unread = text("header {").tree().expect_err("no name");
    assert!(unread.to_string().contains("program.p4:1"), "{unread}");
}

#[test]
fn a_file_is_read_by_the_caller_with_what_it_includes() {
    let read = |path: &str| match path {
        "a/main.p4" => Some("#include <port.p4>\n#include \"rest.p4\"\n".to_owned()),
        "a/rest.p4" => Some(PROGRAM.to_owned()),
        "own/port.p4" => Some("#define PORT 3\n".to_owned()),
        _ => None,
    };
    let source = file("a/main.p4", read);
    assert!(source.program().is_err());
    let source = source.include_dirs(["own".to_owned()]);
    if let Err(refused) = source.program() {
        panic!("{refused}");
    }
    assert!(file("a/none.p4", read).program().is_err());
}

#[test]
fn a_built_in_program_compiles() {
    if let Err(refused) = shipped("apps/nat/nat.p4").program_and_interface() {
        panic!("{refused}");
    }
    assert!(shipped("apps/nat/none.p4").program().is_err());
}
