//! Commands that configure meters.

use crate::parse::element;
use crate::{Cause, Command};
use stateplane_runtime::MeterConfig;

/// Reads `meter_set_rates`, `meter_array_set_rates` or `meter_get_rates`.
pub(crate) fn command(command: &str, words: &[&str]) -> Result<Command, Cause> {
    let [name, rest @ ..] = words else {
        return Err(usage(command));
    };
    let name = name.to_string();
    match (command, rest) {
        ("meter_get_rates", [at]) => Ok(Command::MeterRead {
            name,
            element: element(at),
        }),
        ("meter_set_rates", [at, committed, peak]) => Ok(Command::MeterWrite {
            name,
            element: Some(element(at)),
            config: config(committed, peak)?,
        }),
        ("meter_array_set_rates", [committed, peak]) => Ok(Command::MeterWrite {
            name,
            element: None,
            config: config(committed, peak)?,
        }),
        _ => Err(usage(command)),
    }
}

fn usage(command: &str) -> Cause {
    Cause::Usage(match command {
        "meter_get_rates" => "meter_get_rates NAME INDEX",
        "meter_set_rates" => "meter_set_rates NAME INDEX RATE:BURST RATE:BURST",
        _ => "meter_array_set_rates NAME RATE:BURST RATE:BURST",
    })
}

fn config(committed: &str, peak: &str) -> Result<MeterConfig, Cause> {
    let (committed_rate, committed_burst) = rate(committed)?;
    let (peak_rate, peak_burst) = rate(peak)?;
    Ok(MeterConfig {
        committed_rate,
        committed_burst,
        peak_rate,
        peak_burst,
    })
}

/// `RATE:BURST`: the rate in bytes or packets per microsecond, a decimal fraction, as
/// per second, rounded; the burst in bytes or packets.
fn rate(text: &str) -> Result<(u64, u64), Cause> {
    let wrong = || Cause::Number {
        text: text.to_owned(),
        what: "RATE:BURST, a number per microsecond and a number",
    };
    let (rate, burst) = text.split_once(':').ok_or_else(wrong)?;
    let burst = burst.parse().map_err(|_| wrong())?;
    let rate: f64 = rate.parse().map_err(|_| wrong())?;
    let per_second = (rate * 1e6).round();
    if !(0.0..1e15).contains(&per_second) {
        return Err(wrong());
    }
    Ok((per_second as u64, burst))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_given_per_microsecond() {
        assert_eq!(rate("0.000005:4"), Ok((5, 4)));
        assert_eq!(rate("2:1500"), Ok((2_000_000, 1500)));
        for text in ["1", "1:", ":1", "-1:1", "nan:1", "1e99:1", "1:1.5"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
