//! Two workers beside one, in turns.

use crate::crew::Crew;
use stateplane_bench::{Interval, PAIRS, Report, mean};
use std::sync::atomic::AtomicUsize;

/// Slices of each crew in a pair of measurements.
const SLICES: usize = 10;

/// Work that workers share.
pub trait Work: Sync {
    /// A worker's part: its switch, and the packets that it passes.
    type Lane: Send;

    /// The lanes of so many workers, with locks or, for one alone, without; fewer if some have nothing to do.
    fn lanes(&self, workers: usize, locks: bool) -> Vec<Self::Lane>;

    /// Has a worker pass some packets, and tells how many.
    fn burst(&self, lane: &mut Self::Lane) -> u64;
}

/// Measures `work` on two workers and, as `run` does it, on one without locks; they take turns.
pub fn two_beside_one<W: Work>(report: &mut Report, name: &str, work: &W) {
    let ready = [const { AtomicUsize::new(0) }; 2];
    let burst = |lane: &mut W::Lane| work.burst(lane);
    std::thread::scope(|scope| {
        let two = Crew::start(scope, work.lanes(2, true), &ready[0], &burst);
        let one = Crew::start(scope, work.lanes(1, false), &ready[1], &burst);
        let rates = in_turn([&|| two.slice(), &|| one.slice()]);
        add(report, &format!("{name}: 2 workers"), &rates);
        let gain = Interval::of(gains(&rates));
        println!("workers: {name}: 2 workers against one: {gain}");
    });
}

/// The same beside `other`, which gains what two processors give, and beside one worker that takes locks:
/// all take turns. Gives the lanes of the three crews of `work` back.
pub fn beside_other<W: Work, O: Work>(
    report: &mut Report,
    name: &str,
    work: &W,
    (others_name, other): (&str, &O),
) -> Vec<W::Lane> {
    let ready = [const { AtomicUsize::new(0) }; 5];
    let burst = |lane: &mut W::Lane| work.burst(lane);
    let others_burst = |lane: &mut O::Lane| other.burst(lane);
    std::thread::scope(|scope| {
        let two = Crew::start(scope, work.lanes(2, true), &ready[0], &burst);
        let locked = Crew::start(scope, work.lanes(1, true), &ready[1], &burst);
        let one = Crew::start(scope, work.lanes(1, false), &ready[2], &burst);
        let others_two = Crew::start(scope, other.lanes(2, true), &ready[3], &others_burst);
        let others_one = Crew::start(scope, other.lanes(1, false), &ready[4], &others_burst);
        let [of_two, of_locked, of_one, others_of_two, others_of_one] = in_turn([
            &|| two.slice(),
            &|| locked.slice(),
            &|| one.slice(),
            &|| others_two.slice(),
            &|| others_one.slice(),
        ]);
        let rates = [of_two, of_one];
        add(report, &format!("{name}: 2 workers"), &rates);
        let locks = [of_locked, of_one];
        add(report, &format!("{name}: 1 worker with locks"), &locks);
        let gains = gains(&rates);
        let others_gains = self::gains(&[others_of_two, others_of_one]);
        let name_of_gain = format!("{name}: gain");
        let [own, others_own] = [&gains, &others_gains].map(mean);
        report.measure(&name_of_gain, "times", own, others_name, others_own);
        let against = Interval::of(std::array::from_fn(|pair| gains[pair] / others_gains[pair]));
        println!("workers: {name}: gain against that of {others_name}: {against}");
        let crews = [two, locked, one];
        crews.into_iter().flat_map(Crew::end).collect()
    })
}

/// Rates of contestants that take turns, slice by slice, in each pair of measurements.
fn in_turn<const N: usize>(contestants: [&dyn Fn() -> f64; N]) -> [[f64; PAIRS]; N] {
    for slice in contestants {
        // Caches and branch predictors have seen the work before it counts.
        slice();
    }
    let mut pairs = [[0.0; N]; PAIRS];
    for rates in &mut pairs {
        for turn in 0..SLICES {
            for at in 0..N {
                // Another one begins each time.
                let at = (at + turn) % N;
                rates[at] += contestants[at]() / SLICES as f64;
            }
        }
    }
    std::array::from_fn(|at| pairs.map(|rates| rates[at]))
}

/// Adds the first rates beside those of one worker.
fn add(report: &mut Report, name: &str, [rates, one]: &[[f64; PAIRS]; 2]) {
    report.add(name, mean(rates), "1 worker", mean(one));
}

fn gains([two, one]: &[[f64; PAIRS]; 2]) -> [f64; PAIRS] {
    std::array::from_fn(|pair| two[pair] / one[pair])
}
