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
//! | `expect PORT [PATTERN]` | the next frame sent by the port is such, or any |
//! | `add TABLE [PRIORITY] KEY:MATCH … ACTION([NAME:]VALUE, …) [= HANDLE]` | adds an entry; the greatest priority wins |
//! | `setdefault TABLE ACTION([NAME:]VALUE, …)` | sets the default action |
//! | `register_write NAME INDEX VALUE` | writes an element |
//! | `register_read NAME INDEX [== VALUE]` | reads an element, and compares it |
//! | `register_reset NAME` | sets all elements to 0 |
//! | `check_counter NAME(INDEX) [packets\|bytes] OP NUMBER` | compares a counter; OP is `==`, `!=`, `<`, `<=`, `>` or `>=` |
//! | `mirroring_add SESSION PORT [truncate BYTES] [hold MICROSECONDS]` | makes a mirror session |
//! | `mc_mgrp_create GROUP` | makes a multicast group |
//! | `mc_node_create RID PORT …` | makes a node; nodes are numbered from 0 |
//! | `mc_node_associate GROUP NODE` | adds a node to a group |
//! | `wait` | nothing: the switch is always done with a command before the next |
//! | `remove all` | empties all tables |
//!
//! A match is a value, a value with `*` for digits that do not count (`0x1*`), a
//! prefix `VALUE/LENGTH`, a value and mask `VALUE&&&MASK`, a range `LOW..HIGH`, or
//! `_`; keys that are not named match anything. `HEADER.$valid$` is the key `isValid()`. A
//! value is a number (`10`, `0x0a`), an IPv4, IPv6 or MAC address.
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
//! | `expect_none [PORT]` | no frame was sent that was not expected yet |
//! | `ignore [PORT]` | forgets frames that were sent and not expected |
//! | `check_dropped REASON OP NUMBER` | compares a drop counter of the switch |
//! | `generator PORT MICROSECONDS HEX` | starts a packet generator |
//!
//! `expect` looks at what was sent so far, and a frame that nobody expected by the
//! end of the script is an error, told with the line that caused it. Time begins at
//! one second.
//!
//! Comments of the form `# program: FILE`, relative to the script, and
//! `# define: NAME` or `# define: NAME=VALUE` say which program is tested.

mod error;
mod parse;
mod pattern;
mod run;
mod script;

pub use error::{Cause, StfError};
pub use parse::parse;
pub use pattern::Pattern;
pub use run::{START_US, run};
pub use script::{Call, Command, Comparison, CounterUnit, Line, Script};
