//! Cycles of operations.

use serde::Deserialize;
use stateplane_ir::{BinaryOp, UnaryOp};

/// Cycles that each kind of operation takes, 0 to 1,000. An operation of 0 cycles ends in the cycle
/// of what it works on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Reading an element of a register.
    pub read: u32,
    /// Writing one.
    pub write: u32,
    /// Choosing between values: `?:`, and what the branches of an `if` or `switch` left behind.
    pub select: u32,
    /// `&`, `|`, `^`, `~`, `!`, `&&`, `||`.
    pub logic: u32,
    /// `+`, `-`, saturating or not, and negation.
    pub add: u32,
    /// Comparisons.
    pub compare: u32,
    /// Shifts by an amount that is not constant; others cost nothing.
    pub shift: u32,
    /// `*`.
    pub multiply: u32,
    /// `/` and `%`.
    pub divide: u32,
    /// `hash`, and checksums.
    pub hash: u32,
    /// A table's lookup.
    pub lookup: u32,
}

impl Default for Profile {
    /// One cycle for what an adder does, as for the units of a match-action stage.
    fn default() -> Profile {
        Profile {
            read: 1,
            write: 1,
            select: 1,
            logic: 1,
            add: 1,
            compare: 1,
            shift: 1,
            multiply: 3,
            divide: 16,
            hash: 3,
            lookup: 2,
        }
    }
}

/// Most cycles of one operation.
const MOST: u32 = 1_000;

impl Profile {
    /// Reads a TOML file; what it does not name is as in [`Profile::default`].
    ///
    /// # Errors
    ///
    /// A text for people: no TOML, an unknown operation, more than 1,000 cycles.
    pub fn parse(text: &str) -> Result<Profile, String> {
        let profile: Profile = toml::from_str(text).map_err(|error| error.to_string())?;
        let Profile {
            read,
            write,
            select,
            logic,
            add,
            compare,
            shift,
            multiply,
            divide,
            hash,
            lookup,
        } = profile;
        let all = [
            read, write, select, logic, add, compare, shift, multiply, divide, hash, lookup,
        ];
        match all.iter().find(|cycles| **cycles > MOST) {
            Some(cycles) => Err(format!("{cycles} cycles: an operation has at most {MOST}")),
            None => Ok(profile),
        }
    }

    pub(super) fn unary(&self, op: UnaryOp) -> u32 {
        match op {
            UnaryOp::Not | UnaryOp::Complement => self.logic,
            UnaryOp::Negate => self.add,
        }
    }

    /// `fixed`: the right operand is constant.
    pub(super) fn binary(&self, op: BinaryOp, fixed: bool) -> u32 {
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::AddSat | BinaryOp::SubSat => self.add,
            BinaryOp::Mul => self.multiply,
            BinaryOp::Div | BinaryOp::Mod => self.divide,
            BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::LogicalAnd
            | BinaryOp::LogicalOr => self.logic,
            BinaryOp::Shl | BinaryOp::Shr if fixed => 0,
            BinaryOp::Shl | BinaryOp::Shr => self.shift,
            BinaryOp::Concat => 0,
            BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => self.compare,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_does_not_name_stays() {
        let profile = Profile::parse("multiply = 9\n").expect("a profile");
        assert_eq!((profile.multiply, profile.add), (9, 1));
    }

    #[test]
    fn wrong_files_are_told() {
        for text in ["multiply = 1001\n", "multpily = 3\n", "add = -1\n", "add"] {
            assert!(Profile::parse(text).is_err(), "{text}");
        }
    }
}
