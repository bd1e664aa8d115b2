//! Numbers as people read them.

/// A number with a comma between thousands.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of at most five characters: up to 9,999 as it is, beyond with three digits and a unit.
pub fn short(value: f64) -> String {
    if value < 9_999.5 {
        let whole = value >= 100.0 || (value - value.round()).abs() < 0.05;
        return if whole {
            grouped(value.round() as u64)
        } else {
            format!("{value:.1}")
        };
    }
    let units = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (unit, name) = units
        .into_iter()
        .find(|(unit, _)| value >= unit * 0.9995)
        .unwrap_or((1e3, "k"));
    let of = value / unit;
    let digits = if of >= 99.95 {
        0
    } else if of >= 9.995 {
        1
    } else {
        2
    };
    format!("{of:.digits$}{name}")
}

/// A time that is given in µs.
pub fn time(us: f64) -> String {
    let (value, unit) = if us < 999.5 {
        (us, "µs")
    } else if us < 999_500.0 {
        (us / 1e3, "ms")
    } else {
        (us / 1e6, "s")
    };
    if value >= 99.95 || unit == "µs" {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (3.5, "3.5"),
            (42.0, "42"),
            (123.4, "123"),
            (9_999.0, "9,999"),
            (12_345.0, "12.3k"),
            (999_960.0, "1.00M"),
            (245_760.0, "246k"),
            (2.5e9, "2.50G"),
        ];
        for (value, expected) in cases {
            assert_eq!(short(value), expected);
        }
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let cases = [
            (0.0, "0 µs"),
            (850.0, "850 µs"),
            (999.9, "1.0 ms"),
            (1_240.0, "1.2 ms"),
            (240_000.0, "240 ms"),
            (3_400_000.0, "3.4 s"),
        ];
        for (value, expected) in cases {
            assert_eq!(time(value), expected);
        }
    }
}
