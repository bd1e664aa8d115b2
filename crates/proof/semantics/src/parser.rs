//! Parsers (P4-16 1.2.5, §13).

use crate::Fault;
use crate::machine::{Frame, Machine, Run, Stop};
use crate::statement::Flow;
use crate::value::Value;
use num_bigint::BigInt;
use stateplane_syntax::tree::{
    Keyset, KeysetElement, KeysetElementKind, ParserDecl, ParserLocal, SelectCase, TransitionKind,
};
use std::rc::Rc;

impl<'p> Machine<'p> {
    /// The declarations of a parser whose scope is the innermost one, and its states.
    pub(crate) fn parser(&mut self, decl: &'p ParserDecl) -> Run<()> {
        for local in &decl.locals {
            match local {
                ParserLocal::Variable(decl) => self.variable(decl)?,
                ParserLocal::Const(decl) => self.local_constant(decl)?,
                ParserLocal::Instantiation(_) => {}
                ParserLocal::ValueSet(_) => return Err(Stop::unsupported("a value set")),
            }
        }
        let outer = self.frames.len().checked_sub(1);
        let mut next = "start";
        loop {
            self.step()?;
            if next == "accept" {
                return Ok(());
            }
            // Nothing went wrong, and yet the packet is refused.
            let rejected = || Stop::Reject(Rc::from("NoError"));
            if next == "reject" {
                return Err(rejected());
            }
            let state = decl.states.iter().find(|state| state.name.as_str() == next);
            let state = state.ok_or_else(|| Stop::unsupported("a state that is none"))?;
            self.frames.push(Frame {
                outer,
                ..Frame::default()
            });
            for statement in &state.statements {
                match self.statement(statement)? {
                    Flow::Next => {}
                    _ => return Err(Stop::unsupported("such a statement in a parser")),
                }
            }
            next = match &state.transition {
                None => "reject",
                Some(transition) => match &transition.kind {
                    TransitionKind::Direct(name) => name.as_str(),
                    TransitionKind::Select { subjects, cases } => {
                        let mut values = Vec::new();
                        for subject in subjects {
                            values.push(self.eval(subject)?);
                        }
                        self.select(&values, cases)?
                    }
                    TransitionKind::Malformed => {
                        return Err(Stop::unsupported("what cannot be read"));
                    }
                },
            };
            self.frames.pop();
        }
    }

    /// The first case that holds the values (§13.6).
    fn select(&mut self, values: &[Value], cases: &'p [SelectCase]) -> Run<&'p str> {
        let mut chosen = None;
        for case in cases {
            if self.contains(&case.keyset, values)? {
                chosen = Some(case.target.as_str());
                if !self.is(Fault::SelectTakesTheLast) {
                    break;
                }
            }
        }
        chosen.ok_or_else(|| Stop::Reject(Rc::from("NoMatch")))
    }

    fn contains(&mut self, keyset: &'p Keyset, values: &[Value]) -> Run<bool> {
        if let [KeysetElement { kind, .. }] = keyset.elements.as_slice()
            && matches!(
                kind,
                KeysetElementKind::Default | KeysetElementKind::DontCare
            )
        {
            return Ok(true);
        }
        if keyset.elements.len() != values.len() {
            return Err(Stop::unsupported("a set of other tuples"));
        }
        for (element, value) in keyset.elements.iter().zip(values) {
            if !self.element_contains(element, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn element_contains(&mut self, element: &'p KeysetElement, value: &Value) -> Run<bool> {
        let ty = value.ty();
        let ty = ty.ok_or_else(|| Stop::unsupported("a key of such a type"))?;
        let unknown = Stop::Unknown("a key of a select");
        match &element.kind {
            KeysetElementKind::Default | KeysetElementKind::DontCare => Ok(true),
            KeysetElementKind::Value(expected) => {
                let expected = self.eval(expected)?.fit(&ty)?;
                value.equals(&expected)?.ok_or(unknown)
            }
            KeysetElementKind::Mask {
                value: expected,
                mask,
            } => {
                let expected = self.eval(expected)?.fit(&ty)?;
                let mask = self.eval(mask)?.fit(&ty)?;
                let (Some(expected), Some(mask)) = (expected.number(), mask.number()) else {
                    return Err(unknown);
                };
                let value = value.number().ok_or(unknown)?;
                Ok(masked(value, expected, mask))
            }
            KeysetElementKind::Range { low, high } => {
                let low = self.eval(low)?.fit(&ty)?;
                let high = self.eval(high)?.fit(&ty)?;
                let (Some(low), Some(high)) = (low.number(), high.number()) else {
                    return Err(unknown);
                };
                let value = value.number().ok_or(unknown)?;
                let below = if self.is(Fault::RangesLackTheirEnd) {
                    value < high
                } else {
                    value <= high
                };
                Ok(low <= value && below)
            }
        }
    }
}

/// True if two numbers agree in the bits of a mask (§8.15.3).
pub(crate) fn masked(value: &BigInt, expected: &BigInt, mask: &BigInt) -> bool {
    value & mask == expected & mask
}
