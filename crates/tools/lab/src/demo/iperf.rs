//! `iperf3`: how it is called and what it prints.

use std::net::Ipv4Addr;

/// TCP port of the `iperf3` server.
pub(super) const PORT: u16 = 5201;
/// The beginning of what a server says when it listens.
pub(super) const LISTENING: &str = "Server listening on";
/// Length of a reported interval in seconds.
pub(super) const INTERVAL_S: f64 = 0.2;

/// A rate over an interval, as `iperf3` prints it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// Seconds since the stream began.
    pub from_s: f64,
    /// Seconds since the stream began.
    pub to_s: f64,
    /// Mb/s.
    pub mbps: f64,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A server for one test, which prints what it received in each interval.
pub(super) fn server() -> Vec<String> {
    let port = PORT.to_string();
    let interval = INTERVAL_S.to_string();
    words(&[
        "iperf3",
        "--server",
        "--one-off",
        "--port",
        &port,
        "--interval",
        &interval,
        "--format",
        "m",
        "--forceflush",
    ])
}

/// A client that sends one TCP stream, as fast as it goes or at a rate. The kernel paces it: the
/// pacing of `iperf3` itself (`--bitrate`) makes up for an outage by a burst.
pub(super) fn client(server: Ipv4Addr, seconds: u64, rate_mbps: Option<u32>) -> Vec<String> {
    let port = PORT.to_string();
    let mut command = words(&[
        "iperf3",
        "--client",
        &server.to_string(),
        "--port",
        &port,
        "--time",
        &seconds.to_string(),
        "--interval",
        "1",
        "--connect-timeout",
        "5000",
        "--format",
        "m",
        "--forceflush",
    ]);
    if let Some(rate) = rate_mbps {
        command.extend(words(&["--fq-rate", &format!("{rate}M")]));
    }
    command
}

/// An interval, if the line tells of one; summaries are none.
pub(super) fn interval(line: &str) -> Option<Interval> {
    let (stream, rest) = line.strip_prefix('[')?.split_once(']')?;
    stream.trim().parse::<u32>().ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.iter().any(|f| ["sender", "receiver"].contains(f)) || *fields.get(1)? != "sec" {
        return None;
    }
    let (from, to) = fields[0].split_once('-')?;
    let unit = fields.iter().position(|field| *field == "Mbits/sec")?;
    let interval = Interval {
        from_s: from.parse().ok()?,
        to_s: to.parse().ok()?,
        mbps: fields.get(unit.checked_sub(1)?)?.parse().ok()?,
    };
    // The remainder at the end of a test is too short for a rate.
    (interval.to_s - interval.from_s > INTERVAL_S / 2.0).then_some(interval)
}

/// The longest time without a byte, in milliseconds.
pub(super) fn longest_stall_ms(intervals: &[Interval]) -> u64 {
    let mut longest = 0.0f64;
    let mut since = None;
    for interval in intervals {
        if interval.mbps > 0.0 {
            since = None;
        } else {
            let from = *since.get_or_insert(interval.from_s);
            longest = longest.max(interval.to_s - from);
        }
    }
    (longest * 1000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn intervals_are_read_and_summaries_are_not() {
        let line = "[  5]   0.20-0.40   sec   505 KBytes  20.7 Mbits/sec                  ";
        let read = interval(line).unwrap();
        assert_eq!((read.from_s, read.to_s, read.mbps), (0.2, 0.4, 20.7));
        for other in [
            "[  5]   0.00-4.04   sec  9.63 MBytes  20.0 Mbits/sec                  receiver",
            "[ ID] Interval           Transfer     Bitrate",
            "[  5] local 198.51.100.2 port 5201 connected to 10.0.1.2 port 40986",
            "[  5]   4.00-4.02   sec  46.7 KBytes  20.2 Mbits/sec",
            "[SUM]   0.00-1.00   sec  1 MBytes  8.0 Mbits/sec",
            "",
        ] {
            assert_eq!(interval(other), None, "{other}");
        }
    }

    #[test]
    fn a_stall_is_the_longest_run_of_nothing() {
        let rates = [1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0];
        let intervals: Vec<_> = rates
            .iter()
            .zip(0u8..)
            .map(|(mbps, index)| Interval {
                from_s: f64::from(index) * 0.2,
                to_s: f64::from(index + 1) * 0.2,
                mbps: *mbps,
            })
            .collect();
        assert_eq!(longest_stall_ms(&intervals), 600);
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_passed(line in "\\[[ 0-9\\]]*[-. 0-9secMbits/]*") {
            let _ = interval(&line);
        }
    }
}
