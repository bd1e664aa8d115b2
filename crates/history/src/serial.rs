//! Comparison of 32-bit numbers that wrap (RFC 1982).

/// True if `a` comes after `b`, at a distance below 2^31.
pub(crate) fn newer(a: u32, b: u32) -> bool {
    let distance = a.wrapping_sub(b);
    distance != 0 && distance < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::newer;

    #[test]
    fn numbers_wrap() {
        assert!(newer(1, 0));
        assert!(newer(3, u32::MAX - 3));
        assert!(!newer(u32::MAX, 2));
        assert!(!newer(5, 5));
    }
}
