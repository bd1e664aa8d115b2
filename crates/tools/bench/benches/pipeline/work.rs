//! Frames through jobs, against the clock.

use stateplane_bench::limit::Job;
use stateplane_bench::{Report, Sample, timed};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Frames that come together.
const BURST: usize = 32;

/// Bursts of each side whose times are looked at.
const BURSTS: usize = 20_000;

/// Processes one burst; returns the number of frames that left.
#[inline]
fn burst(job: &mut impl Job, frames: &[Vec<u8>], out: &mut Vec<u8>) -> u64 {
    let mut passed = 0;
    for frame in frames {
        job.announce(0, frame);
    }
    for frame in frames {
        if job.frame(0, black_box(frame), out).is_some() {
            passed += u64::from(!black_box(&out).is_empty());
        }
    }
    passed
}

/// Frames through a job, over and over.
pub fn work<'a>(job: &'a mut impl Job, frames: &'a [Vec<u8>]) -> impl FnMut() -> Sample + 'a {
    let mut out = Vec::new();
    move || {
        timed(|| {
            let mut passed = 0;
            for frames in frames.chunks(BURST) {
                passed += burst(job, frames, &mut out);
            }
            black_box(passed);
            frames.len() as u64
        })
    }
}

/// Checks that two jobs treat frames alike.
pub fn check(name: &str, one: &mut impl Job, other: &mut impl Job, frames: &[Vec<u8>]) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut passed = 0;
    for (number, frame) in frames.iter().enumerate() {
        let first = one.frame(0, frame, &mut a);
        let second = other.frame(0, frame, &mut b);
        assert_eq!(
            first, second,
            "{name}: port of frame {number}: {frame:02x?}"
        );
        if first.is_some() {
            assert_eq!(a, b, "{name}: frame {number}: {frame:02x?}");
            passed += 1;
        }
    }
    assert!(
        passed * 2 > frames.len(),
        "{name}: only {passed} of {} frames pass",
        frames.len()
    );
}

/// Appends the time of each whole burst, in nanoseconds for a packet.
fn spread(job: &mut impl Job, frames: &[Vec<u8>], times: &mut Vec<f64>) {
    let mut out = Vec::new();
    let started = Instant::now();
    for frames in frames.chunks_exact(BURST) {
        let start = Instant::now();
        black_box(burst(job, frames, &mut out));
        times.push(start.elapsed().as_nanos() as f64 / BURST as f64);
        if started.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
}

/// The time below which this many of 1000 sorted times are.
fn permille(sorted: &[f64], permille: usize) -> f64 {
    let at = (sorted.len() * permille / 1000).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// Distribution of the time for a packet, of a burst divided by its packets: both sides in turn.
/// Reading the clock is part of it, less than 1 ns for a packet.
pub fn compare_spread(
    report: &mut Report,
    name: &str,
    frames: &[Vec<u8>],
    job: &mut impl Job,
    against: &str,
    other: &mut impl Job,
) {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    while one.len() < BURSTS && frames.len() >= BURST {
        spread(job, frames, &mut one);
        spread(other, frames, &mut two);
    }
    for times in [&mut one, &mut two] {
        times.sort_by(f64::total_cmp);
    }
    for (part, shown) in [(500, "p50"), (990, "p99"), (999, "p99.9")] {
        report.measure(
            &format!("{name}, {shown}"),
            "ns",
            permille(&one, part),
            against,
            permille(&two, part),
        );
    }
}

/// All comparisons of one program.
pub fn program(
    report: &mut Report,
    name: &str,
    frames: &[Vec<u8>],
    native: &mut impl Job,
    interp: &mut impl Job,
    limit: &mut impl Job,
) {
    // Frame by frame, since what a program counts changes what it does.
    let mut reference = Vec::new();
    let mut out = Vec::new();
    for (number, frame) in frames.iter().enumerate() {
        let port = interp.frame(0, frame, &mut reference);
        for (side, job) in [
            ("native", &mut *native as &mut dyn Job),
            ("by hand", &mut *limit as &mut dyn Job),
        ] {
            let same = job.frame(0, frame, &mut out) == port;
            let same = same && (port.is_none() || out == reference);
            assert!(same, "{name}, {side}: frame {number}: {frame:02x?}");
        }
    }
    measure(report, name, frames, native, interp, limit);
}

/// The comparisons of one program whose outputs have been compared.
pub fn measure(
    report: &mut Report,
    name: &str,
    frames: &[Vec<u8>],
    native: &mut impl Job,
    interp: &mut impl Job,
    limit: &mut impl Job,
) {
    report.compare(
        name,
        work(native, frames),
        "hand-written",
        work(limit, frames),
    );
    let some = &frames[..frames.len().min(4096)];
    report.compare(name, work(native, some), "interpreter", work(interp, some));
    compare_spread(report, name, frames, native, "hand-written", limit);
}
