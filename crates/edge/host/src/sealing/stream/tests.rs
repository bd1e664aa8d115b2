use std::net::TcpListener;
use std::time::Duration;

use super::*;
use crate::sealing::frames::{guard, guard_of};

const LOCAL: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Ends 1 and 2 of one machine, each with its keys.
fn ends() -> [Mutex<Guard>; 2] {
    [
        Mutex::new(guard(1, 2, LOCAL)),
        Mutex::new(guard(2, 1, LOCAL)),
    ]
}

fn connected() -> [TcpStream; 2] {
    let listener = TcpListener::bind((LOCAL, 0)).unwrap();
    let asker = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (giver, _) = listener.accept().unwrap();
    for stream in [&asker, &giver] {
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
    }
    [asker, giver]
}

/// The asker's bytes, and the giver's outcome.
fn given(
    asker: &Mutex<Guard>,
    giver: &Mutex<Guard>,
    bytes: &[u8],
    most: u64,
) -> (io::Result<Vec<u8>>, io::Result<()>) {
    let [mut asks, mut gives] = connected();
    std::thread::scope(|scope| {
        let gives = scope.spawn(move || give_sealed(giver, &mut gives, || bytes.to_vec()));
        let fetched = fetch_sealed(asker, &mut asks, most);
        drop(asks);
        (fetched, gives.join().unwrap())
    })
}

#[test]
fn bytes_of_any_length_arrive_whole() {
    let [asker, giver] = ends();
    for length in [0, 1, PIECE, PIECE + 1, 5 * PIECE + 7] {
        let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let (fetched, gave) = given(&asker, &giver, &bytes, length as u64);
        assert_eq!(fetched.unwrap(), bytes);
        gave.unwrap();
    }
}

#[test]
fn an_end_that_starts_again_is_served() {
    let [asker, giver] = ends();
    for restarted in 0..4 {
        let fresh = ends();
        let [other_asker, other_giver] = &fresh;
        let asker = if restarted & 1 == 0 {
            &asker
        } else {
            other_asker
        };
        let giver = if restarted & 2 == 0 {
            &giver
        } else {
            other_giver
        };
        let (fetched, gave) = given(asker, giver, b"state", 5);
        assert_eq!(fetched.unwrap(), b"state");
        gave.unwrap();
    }
}

#[test]
fn another_key_is_refused_and_nothing_is_given() {
    let [asker, giver] = ends();
    let other = Mutex::new(guard_of(1, 2, LOCAL, "22"));
    let (fetched, gave) = given(&other, &giver, b"state", 5);
    assert!(fetched.is_err() && gave.is_err());
    assert_eq!(giver.lock().unwrap().counters().forged, 1);
    // A giver under another key gives nothing either.
    let other = Mutex::new(guard_of(2, 1, LOCAL, "22"));
    let (fetched, gave) = given(&asker, &other, b"state", 5);
    assert!(fetched.is_err() && gave.is_err());
}

#[test]
fn more_than_is_wanted_is_refused() {
    let [asker, giver] = ends();
    let (fetched, _) = given(&asker, &giver, &[7; 100], 99);
    assert_eq!(fetched.unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_stranger_is_not_read() {
    let [asker, _] = ends();
    let giver = Mutex::new(guard(2, 1, Ipv4Addr::new(10, 0, 0, 9)));
    let (fetched, gave) = given(&asker, &giver, b"state", 5);
    assert!(fetched.is_err());
    assert_eq!(gave.unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(giver.lock().unwrap().wrong_address(), 0);
}

/// An end that has the keys and says what is of another connection.
#[test]
fn another_connection_says_nothing_in_this_one() {
    let [asker, giver] = ends();
    let [mut asks, mut gives] = connected();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut end = End::new(&giver, &mut gives).unwrap();
            // Until the asker has enough.
            while let Ok(heard) = end.hear() {
                let said = heard.map(|said| (said.kind, said.number ^ 1));
                let answer = match said {
                    Some((Kind::Ask, number)) => Said::new(Kind::Ready, number),
                    Some((_, number)) => Said::new(Kind::Piece, number),
                    None => continue,
                };
                if end.say(answer).is_err() {
                    break;
                }
            }
        });
        let fetched = fetch_sealed(&asker, &mut asks, 5);
        assert_eq!(fetched.unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(asks);
    });
}

/// Passes what two ends say on; `change` may alter, repeat or leave out what the giver says.
fn between(mut change: impl FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send) -> io::Result<Vec<u8>> {
    let [asker, giver] = ends();
    let [mut asks, mut to_asker] = connected();
    let [mut to_giver, mut gives] = connected();
    let bytes = whole();
    std::thread::scope(|scope| {
        scope.spawn(move || give_sealed(&giver, &mut gives, || bytes));
        let mut from_asker = to_asker.try_clone().unwrap();
        let mut on = to_giver.try_clone().unwrap();
        scope.spawn(move || {
            // Ends when either side does.
            _ = io::copy(&mut from_asker, &mut on);
        });
        scope.spawn(move || {
            let mut length = [0; 4];
            while to_giver.read_exact(&mut length).is_ok() {
                let mut frame = vec![0; u32::from_be_bytes(length) as usize];
                if to_giver.read_exact(&mut frame).is_err() {
                    break;
                }
                for frame in change(frame) {
                    let length = (frame.len() as u32).to_be_bytes();
                    if to_asker.write_all(&[&length[..], &frame].concat()).is_err() {
                        break;
                    }
                }
            }
            _ = to_asker.shutdown(std::net::Shutdown::Both);
            _ = to_giver.shutdown(std::net::Shutdown::Both);
        });
        let fetched = fetch_sealed(&asker, &mut asks, 1 << 20);
        _ = asks.shutdown(std::net::Shutdown::Both);
        fetched
    })
}

/// Bytes of three pieces, of which the first two differ.
fn whole() -> Vec<u8> {
    [vec![1; PIECE], vec![2; PIECE], vec![3; 5]].concat()
}

/// True of a sealed piece that is not empty, and of nothing else that a giver says.
fn is_piece(frame: &[u8]) -> bool {
    frame.len() > HEAD + TRAILER_LENGTH
}

/// Pieces that are altered, lost, repeated, cut or come in another order never make wrong bytes.
#[test]
fn what_is_changed_on_the_way_is_refused() {
    assert_eq!(between(|frame| vec![frame]).unwrap(), whole());
    let altered = between(|mut frame| {
        if is_piece(&frame) {
            frame[HEAD] ^= 1;
        }
        vec![frame]
    });
    let mut lost = false;
    let lost = between(|frame| {
        if is_piece(&frame) && !std::mem::replace(&mut lost, true) {
            return vec![];
        }
        vec![frame]
    });
    let twice = between(|frame| {
        let times = 1 + usize::from(is_piece(&frame));
        vec![frame; times]
    });
    let cut = between(|mut frame| {
        if is_piece(&frame) {
            frame.truncate(HEAD + 7);
        }
        vec![frame]
    });
    let mut first = None;
    let swapped = between(|frame| match (is_piece(&frame), first.take()) {
        (true, None) if frame[HEAD] == 1 => {
            first = Some(frame);
            vec![]
        }
        (_, Some(first)) => vec![frame, first],
        _ => vec![frame],
    });
    for (name, fetched) in [
        ("altered", altered),
        ("lost", lost),
        ("twice", twice),
        ("cut", cut),
        ("swapped", swapped),
    ] {
        assert!(fetched.is_err(), "{name}");
    }
}
