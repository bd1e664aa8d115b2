//! Messages between multicast's controller and the hosts of its switches, senders and receivers.
//!
//! One UDP datagram each: [`MAGIC`], one byte of type, then the fields of the message in order,
//! big-endian. `docs/message-layouts.md` has the tables, `docs/multicast-protocol.md` the rules.
//! They go to the controller's port ([`crate::control::PORT`]).
//!
//! An answer is never longer than its request, so that a forged source address gains nothing: a
//! request is padded to the length of the answer, or has room for as many rows as the asker takes.

use core::net::Ipv4Addr;

use crate::table::header;

pub use message::{Beat, Group, Message, Row, leaders_within, room_for_leaders, rows_within};

mod message;

/// First bytes of every message.
pub const MAGIC: [u8; 4] = *b"SPM1";

/// Members and receivers of a group, each numbered from 0: as many as the switches' program has.
pub const MOST_NUMBERS: u8 = 8;

/// Most slots of sessions: bits of [`Beat::held`].
pub const MOST_SLOTS: u16 = 256;

/// Slot of no session.
pub const NO_SLOT: u16 = u16::MAX;

/// Number of no receiver.
pub const NO_NUMBER: u8 = u8::MAX;

/// Numbers of a lane that one session has: the bits below those of its incarnation (rule 21).
pub const NUMBERS_OF_A_SESSION: u64 = 1 << 24;

/// Bytes of zeros behind a BEAT, as room for rows of the answer.
pub const ROOM_OF_BEAT: u16 = 1024;

header! {
    layout pub LAYOUT = "multicast control message",
        then "what its type says, in the tables below";
    length FRONT_LENGTH = 5;
    #[derive(Debug, Clone, Copy)]
    struct Front {}
    fields {
        MAGIC 32 magic: [u8; 4]   => "`SPM1`";
        TYPE   8 message_type: u8 =>
            "1 BEAT, 2 VIEW, 3 LEARN, 4 LEADERS, 5 OPEN, 6 OPENED, 7 CLOSE, 8 CLOSED, 9 JOIN, \
             10 JOINED";
    }
}

header! {
    layout pub BEAT_LAYOUT = "BEAT, behind the type", then "the standings, and room bytes of zeros";
    length BEAT_LENGTH = 63;
    #[derive(Debug, Clone, Copy)]
    struct BeatFront {}
    fields {
        SWITCH_ID   32 switch: u32      => "number of the switch";
        INCARNATION 32 incarnation: u32 => "which start of it";
        NUMBER      64 number: u64      => "counted by the start";
        CONTROLLER  32 controller: u32  =>
            "the controller's start that counted the version; 0 if none is known";
        VERSION     64 version: u64     => "version of the view that the switch follows";
        HELD       256 held: [u8; 32]   =>
            "bit 7 - s % 8 of byte s / 8: a log of the switch holds an entry of slot s, whose \
             session is ended";
        COUNT        8 count: u8        => "number of standings";
        ROOM        16 room: u16        => "bytes of zeros behind, as room for rows of the answer";
    }
}

header! {
    layout pub STANDING_LAYOUT = "standing in a BEAT";
    length STANDING_LENGTH = 60;
    /// How far a switch is in a group.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Standing {}
    fields {
        GROUP             8 group: u8              => "the group";
        FLAGS             8 flags: u8              => "1 the switch leads";
        PROMISED         32 promised: u32          => "the epoch that it promised";
        BASE             32 base: u32              => "index up to which its log is freed";
        END              32 end: u32               => "its last index";
        COMMIT           32 commit: u32            => "index up to which its log is committed";
        LACKS_MEMBERS     8 lacks_members: u8      =>
            "of a leader: members that do not match the oldest entry, while it is not committed";
        LACKS_RECEIVERS   8 lacks_receivers: u8    =>
            "of a leader: receivers that do not have the oldest entry";
        LACKS_DECIDED    32 lacks_decided: u32     =>
            "of a leader: groups that did not decide the oldest entry";
        LACKS_DONE       32 lacks_done: u32        =>
            "of a leader: groups that did not say DONE of it";
        RECEIVED        256 received: [u8; 32]     =>
            "of a leader: index up to which each receiver has all, 4 bytes each";
    }
}

header! {
    layout pub VIEW_LAYOUT = "VIEW, behind the type", then "the rows, each behind one byte: 1 a \
        group, 2 a session";
    length VIEW_LENGTH = 21;
    #[derive(Debug, Clone, Copy)]
    struct ViewFront {}
    fields {
        CONTROLLER 32 controller: u32 => "which start of the controller counts the versions";
        AFTER      64 after: u64      => "version after which these rows changed";
        VERSION    64 version: u64    => "version of the last of these rows";
        COUNT       8 count: u8       => "number of rows";
    }
}

header! {
    layout pub GROUP_LAYOUT = "row of a group in a VIEW", then "the members and the receivers";
    length GROUP_LENGTH = 17;
    #[derive(Debug, Clone, Copy)]
    struct GroupFront {}
    fields {
        GROUP      8 group: u8         => "the group";
        RECORD    32 record: u32       => "number of the controller's decision; it grows";
        EPOCH     32 epoch: u32        => "its epoch (rule 6)";
        LEADER    32 leader: Ipv4Addr  => "address of the leader; 0 while there is none";
        LIST      16 list: u16         => "version of the list of receivers (rule 26)";
        MEMBERS    8 members: u8       => "number of members";
        RECEIVERS  8 receivers: u8     => "number of receivers";
    }
}

header! {
    layout pub MEMBER_LAYOUT = "member in a row of a group";
    length MEMBER_LENGTH = 14;
    /// One start of a switch in a group.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Member {}
    fields {
        NUMBER       8 number: u8         => "its number in the group, from 0 to 7";
        ROLE         8 role: u8           =>
            "0 member, 1 learner, 2 of an earlier configuration: it answers and gets no PROP";
        SWITCH_ID   32 switch: u32        => "number of the switch";
        INCARNATION 32 incarnation: u32   => "which start of it";
        ADDRESS     32 address: Ipv4Addr  => "its address";
    }
}

header! {
    layout pub RECEIVER_LAYOUT = "receiver in a row of a group";
    length RECEIVER_LENGTH = 5;
    /// A receiver of a group.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Receiver {}
    fields {
        NUMBER   8 number: u8        => "its number in the group, from 0 to 7";
        ADDRESS 32 address: Ipv4Addr => "its address";
    }
}

header! {
    layout pub SESSION_LAYOUT = "row of a session in a VIEW";
    length SESSION_LENGTH = 4;
    /// Lanes of a session's slot.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Session {}
    fields {
        SLOT  16 slot: u16 => "slot of the session";
        LANES  8 lanes: u8 => "lanes granted; 0: no START is taken for it";
        STATE  8 state: u8 =>
            "0 nobody has it, 1 open, 2 ended: the switch says whether a log holds an entry of it";
    }
}

header! {
    layout pub LEARN_LAYOUT = "LEARN of multicast, behind the type", then "room bytes of zeros";
    length LEARN_LENGTH = 6;
    /// A host asks for the leaders; who has a session keeps it so.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Learn {}
    fields {
        SLOT        16 slot: u16        => "slot of the host's session; 65,535: it has none";
        INCARNATION 16 incarnation: u16 => "the session's incarnation";
        ROOM        16 room: u16        => "bytes of zeros behind, as room for the answer, at least 13";
    }
}

header! {
    layout pub LEADERS_LAYOUT = "LEADERS, behind the type", then "the rows";
    length LEADERS_LENGTH = 19;
    #[derive(Debug, Clone, Copy)]
    struct LeadersFront {}
    fields {
        CONTROLLER  32 controller: u32      => "which start of the controller";
        SLOT        16 slot: u16            => "of the LEARN";
        INCARNATION 16 incarnation: u16     => "of the LEARN";
        OPEN         8 open: u8             => "1: the session is open";
        PADDING     72 padding: [u8; 9]     => "0";
        COUNT        8 count: u8            => "number of rows";
    }
}

header! {
    layout pub LEADER_LAYOUT = "row in a LEADERS";
    length LEADER_LENGTH = 9;
    /// Leader of a group.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Leader {}
    fields {
        GROUP    8 group: u8         => "the group";
        EPOCH   32 epoch: u32        => "its epoch";
        LEADER  32 leader: Ipv4Addr  => "address of the leader; 0 while there is none";
    }
}

header! {
    layout pub OPEN_LAYOUT = "OPEN of multicast, behind the type";
    length OPEN_LENGTH = 24;
    #[derive(Debug, Clone, Copy)]
    struct OpenFront {}
    fields {
        NONCE    64 nonce: u64        => "drawn by the sender: a repeated OPEN has the same";
        LANES     8 lanes: u8         => "lanes wanted, at least 1";
        PADDING 120 padding: [u8; 15] => "0";
    }
}

header! {
    layout pub OPENED_LAYOUT = "OPENED of multicast, behind the type";
    length OPENED_LENGTH = 24;
    /// A session and its lanes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Opened {}
    fields {
        NONCE       64 nonce: u64       => "of the OPEN";
        SLOT        16 slot: u16        => "slot of the session; 65,535: no slot or lane is free";
        INCARNATION 16 incarnation: u16 =>
            "the session's incarnation: the 16 high bits of the numbers of its messages";
        LANES        8 lanes: u8        => "lanes granted, at most as many as wanted";
        GROUPS      32 groups: u32      => "map of the groups of the deployment";
        LONGEST     16 longest: u16     => "bytes of the longest payload";
        TTL_MS      32 ttl_ms: u32      => "ms without a LEARN after which the session is ended";
        REASON       8 reason: u8       => "0 opened, 1 no slot is free, 2 no lane is free";
    }
}

header! {
    layout pub CLOSE_LAYOUT = "CLOSE of multicast, behind the type";
    length CLOSE_LENGTH = 19;
    #[derive(Debug, Clone, Copy)]
    struct CloseFront {}
    fields {
        SLOT        16 slot: u16          => "slot of the session that is to end";
        INCARNATION 16 incarnation: u16   => "its incarnation";
        PADDING    120 padding: [u8; 15]  => "0";
    }
}

header! {
    layout pub CLOSED_LAYOUT = "CLOSED, behind the type";
    length CLOSED_LENGTH = 19;
    #[derive(Debug, Clone, Copy)]
    struct ClosedFront {}
    fields {
        SLOT        16 slot: u16          => "slot of the session that is ended";
        INCARNATION 16 incarnation: u16   => "its incarnation";
        PADDING    120 padding: [u8; 15]  => "0";
    }
}

header! {
    layout pub JOIN_LAYOUT = "JOIN, behind the type";
    length JOIN_LENGTH = 29;
    #[derive(Debug, Clone, Copy)]
    struct JoinFront {}
    fields {
        NONCE    64 nonce: u64        => "drawn by the receiver: a repeated JOIN has the same";
        GROUP     8 group: u8         => "the group";
        NUMBER    8 number: u8        => "its number in the list; 255: it is to be listed";
        POSITION 32 position: u32     => "index up to which it has all";
        LEAVES    8 leaves: u8        => "1: it is to be taken off the list";
        PADDING 112 padding: [u8; 14] => "0";
    }
}

header! {
    layout pub JOINED_LAYOUT = "JOINED, behind the type";
    length JOINED_LENGTH = 29;
    /// A receiver's place in the list of its group.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Joined {}
    fields {
        NONCE      64 nonce: u64      => "of the JOIN";
        GROUP       8 group: u8       => "the group";
        STATE       8 state: u8       =>
            "0 not yet, 1 it is on the list of the leader, 2 the list is full, 3 it is not on the \
             list, 4 there is no such group";
        NUMBER      8 number: u8      => "its number in the list";
        LIST       16 list: u16       => "version of the list";
        WINDOW     32 window: u32     => "entries of the group's window";
        FROM_INDEX 32 from_index: u32 => "index behind which the leader keeps all for it";
        FROM_TIME  64 from_time: u64  =>
            "what has a greater final timestamp is behind that index; 0: it was told before";
    }
}

/// Flag of a [`Standing`]: the switch leads.
pub const LEADS: u8 = 1;

/// Role of a [`Member`].
pub mod role {
    /// A member of the present configuration.
    pub const MEMBER: u8 = 0;
    /// It learns (rule 12).
    pub const LEARNER: u8 = 1;
    /// Of an earlier configuration that is not settled (rule 11).
    pub const FORMER: u8 = 2;
}

/// State of a [`Session`].
pub mod slot {
    /// Nobody has the slot.
    pub const FREE: u8 = 0;
    /// A session has it.
    pub const OPEN: u8 = 1;
    /// Its session is ended, and logs may hold entries of it (rule 21).
    pub const ENDED: u8 = 2;
}

/// State of a [`Joined`].
pub mod joined {
    /// The leader does not know of it yet.
    pub const WAITS: u8 = 0;
    /// It is on the list of the leader.
    pub const LISTED: u8 = 1;
    /// The list has no place.
    pub const FULL: u8 = 2;
    /// It is not on the list: it was taken off.
    pub const TAKEN_OFF: u8 = 3;
    /// There is no such group.
    pub const NO_GROUP: u8 = 4;
}

/// Reason in an [`Opened`].
pub mod reason {
    /// The session is open.
    pub const OPENED: u8 = 0;
    /// No slot is free.
    pub const NO_SLOT: u8 = 1;
    /// No lane is free (rule 22).
    pub const NO_LANE: u8 = 2;
}

#[cfg(test)]
mod tests;
