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

/// What the asker gets and whether the giver was content.
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
    // Who gives under another key gives nothing either.
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
}

/// Passes what two ends say on; `change` may alter, repeat or leave out what the giver says.
fn between(change: impl Fn(usize, Vec<u8>) -> Vec<Vec<u8>> + Send) -> io::Result<Vec<u8>> {
    let [asker, giver] = ends();
    let [mut asks, mut to_asker] = connected();
    let [mut to_giver, mut gives] = connected();
    let bytes = vec![9; 2 * PIECE + 5];
    std::thread::scope(|scope| {
        scope.spawn(move || give_sealed(&giver, &mut gives, || bytes));
        let mut from_asker = to_asker.try_clone().unwrap();
        let mut on = to_giver.try_clone().unwrap();
        scope.spawn(move || {
            // Ends when either side does.
            _ = io::copy(&mut from_asker, &mut on);
        });
        scope.spawn(move || {
            let mut count = 0;
            let mut length = [0; 4];
            while to_giver.read_exact(&mut length).is_ok() {
                let mut frame = vec![0; u32::from_be_bytes(length) as usize];
                if to_giver.read_exact(&mut frame).is_err() {
                    break;
                }
                // Answers pass: pieces and READY are counted.
                let changed = if frame.len() == ANSWER_LENGTH {
                    vec![frame]
                } else {
                    count += 1;
                    change(count, frame)
                };
                for frame in changed {
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

/// Pieces that are altered, lost, repeated or cut on the way never make wrong bytes.
#[test]
fn what_is_changed_on_the_way_is_refused() {
    let whole = between(|_, frame| vec![frame]).unwrap();
    assert_eq!(whole, vec![9; 2 * PIECE + 5]);
    let length = |frame: &Vec<u8>| frame.len() > HEAD + TRAILER_LENGTH;
    let altered = between(|_, mut frame| {
        if length(&frame) {
            frame[HEAD] ^= 1;
        }
        vec![frame]
    });
    let lost = between(|_, frame| {
        let place = &frame[HEAD - 16..HEAD - 8];
        if length(&frame) && place == [0; 8] {
            vec![]
        } else {
            vec![frame]
        }
    });
    let twice = between(|_, frame| {
        if length(&frame) {
            vec![frame.clone(), frame]
        } else {
            vec![frame]
        }
    });
    let cut = between(|_, mut frame| {
        if length(&frame) {
            frame.truncate(HEAD + 7);
        }
        vec![frame]
    });
    for (name, fetched) in [
        ("altered", altered),
        ("lost", lost),
        ("twice", twice),
        ("cut", cut),
    ] {
        assert!(fetched.is_err(), "{name}");
    }
}
