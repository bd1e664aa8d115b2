//! Finds a function of the running kernel by name in its type information
//! (BTF, `Documentation/bpf/btf.rst` of Linux).

use std::path::Path;

/// File in which the kernel describes its types.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
const KIND_FUNC: u32 = 12;

/// The number by which a program calls the kernel's function `name`, if the kernel has it
/// and says so.
pub(super) fn kernel_function(name: &str) -> Option<i32> {
    function(&std::fs::read(Path::new(KERNEL)).ok()?, name)
}

fn function(btf: &[u8], name: &str) -> Option<i32> {
    let half = |at: usize| Some(u16::from_ne_bytes(btf.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_ne_bytes(btf.get(at..at + 4)?.try_into().ok()?));
    if half(0)? != MAGIC {
        return None;
    }
    let header = word(4)? as usize;
    let types = header + word(8)? as usize;
    let types_end = types + word(12)? as usize;
    let strings = header + word(16)? as usize;
    let is_named = |offset: u32| {
        btf.get(strings + offset as usize..)
            .and_then(|text| text.strip_prefix(name.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&0))
    };
    let mut at = types;
    let mut number = 1;
    while at < types_end {
        let info = word(at + 4)?;
        let members = (info & 0xffff) as usize;
        let kind = info >> 24 & 0x1f;
        if kind == KIND_FUNC && is_named(word(at)?) {
            return Some(number);
        }
        at += 12 + bytes_after(kind, members)?;
        number += 1;
    }
    None
}

/// Bytes that follow the three common words of a type.
fn bytes_after(kind: u32, members: usize) -> Option<usize> {
    Some(match kind {
        // int, var, declaration tag
        1 | 14 | 17 => 4,
        // pointer, forward, typedef, volatile, const, restrict, function, float, type tag
        2 | 7..=12 | 16 | 18 => 0,
        // array
        3 => 12,
        // struct, union, data section, 64-bit enum
        4 | 5 | 15 | 19 => members * 12,
        // enum, function prototype
        6 | 13 => members * 8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut types: Vec<u32> = vec![
            // int, with its encoding
            1,
            1 << 24,
            4,
            32,
        ];
        // A prototype of two parameters, then two functions.
        types.extend([0, 13 << 24 | 2, 1, 1, 1, 1, 1]);
        types.extend([5, 12 << 24, 2]);
        types.extend([9, 12 << 24, 2]);
        let strings = b"\0int\0fun\0function\0";
        let mut btf = MAGIC.to_ne_bytes().to_vec();
        btf.extend([1, 0]);
        for word in [24, 0, types.len() as u32 * 4, types.len() as u32 * 4] {
            btf.extend(u32::to_ne_bytes(word));
        }
        btf.extend((strings.len() as u32).to_ne_bytes());
        for word in &types {
            btf.extend(word.to_ne_bytes());
        }
        btf.extend(strings);
        btf
    }

    #[test]
    fn a_function_is_found_by_its_whole_name() {
        assert_eq!(function(&sample(), "fun"), Some(3));
        assert_eq!(function(&sample(), "function"), Some(4));
        assert_eq!(function(&sample(), "int"), None);
        assert_eq!(function(&sample(), "func"), None);
    }

    #[test]
    fn damaged_types_have_no_functions() {
        let whole = sample();
        for length in 0..whole.len() {
            // Strings may be cut; types may not be read beyond the end.
            let _ = function(&whole[..length], "function");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = function(&damaged, "function");
        }
        assert_eq!(function(&whole[..20], "function"), None);
    }
}
