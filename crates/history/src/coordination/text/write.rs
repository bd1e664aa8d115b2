//! Histories are written, one event a line.

use crate::coordination::event::{
    Asked, Condition, CoordinationEvent, Event, EventKind, History, Number, Request, Response, Seen,
};
use std::fmt;

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.system.groups.is_empty() {
            let groups: Vec<_> = self.system.groups.iter().map(|of| of.0.as_ref()).collect();
            let within = self.system.serves_within;
            writeln!(f, "serves groups={} within={within}", groups.join(","))?;
        }
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}

struct Hexadecimal<'a>(&'a [u8]);

impl fmt::Display for Hexadecimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Absent => f.write_str("absent"),
            Self::Present => f.write_str("present"),
            Self::Number(number) => write!(f, "number:{}", Number(*number)),
            Self::Value(value) => write!(f, "value:{}", Hexadecimal(value)),
            Self::Token(number) => write!(f, "token:{}", Number(*number)),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, condition) = match &self.asked {
            Asked::Read => ("read", &Condition::None),
            Asked::Write(_, condition) => ("write", condition),
            Asked::Delete(condition) => ("delete", condition),
            Asked::Acquire(true) => ("wait", &Condition::None),
            Asked::Acquire(false) => ("acquire", &Condition::None),
            Asked::Release => ("release", &Condition::None),
        };
        write!(f, "ask={word} key={}", self.key)?;
        if let Asked::Write(value, _) = &self.asked {
            write!(f, " value={}", Hexadecimal(value))?;
        }
        if *condition != Condition::None {
            write!(f, " condition={condition}")?;
        }
        if self.token != 0 {
            write!(f, " token={}", Number(self.token))?;
        }
        if let Some(guard) = &self.guard {
            write!(f, " guard={} if={}", guard.key, guard.condition)?;
        }
        if self.holder.session != 0 {
            write!(f, " session={}", self.holder.session)?;
        }
        if self.holder.handle != 0 {
            write!(f, " handle={}", self.holder.handle)?;
        }
        match self.until {
            Some(until) => write!(f, " until={until}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "outcome={} number={}", self.outcome, Number(self.number))?;
        if let Some(token) = self.token {
            write!(f, " token={}", Number(token))?;
        }
        self.seen
            .as_ref()
            .map_or(Ok(()), |seen| write!(f, "{seen}"))
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " kind={}", self.kind)?;
        if self.number != 0 {
            write!(f, " record={}", Number(self.number))?;
        }
        match &self.value {
            Some(value) => write!(f, " value={}", Hexadecimal(value)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.at)?;
        match &self.kind {
            EventKind::Call {
                node,
                object,
                operation,
                request,
            } => write!(
                f,
                "call client={node} group={object} operation={operation} {request}"
            ),
            EventKind::Return {
                node,
                object,
                operation,
                response,
            } => write!(
                f,
                "return client={node} group={object} operation={operation} {response}"
            ),
            EventKind::Send { content, .. } | EventKind::Deliver { content, .. } => {
                match *content {}
            }
            EventKind::Died { node } => write!(f, "died node={node}"),
            EventKind::Of(event) => write!(f, "{event}"),
        }
    }
}

impl fmt::Display for CoordinationEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown {
                node,
                group,
                operation,
                before,
            } => write!(
                f,
                "unknown client={node} group={group} operation={operation}{}",
                before.map_or(String::new(), |before| format!(" before={before}"))
            ),
            Self::Adopted {
                switch,
                group,
                epoch,
                part,
            } => write!(
                f,
                "adopted switch={switch} group={group} epoch={epoch} part={part}"
            ),
            Self::Applied {
                switch,
                group,
                number,
                digest,
            } => write!(
                f,
                "applied switch={switch} group={group} number={} digest={digest:x}",
                Number(*number)
            ),
            Self::Told {
                node,
                group,
                told,
                number,
                key,
                value,
            } => {
                write!(
                    f,
                    "told client={node} group={group} what={told} number={}",
                    Number(*number)
                )?;
                if let Some(key) = key {
                    write!(f, " key={key}")?;
                }
                match value {
                    Some(value) => write!(f, " value={}", Hexadecimal(value)),
                    None => Ok(()),
                }
            }
            Self::Scanned {
                node,
                group,
                list,
                scanned,
                number,
                key,
                seen,
            } => {
                write!(
                    f,
                    "scanned client={node} group={group} list={list} what={scanned} number={}",
                    Number(*number)
                )?;
                if let Some(key) = key {
                    write!(f, " key={key}")?;
                }
                seen.as_ref().map_or(Ok(()), |seen| write!(f, "{seen}"))
            }
            Self::Whole => f.write_str("whole"),
        }
    }
}
