//! A smaller program and session with the same fault.
//!
//! The text is taken for nested groups of brackets with items in them ([`pieces`]), of
//! which items are left out, bodies take the place of the statements around them, and
//! operands that of the expressions around them. Whether what is left is still a
//! program, and still at fault, is for the caller to say; so any program can be
//! reduced, not only a generated one.

mod pieces;

use crate::session::Session;
use pieces::Piece;

/// Reduces `program` and `session` as long as `is_faulty` says yes of what is left, in
/// at most `attempts` calls of it.
pub fn minimise(
    program: &str,
    session: &Session,
    attempts: usize,
    is_faulty: impl FnMut(&str, &Session) -> bool,
) -> (String, Session) {
    let mut search = Search {
        pieces: pieces::read(program),
        text: program.to_owned(),
        session: session.clone(),
        attempts,
        is_faulty,
    };
    // The text as it is written anew may already hide a fault that lies in the layout.
    if !search.try_pieces(search.pieces.clone()) {
        search.reduce_session();
        return (search.text, search.session);
    }
    loop {
        let before = (search.text.len(), search.session.clone());
        search.reduce_session();
        search.reduce_program();
        if before == (search.text.len(), search.session.clone()) || search.attempts == 0 {
            return (search.text, search.session);
        }
    }
}

/// The smallest faulty input so far.
struct Search<F> {
    pieces: Vec<Piece>,
    text: String,
    session: Session,
    attempts: usize,
    is_faulty: F,
}

impl<F: FnMut(&str, &Session) -> bool> Search<F> {
    fn holds(&mut self, text: &str, session: &Session) -> bool {
        if self.attempts == 0 {
            return false;
        }
        self.attempts -= 1;
        (self.is_faulty)(text, session)
    }

    fn try_pieces(&mut self, pieces: Vec<Piece>) -> bool {
        let text = pieces::write(&pieces);
        if !self.holds(&text, &self.session.clone()) {
            return false;
        }
        self.pieces = pieces;
        self.text = text;
        true
    }

    fn try_session(&mut self, session: Session) -> bool {
        if session == self.session || !self.holds(&self.text.clone(), &session) {
            return false;
        }
        self.session = session;
        true
    }

    fn reduce_session(&mut self) {
        self.reduce_list(|session| &mut session.arrivals);
        self.reduce_list(|session| &mut session.updates);
        self.reduce_list(|session| &mut session.writes);
        for index in 0..self.session.arrivals.len() {
            self.reduce_frame(index);
        }
    }

    /// Leaves out elements of a list: half of them at once, then a quarter, and so on.
    fn reduce_list<T>(&mut self, list: impl Fn(&mut Session) -> &mut Vec<T>) {
        let mut size = list(&mut self.session.clone()).len();
        while size > 0 {
            let mut start = 0;
            loop {
                let mut session = self.session.clone();
                let elements = list(&mut session);
                if start >= elements.len() {
                    break;
                }
                let end = (start + size).min(elements.len());
                elements.drain(start..end);
                if !self.try_session(session) {
                    start += size;
                }
            }
            size /= 2;
        }
    }

    /// Shortens a frame, and makes its bytes zero.
    fn reduce_frame(&mut self, index: usize) {
        let mut size = self.session.arrivals[index].frame.len();
        while size > 0 {
            let mut session = self.session.clone();
            let frame = &mut session.arrivals[index].frame;
            let length = frame.len().saturating_sub(size);
            frame.truncate(length);
            if !self.try_session(session) {
                size /= 2;
            }
        }
        let length = self.session.arrivals[index].frame.len();
        let mut size = length;
        while size > 0 {
            for start in (0..length).step_by(size) {
                let mut session = self.session.clone();
                let end = (start + size).min(length);
                session.arrivals[index].frame[start..end].fill(0);
                self.try_session(session);
            }
            size /= 2;
        }
    }

    /// Goes over all groups, the outermost first.
    fn reduce_program(&mut self) {
        let mut open = vec![Vec::new()];
        while let Some(path) = open.pop() {
            self.drop_items(&path);
            self.replace_items(&path);
            let Some(group) = pieces::at(&self.pieces, &path) else {
                continue;
            };
            for (index, piece) in group.iter().enumerate() {
                if matches!(piece, Piece::Group { .. }) {
                    let mut path = path.clone();
                    path.push(index);
                    open.push(path);
                }
            }
        }
    }

    /// Leaves out items of the group at `path`: many at once, then fewer, the last ones
    /// first, since names are used behind their declarations.
    fn drop_items(&mut self, path: &[usize]) {
        let count = |search: &Self| {
            pieces::at(&search.pieces, path).map_or(0, |group| pieces::items(group).len())
        };
        let mut size = count(self);
        while size > 0 {
            let mut end = count(self);
            while end > 0 {
                let start = end.saturating_sub(size);
                let mut pieces = self.pieces.clone();
                if let Some(group) = pieces::at_mut(&mut pieces, path) {
                    let items = pieces::items(group);
                    if let (Some(first), Some(last)) = (items.get(start), items.get(end - 1)) {
                        group.drain(first.start..last.end);
                        self.try_pieces(pieces);
                    }
                }
                end = start;
            }
            size /= 2;
        }
    }

    /// Puts something simpler in the place of each item of the group at `path`.
    fn replace_items(&mut self, path: &[usize]) {
        let mut index = 0;
        while let Some(group) = pieces::at(&self.pieces, path) {
            let items = pieces::items(group);
            let Some(item) = items.get(index).cloned() else {
                return;
            };
            let simpler = pieces::simpler(&group[item.clone()]);
            let simplified = simpler.into_iter().any(|replacement| {
                let mut pieces = self.pieces.clone();
                let Some(group) = pieces::at_mut(&mut pieces, path) else {
                    return false;
                };
                group.splice(item.clone(), replacement);
                self.try_pieces(pieces)
            });
            if !simplified || self.attempts == 0 {
                index += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
