//! Numbers that wrap, compared as RFC 1982 does.

/// True if `a` is newer than `b` in 32-bit serial arithmetic (RFC 1982 §3.2). Of two numbers
/// exactly 2^31 apart, which the RFC leaves undefined, neither is newer.
pub fn newer(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        assert!(newer(1, 0));
        assert!(newer(0, u32::MAX));
        assert!(newer(5, u32::MAX - 5));
        assert!(!newer(u32::MAX, 0));
        assert!(!newer(7, 7));
        assert!(!newer(0, 1 << 31));
        assert!(!newer(1 << 31, 0));
    }
}
