//! Chains that lack members, and waiting for them: what the store and coordination have in common.

use crate::exit::{CommandError, Failure};
use stateplane_host::controller::Degraded;
use std::time::{Duration, Instant};

/// Time between two questions.
const PERIOD: Duration = Duration::from_millis(50);

/// Asks until the answer is true, if there is a time to wait. `system` is the command whose
/// `chains` shows why it is not, `late` says what is missing.
///
/// # Errors
///
/// [`Failure::Expectation`] when the time is over, or the last question's error.
pub fn wait_until(
    system: &str,
    seconds: Option<u64>,
    late: &str,
    mut ask: impl FnMut() -> Result<bool, CommandError>,
) -> Result<(), CommandError> {
    let Some(seconds) = seconds else {
        return Ok(());
    };
    let begin = Instant::now();
    loop {
        // A leader that is gone is followed by another.
        let missing = match ask() {
            Ok(true) => return Ok(()),
            Ok(false) => CommandError::new(
                Failure::Expectation,
                format!("{late} after {seconds} s: `stateplane ctl {system} … chains` shows them"),
            ),
            Err(error) => error,
        };
        if begin.elapsed() >= Duration::from_secs(seconds) {
            return Err(missing);
        }
        std::thread::sleep(PERIOD);
    }
}

/// The number of chains that lack members, since when, and the cost of one more death. `counts` are
/// the chains and the members that each is to have, `names` the system's words for them.
pub fn degraded_lines(degraded: &Degraded, counts: [usize; 2], names: [&str; 2]) -> Vec<String> {
    let ([all, wanted], [chains, members]) = (counts, names);
    let lacking = degraded.chains.iter().map(|(lacks, count)| {
        let whole = wanted.saturating_sub(*lacks);
        format!("{count} of {all} {chains}: {whole} of {wanted} {members}")
    });
    let mut lines: Vec<String> = lacking.collect();
    lines.push(format!(
        "{members} are missing for {} s",
        degraded.for_ms / 1000
    ));
    if degraded.down > 0 {
        lines.push(format!(
            "{} {chains} have no whole copy and serve nobody",
            degraded.down
        ));
    }
    lines.extend(degraded.critical.iter().map(|(address, count)| {
        format!("if {address} dies too, {count} {chains} have no copy and serve nobody")
    }));
    if degraded.down == 0 && degraded.critical.is_empty() {
        lines.push(format!(
            "one more failure loses no state and stops none of the {chains}"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_one_more_death_is_told() {
        let mut degraded = Degraded {
            chains: [(1, 3)].into(),
            for_ms: 4_900,
            ..Degraded::default()
        };
        assert_eq!(
            degraded_lines(&degraded, [8, 3], ["groups", "members"]),
            [
                "3 of 8 groups: 2 of 3 members",
                "members are missing for 4 s",
                "one more failure loses no state and stops none of the groups",
            ]
        );
        degraded.down = 1;
        degraded.critical.insert([10, 0, 0, 2].into(), 2);
        let lines = degraded_lines(&degraded, [8, 3], ["groups", "members"]);
        assert_eq!(
            lines[2..],
            [
                "1 groups have no whole copy and serve nobody",
                "if 10.0.0.2 dies too, 2 groups have no copy and serve nobody",
            ]
        );
    }

    #[test]
    fn a_wait_ends_with_the_first_yes_or_with_its_time() {
        let mut asked = 0;
        let answered = wait_until("store", Some(5), "late", || {
            asked += 1;
            Ok(asked == 2)
        });
        assert!(answered.is_ok());
        assert!(wait_until("store", None, "late", || panic!("asked")).is_ok());
        let late = wait_until("store", Some(0), "chains change", || Ok(false));
        assert!(late.unwrap_err().message().contains("ctl store"));
    }
}
