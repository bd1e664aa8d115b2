//! Packet tests as text: the Simple Test Framework's scripts (STF), as p4c's test
//! suite writes them, run on the sans-IO switch in virtual time.
//!
//! A script is read line by line; `#` begins a comment, and a `\` at its end
//! continues a line. Names of tables, keys, actions, registers and counters are
//! full or the end of a full name from a dot on.
//!
//! | command | meaning |
//! |---|---|
//! | `packet PORT HEX` | a frame arrives |
//! | `expect PORT [PATTERN]` | the port sends such a frame, or any |
//! | `no_packet` | no frame was sent that was not expected yet |
//! | `add TABLE [PRIORITY] KEY:MATCH … ACTION([NAME:]VALUE, …) [= HANDLE]` | adds an entry; the greatest priority wins, none is 0 |
//! | `setdefault TABLE ACTION([NAME:]VALUE, …)` | sets the default action |
//! | `remove all`, `remove HANDLE` | empties all tables, or removes an entry |
//! | `register_write NAME INDEX VALUE` | writes an element |
//! | `register_read NAME INDEX [== VALUE]` | reads an element, and compares it |
//! | `register_reset NAME` | sets all elements to 0 |
//! | `check_counter NAME(INDEX) [[packets\|bytes] OP NUMBER]` | compares a counter; OP is `==`, `!=`, `<`, `<=`, `>` or `>=` |
//! | `counter_read NAME INDEX` | the element has to exist |
//! | `counter_write NAME INDEX PACKETS BYTES` | writes an element |
//! | `meter_set_rates NAME INDEX RATE:BURST RATE:BURST` | committed and peak rate per microsecond, and bursts |
//! | `meter_array_set_rates NAME RATE:BURST RATE:BURST` | the same for all elements |
//! | `meter_get_rates NAME INDEX` | the element has to exist |
//! | `mirroring_add SESSION PORT [truncate BYTES] [hold MICROSECONDS]` | makes a mirror session |
//! | `mirroring_add_mc SESSION GROUP …` | makes one that copies to a multicast group |
//! | `mirroring_delete SESSION`, `mirroring_get SESSION` | removes one; it has to exist |
//! | `mc_mgrp_create GROUP` | makes a multicast group |
//! | `mc_node_create RID PORT …` | makes a node; nodes are numbered from 0 |
//! | `mc_node_update NODE PORT …` | gives a node other ports |
//! | `mc_node_associate GROUP NODE` | adds a node to a group |
//! | `wait` | 100 ms pass: all that does not wait longer leaves |
//!
//! An INDEX of a direct counter or meter is the number of an entry in the order in which
//! they were added, or its HANDLE.
//!
//! The first frame of a port answers the first `expect` of that port, and so on, whichever
//! of the two comes first in the script. A frame that nothing expects, and an expectation
//! that no frame answers, are errors at the end of the script.
//!
//! A match is a value, a value with `*` for digits that do not count (`0x1*`), a
//! prefix `VALUE/LENGTH`, a value and mask `VALUE&&&MASK`, a range `LOW..HIGH`, or
//! `_`. Of a ternary key the digits that are not written do not count: `0x6` fits 0x16. Keys
//! that are not named match anything, or 0 if they are exact. `HEADER.$valid$` and
//! `HEADER.valid` are the key `isValid()`, `STACK$1` is `STACK[1]`. A value is a number
//! (`10`, `0x0a`), an IPv4, IPv6 or MAC address.
//!
//! A pattern is hexadecimal digits, spaces between them as one likes, with `*` for
//! digits that do not count. The frame may be longer than the pattern, unless `$`
//! stands at the pattern's end.
//!
//! Beyond p4c's dialect:
//!
//! | command | meaning |
//! |---|---|
//! | `advance MICROSECONDS` | time passes; what becomes due happens at its time |
//! | `expect_none [PORT]` | `no_packet`, of one port |
//! | `ignore [PORT]` | forgets frames that were sent and not expected |
//! | `check_dropped REASON OP NUMBER` | compares a drop counter of the switch |
//! | `generator PORT MICROSECONDS HEX` | starts a packet generator |
//! | `include "FILE" [NAME=VALUE …]` | the commands of another script, with values for `$NAME`; it includes none itself |
//! | `member PROFILE NUMBER ACTION([NAME:]VALUE, …)` | adds a member to an action profile |
//! | `group PROFILE NUMBER MEMBER[*WEIGHT] …` | adds a group to an action selector, or changes it |
//! | `add_indirect TABLE [PRIORITY] KEY:MATCH … member\|group NUMBER [= HANDLE]` | adds an entry that runs these |
//! | `value_set_add SET MATCH …` | adds a member to a parser value set |
//! | `set_crc16_parameters POLYNOMIAL FIRST XOR REFLECT_BYTES REFLECT_REMAINDER` | of `crc16_custom`; `set_crc32_parameters` of `crc32_custom` |
//! | `expect_digest NAME VALUE …` | the next digest has these numbers |
//! | `expect_log TEXT` | the next message of the log |
//!
//! Time begins at one second.
//!
//! Comments of the form `# program: FILE`, relative to the script, and
//! `# define: NAME` or `# define: NAME=VALUE` say which program is tested. A switch of
//! these tests takes frames of any length; `# shortest: 14` makes it drop those without an
//! Ethernet header.

mod error;
mod matching;
mod meters;
mod parse;
mod pattern;
mod run;
mod script;

pub use error::{Cause, StfError};
pub use matching::Matching;
pub use parse::{parse, parse_with};
pub use pattern::Pattern;
pub use run::{START_US, run, run_all};
pub use script::{Call, Command, Comparison, CounterUnit, Element, Line, Runs, Script};
