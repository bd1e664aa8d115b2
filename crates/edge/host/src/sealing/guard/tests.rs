use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::*;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MESSAGE: &[u8] = b"twenty-four bytes or more";

fn hex(byte: u8) -> String {
    format!("00{}", format!("{byte:02x}").repeat(31))
}

fn keys(keys: &[(u16, u8)], accept_only: u16) -> String {
    let keys = keys.iter().map(|(id, byte)| {
        format!(
            "{{ id = {id}, hex = \"{}\", accept_only = {} }}",
            hex(*byte),
            *id == accept_only
        )
    });
    keys.collect::<Vec<_>>().join(", ")
}

fn text(id: u32, peer: u32, address: Ipv4Addr, keys: &str) -> String {
    format!("id = {id}\n[[peer]]\nid = {peer}\naddress = \"{address}\"\nkeys = [{keys}]\n")
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// Files of the ends 1 (at [`A`]) and 2 (at [`B`]).
struct Pair {
    folder: tempfile::TempDir,
    ends: [Guard; 2],
}

impl Pair {
    fn path(folder: &tempfile::TempDir, end: usize) -> PathBuf {
        folder.path().join(format!("{}.toml", end + 1))
    }

    fn new() -> Pair {
        let folder = tempfile::tempdir().unwrap();
        let text_of = |end| Pair::text(end, &keys(&[(1, 1)], 0));
        let ends = [0, 1].map(|end| {
            write(&Pair::path(&folder, end), &text_of(end));
            Guard::read(&Pair::path(&folder, end)).unwrap()
        });
        Pair { folder, ends }
    }

    fn text(end: usize, keys: &str) -> String {
        match end {
            0 => text(1, 2, B, keys),
            _ => text(2, 1, A, keys),
        }
    }

    fn rewrite(&self, end: usize, keys: &str) {
        write(&Pair::path(&self.folder, end), &Pair::text(end, keys));
    }

    /// Sends from end 0 to end 1 until a message passes, at most three times.
    fn passes(&mut self) -> bool {
        let [a, b] = &mut self.ends;
        (0..3).any(|_| {
            let mut bytes = MESSAGE.to_vec();
            bytes.extend(a.seal(B, MESSAGE).unwrap());
            match b.open(0, A, &bytes) {
                Opened::Message { from: 1, length } => length == MESSAGE.len(),
                Opened::Refused { answer, .. } => {
                    if let Some(answer) = answer {
                        a.open(0, B, &answer.0);
                    }
                    false
                }
                other => panic!("{other:?}"),
            }
        })
    }
}

#[test]
fn a_message_passes_from_its_own_address_only() {
    let mut pair = Pair::new();
    assert!(pair.passes());
    let [a, b] = &mut pair.ends;
    let mut bytes = MESSAGE.to_vec();
    bytes.extend(a.seal(B, MESSAGE).unwrap());
    assert!(matches!(b.open(0, B, &bytes), Opened::Refused { .. }));
    assert_eq!(b.wrong_address(), 1);
    assert_eq!(a.seal(A, MESSAGE), None);
    assert_eq!(a.counters().unknown_receiver, 1);
}

/// Two peers, of whom each could send what it has from the other.
#[test]
fn a_peer_does_not_speak_from_the_address_of_another() {
    let third = Ipv4Addr::new(10, 0, 0, 3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("2.toml");
    let both = text(2, 1, A, &keys(&[(1, 1)], 0));
    let other = text(2, 3, third, &keys(&[(1, 3)], 0)).replace("id = 2\n", "");
    write(&path, &(both + &other));
    let mut pair = Pair::new();
    pair.ends[1] = Guard::read(&path).unwrap();
    assert!(pair.passes());
    let [a, b] = &mut pair.ends;
    let mut bytes = MESSAGE.to_vec();
    bytes.extend(a.seal(B, MESSAGE).unwrap());
    assert!(matches!(b.open(0, third, &bytes), Opened::Refused { .. }));
    assert_eq!(b.wrong_address(), 1);
}

/// A switch of multicast speaks from two addresses under one number, and no other peer from either.
#[test]
fn a_peer_may_have_a_second_address() {
    let (second, third) = (Ipv4Addr::new(10, 0, 1, 1), Ipv4Addr::new(10, 0, 0, 3));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("2.toml");
    let named = format!("address = \"{A}\"");
    let both = format!("{named}\ncontrol_address = \"{second}\"");
    let first = text(2, 1, A, &keys(&[(1, 1)], 0)).replace(&named, &both);
    let other = text(2, 3, third, &keys(&[(1, 3)], 0)).replace("id = 2\n", "");
    write(&path, &(first.clone() + &other));
    let mut pair = Pair::new();
    pair.ends[1] = Guard::read(&path).unwrap();
    assert!(pair.passes());
    let [a, b] = &mut pair.ends;
    let sealed = |a: &mut Guard| {
        let trailer = a.seal(B, MESSAGE).unwrap();
        [MESSAGE, &trailer].concat()
    };
    let message = Opened::Message {
        from: 1,
        length: MESSAGE.len(),
    };
    assert_eq!(b.open(0, second, &sealed(a)), message);
    assert!(matches!(
        b.open(0, third, &sealed(a)),
        Opened::Refused { .. }
    ));
    assert_eq!(b.wrong_address(), 1);
    assert!(b.seal(second, MESSAGE).is_some());
    // It is no other peer's.
    let twice = other.replace(&third.to_string(), &second.to_string());
    write(&path, &(first + &twice));
    assert_eq!(Guard::read(&path).unwrap_err().code(), "H306");
}

/// Nothing that a stranger sends costs more than the look at its address, or is answered.
#[test]
fn bytes_of_a_stranger_are_not_looked_into() {
    let Pair {
        ends: [mut a, mut b],
        ..
    } = Pair::new();
    let mut bytes = MESSAGE.to_vec();
    bytes.extend(a.seal(B, MESSAGE).unwrap());
    let before = *b.counters();
    for bytes in [&bytes[..], b"short", &[0; 100]] {
        let refused = Opened::Refused {
            refusal: Refusal::UnknownSender,
            answer: None,
        };
        assert_eq!(b.open(0, Ipv4Addr::new(192, 0, 2, 9), bytes), refused);
    }
    assert_eq!((*b.counters(), b.wrong_address()), (before, 3));
}

#[test]
fn files_are_read_again_when_they_change() {
    let mut pair = Pair::new();
    assert!(pair.passes());
    let mut now = 0;
    let mut step = |pair: &mut Pair, end: usize, keys: &str| {
        pair.rewrite(end, keys);
        now += LOOK_PERIOD;
        pair.ends[end].look(now).unwrap();
        assert!(pair.passes(), "{end}");
    };
    for end in [0, 1] {
        step(&mut pair, end, &keys(&[(1, 1), (2, 2)], 2));
    }
    for end in [0, 1] {
        step(&mut pair, end, &keys(&[(1, 1), (2, 2)], 0));
    }
    for end in [0, 1] {
        step(&mut pair, end, &keys(&[(2, 2)], 0));
    }
    assert_eq!(pair.ends[1].counters().lives, 1);
}

#[test]
fn a_new_file_that_is_wrong_is_told_once_and_changes_nothing() {
    let mut pair = Pair::new();
    assert!(pair.passes());
    pair.rewrite(1, "");
    let mut now = LOOK_PERIOD;
    assert_eq!(pair.ends[1].look(now).unwrap_err().code(), "SEAL003");
    now += LOOK_PERIOD;
    pair.ends[1].look(now).unwrap();
    assert!(pair.passes());
    fs::remove_file(Pair::path(&pair.folder, 1)).unwrap();
    now += LOOK_PERIOD;
    assert_eq!(pair.ends[1].look(now).unwrap_err().code(), "H301");
    assert!(pair.passes());
}

#[test]
fn wrong_files_are_refused_without_telling_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.toml");
    let refused = |text: &str| {
        write(&path, text);
        let error = Guard::read(&path).unwrap_err();
        assert!(!error.to_string().contains("5eed5eed"), "{error}");
        error.code()
    };
    let secret = "5eed".repeat(16);
    let line = |keys: &str| text(1, 2, B, keys);
    assert_eq!(refused("id = 1\n[[pear]]"), "H303");
    assert_eq!(
        refused(&line(&format!("{{ id = 1, hex = \"{secret}\" "))),
        "H303"
    );
    assert_eq!(refused(&line("{ id = 1, hex = \"5eed5eed\" }")), "H304");
    assert_eq!(refused(&line("{ id = 1 }")), "H305");
    assert_eq!(refused(&line("{ id = 1, file = \"none\" }")), "H301");
    let twice = line(&keys(&[(1, 1)], 0));
    let more = twice.replace("id = 1\n", "").replace("id = 2", "id = 3");
    assert_eq!(refused(&(twice.clone() + &more)), "H306");
    assert_eq!(refused(&line(&keys(&[(1, 1)], 1))), "SEAL006");
    write(&path, &twice);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert_eq!(Guard::read(&path).unwrap_err().code(), "H302");
}

#[test]
fn keys_may_lie_in_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.toml");
    write(&path, &text(1, 2, B, "{ id = 1, file = \"one.key\" }"));
    write(&folder.path().join("one.key"), &(hex(7) + "\n"));
    let mut guard = Guard::read(&path).unwrap();
    write(&folder.path().join("one.key"), "short");
    assert_eq!(guard.look(0).unwrap_err().code(), "H304");
    fs::set_permissions(folder.path().join("one.key"), Permissions::from_mode(0o644)).unwrap();
    assert_eq!(Guard::read(&path).unwrap_err().code(), "H302");
}
