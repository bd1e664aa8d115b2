//! Facts about the parts of a variable: the fields of structs and headers, the elements of header
//! stacks and the members of header unions.

use std::ops::Range;
use std::rc::Rc;

/// Elements of one stack that are followed.
pub(super) const MAX_ELEMENTS: usize = 32;

/// Facts about one variable.
pub(super) const MAX_FACTS: usize = 4096;

/// Facts about a header, before those of its fields.
pub(super) const HEADER_FACTS: usize = 2;

/// The facts about a value of a type, by their distance from the first one.
#[derive(Debug)]
pub(super) enum Layout<'t> {
    /// Nothing is followed.
    Opaque,
    /// One fact: it has a value.
    Scalar,
    /// Those of its fields.
    Struct(Fields<'t>),
    /// That it is invalid for certain, that nothing speaks against its being valid, and those of
    /// its fields.
    Header(Fields<'t>),
    /// Those of its members, of which one at most is valid.
    Union(Fields<'t>),
    /// Those of its elements, and their number.
    Stack(Rc<Layout<'t>>, usize),
}

/// Members, one after the other.
#[derive(Debug, Default)]
pub(super) struct Fields<'t> {
    pub list: Vec<(&'t str, usize, Rc<Layout<'t>>)>,
    pub size: usize,
}

impl<'t> Fields<'t> {
    pub(super) fn push(&mut self, name: &'t str, layout: Rc<Layout<'t>>) {
        let at = self.size;
        self.size += layout.size();
        self.list.push((name, at, layout));
    }

    fn find(&self, name: &str) -> Option<(usize, Rc<Layout<'t>>)> {
        let mut fields = self.list.iter();
        let (_, at, layout) = fields.find(|(field, _, _)| *field == name)?;
        Some((*at, layout.clone()))
    }
}

/// Kind of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// A scalar outside of headers has a value.
    Assigned,
    /// A field of a header has a value.
    FieldAssigned,
    /// A header is invalid on every path.
    Invalid,
    /// A header is not known to be invalid on any path.
    Sound,
}

impl<'t> Layout<'t> {
    /// Number of facts.
    pub(super) fn size(&self) -> usize {
        match self {
            Layout::Opaque => 0,
            Layout::Scalar => 1,
            Layout::Struct(fields) | Layout::Union(fields) => fields.size,
            Layout::Header(fields) => HEADER_FACTS + fields.size,
            Layout::Stack(element, count) => element.size() * count,
        }
    }

    /// A member, and how far its facts are from the first one.
    pub(super) fn member(&self, name: &str) -> Option<(usize, Rc<Layout<'t>>)> {
        match self {
            Layout::Struct(fields) | Layout::Union(fields) => fields.find(name),
            Layout::Header(fields) => {
                let (at, layout) = fields.find(name)?;
                Some((HEADER_FACTS + at, layout))
            }
            _ => None,
        }
    }

    /// Calls `f` with each fact, in order.
    pub(super) fn each(&self, at: usize, f: &mut impl FnMut(usize, Fact)) {
        self.each_within(at, Fact::Assigned, f);
    }

    fn each_within(&self, at: usize, scalar: Fact, f: &mut impl FnMut(usize, Fact)) {
        match self {
            Layout::Opaque => {}
            Layout::Scalar => f(at, scalar),
            Layout::Struct(fields) | Layout::Union(fields) => {
                for (_, offset, layout) in &fields.list {
                    layout.each_within(at + offset, scalar, f);
                }
            }
            Layout::Header(fields) => {
                f(at, Fact::Invalid);
                f(at + 1, Fact::Sound);
                for (_, offset, layout) in &fields.list {
                    layout.each_within(at + HEADER_FACTS + offset, Fact::FieldAssigned, f);
                }
            }
            Layout::Stack(element, count) => {
                for position in 0..*count {
                    element.each_within(at + position * element.size(), scalar, f);
                }
            }
        }
    }

    /// True if it has scalars outside of headers.
    pub(super) fn has_scalars(&self) -> bool {
        match self {
            Layout::Opaque | Layout::Header(_) | Layout::Union(_) => false,
            Layout::Scalar => true,
            Layout::Struct(fields) => fields.list.iter().any(|(_, _, field)| field.has_scalars()),
            Layout::Stack(element, _) => element.has_scalars(),
        }
    }
}

/// A place that an expression names.
#[derive(Clone, Debug)]
pub(super) struct Place<'t> {
    /// Number of the local.
    pub id: usize,
    /// First fact; with `spread` that of the first element which it may be in.
    pub at: usize,
    pub layout: Rc<Layout<'t>>,
    /// Number and distance of the elements in one of which it is.
    pub spread: Option<(usize, usize)>,
    /// First fact of the header of which it is a field.
    pub header: Option<usize>,
    /// The union, and the first fact of the member, of which it is a part.
    pub union: Option<(usize, Rc<Layout<'t>>, usize)>,
    /// First fact and layout of the place around it, if it is a part that is not followed.
    pub around: Option<(usize, Rc<Layout<'t>>)>,
}

impl<'t> Place<'t> {
    /// The whole of a local.
    pub(super) fn of(id: usize, at: usize, layout: Rc<Layout<'t>>) -> Place<'t> {
        Place {
            id,
            at,
            layout,
            spread: None,
            header: None,
            union: None,
            around: None,
        }
    }

    /// A member of the place.
    pub(super) fn member(mut self, name: &str) -> Place<'t> {
        let whole = self.layout.clone();
        if let (Layout::Stack(element, count), "next" | "last") = (&*whole, name) {
            return self.element_of(element.clone(), *count, None);
        }
        match whole.member(name) {
            Some((offset, layout)) => {
                if let Layout::Header(_) = *whole {
                    self.header = Some(self.at);
                }
                if let Layout::Union(_) = *whole {
                    self.union = Some((self.at, whole, self.at + offset));
                }
                self.at += offset;
                self.layout = layout;
            }
            None => self.opaque(),
        }
        self
    }

    /// An element of the place; `None` stands for an index that is not known.
    pub(super) fn element(mut self, index: Option<usize>) -> Place<'t> {
        let whole = self.layout.clone();
        match &*whole {
            Layout::Stack(element, count) => self.element_of(element.clone(), *count, index),
            // A tuple.
            Layout::Scalar => self,
            _ => {
                self.opaque();
                self
            }
        }
    }

    fn element_of(
        mut self,
        element: Rc<Layout<'t>>,
        count: usize,
        index: Option<usize>,
    ) -> Place<'t> {
        match index {
            Some(index) if index < count => self.at += index * element.size(),
            Some(_) => {
                self.opaque();
                return self;
            }
            None if self.spread.is_some() => {
                self.opaque();
                return self;
            }
            None => self.spread = Some((count, element.size())),
        }
        self.layout = element;
        self
    }

    fn opaque(&mut self) {
        let layout = std::mem::replace(&mut self.layout, Rc::new(Layout::Opaque));
        self.around.get_or_insert((self.at, layout));
    }

    /// The same fact in each element that the place may be in.
    pub(super) fn copies(&self, fact: usize) -> impl Iterator<Item = usize> + use<> {
        let (count, distance) = self.spread.unwrap_or((1, 0));
        (0..count).map(move |position| fact + position * distance)
    }

    /// All its facts, if it is one place.
    pub(super) fn range(&self) -> Option<Range<usize>> {
        let size = self.layout.size();
        (self.spread.is_none() && self.around.is_none()).then(|| self.at..self.at + size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Rc<Layout<'static>> {
        let mut fields = Fields::default();
        fields.push("a", Rc::new(Layout::Scalar));
        fields.push("b", Rc::new(Layout::Scalar));
        Rc::new(Layout::Header(fields))
    }

    #[test]
    fn parts_have_facts_of_their_own() {
        let mut members = Fields::default();
        members.push("one", header());
        members.push("other", header());
        let union = Rc::new(Layout::Union(members));
        let stack = Rc::new(Layout::Stack(union, 3));
        assert_eq!(stack.size(), 24);
        let whole = Place::of(0, 10, stack);
        let second = whole.clone().element(Some(1)).member("other").member("b");
        assert_eq!(
            (second.at, second.header, second.range()),
            (10 + 8 + 4 + 3, Some(22), Some(25..26))
        );
        let any = whole.clone().element(None).member("one").member("a");
        assert_eq!(any.copies(any.at).collect::<Vec<_>>(), [12, 20, 28]);
        assert!(whole.clone().element(Some(3)).around.is_some());
        assert!(whole.member("no_such").range().is_none());
    }
}
