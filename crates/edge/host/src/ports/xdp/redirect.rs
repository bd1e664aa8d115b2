//! The BPF program that gives every frame of an interface to the port's sockets.

use super::bpf::{Attachment, Instruction, Program, SocketMap};
use super::btf::kernel_function;
use std::io;

/// Reads the tag that an interface or its neighbour took out of a frame.
const RX_VLAN_TAG: &str = "bpf_xdp_metadata_rx_vlan_tag";

const HELPER_XDP_ADJUST_HEAD: i32 = 44;
const HELPER_REDIRECT_MAP: i32 = 51;

const XDP_DROP: i32 = 1;

const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;
/// Kept over calls: the context.
const R6: u8 = 6;
/// The end of the stack.
const R10: u8 = 10;

/// Offsets in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;

/// Places on the stack.
const PROTOCOL: i16 = -8;
const CONTROL: i16 = -16;

const fn instruction(opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction {
        opcode,
        registers: from << 4 | to,
        offset,
        immediate,
    }
}

const fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}

const fn set(to: u8, value: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, value)
}

const fn add(to: u8, value: i32) -> Instruction {
    instruction(0x07, to, 0, 0, value)
}

const fn load_word(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x61, to, from, offset, 0)
}

const fn load_half(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x69, to, from, offset, 0)
}

const fn store_word(to: u8, offset: i16, from: u8) -> Instruction {
    instruction(0x63, to, from, offset, 0)
}

const fn store_half(to: u8, offset: i16, from: u8) -> Instruction {
    instruction(0x6b, to, from, offset, 0)
}

const fn store_zero(to: u8, offset: i16) -> Instruction {
    instruction(0x7a, to, 0, offset, 0)
}

const fn big_endian_half(register: u8) -> Instruction {
    instruction(0xdc, register, 0, 0, 16)
}

const fn call(helper: i32) -> Instruction {
    instruction(0x85, 0, 0, 0, helper)
}

const fn call_kernel(function: i32) -> Instruction {
    instruction(0x85, 0, 2, 0, function)
}

const fn skip_if_not_zero(register: u8, count: i16) -> Instruction {
    instruction(0x55, register, 0, count, 0)
}

const fn skip_if_not_greater(left: u8, right: u8, count: i16) -> Instruction {
    instruction(0xbd, left, right, count, 0)
}

const EXIT: Instruction = instruction(0x95, 0, 0, 0, 0);

/// Gives the frame to the socket of its queue; one without a socket is dropped.
fn redirect(map: i32) -> [Instruction; 6] {
    [
        load_word(R2, R6, RX_QUEUE_INDEX),
        instruction(0x18, R1, 1, 0, map),
        instruction(0, 0, 0, 0, 0),
        set(R3, XDP_DROP),
        call(HELPER_REDIRECT_MAP),
        EXIT,
    ]
}

/// Puts the tag that lies beside the frame back behind the addresses.
fn restore_tag(rx_vlan_tag: i32) -> Vec<Instruction> {
    let give_up = [set(R0, XDP_DROP), EXIT];
    let mut insert = vec![copy(R1, R6), set(R2, -4), call(HELPER_XDP_ADJUST_HEAD)];
    // No room for the tag: dropped rather than forwarded without it.
    insert.extend([instruction(0x15, R0, 0, 2, 0)]);
    insert.extend(give_up);
    insert.extend([
        load_word(R2, R6, DATA),
        load_word(R3, R6, DATA_END),
        copy(R4, R2),
        add(R4, 16),
        skip_if_not_greater(R4, R3, 2),
    ]);
    insert.extend(give_up);
    for at in [0, 4, 8] {
        insert.extend([load_word(R5, R2, at + 4), store_word(R2, at, R5)]);
    }
    insert.extend([
        load_half(R5, R10, PROTOCOL),
        store_half(R2, 12, R5),
        load_half(R5, R10, CONTROL),
        big_endian_half(R5),
        store_half(R2, 14, R5),
    ]);
    let mut code = vec![
        store_zero(R10, PROTOCOL),
        store_zero(R10, CONTROL),
        copy(R1, R6),
        copy(R2, R10),
        add(R2, i32::from(PROTOCOL)),
        copy(R3, R10),
        add(R3, i32::from(CONTROL)),
        call_kernel(rx_vlan_tag),
        skip_if_not_zero(R0, insert.len() as i16),
    ];
    code.extend(insert);
    code
}

/// Loads the program and runs it at interface `index`. Says whether it puts tags back.
pub(super) fn attach(map: &SocketMap, index: u32) -> io::Result<(Attachment, bool)> {
    if let Some(function) = kernel_function(RX_VLAN_TAG) {
        let mut code = vec![copy(R6, R1)];
        code.extend(restore_tag(function));
        code.extend(redirect(map.number()));
        if let Ok(program) = Program::load(&code, Some(index)) {
            return Ok((program.attach(index)?, true));
        }
    }
    let mut code = vec![copy(R6, R1)];
    code.extend(redirect(map.number()));
    Ok((Program::load(&code, None)?.attach(index)?, false))
}
