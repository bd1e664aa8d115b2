//! Variables as rows of leaves: scalars, validities of headers, next elements of stacks.

use stateplane_ir::{Expr, ExprKind, Place, Program, Projection, Type, VarId};
use std::ops::Range;

/// Depth to which types contain types.
const MOST_DEPTH: u32 = 64;

/// Leaves of all variables together.
const MOST: usize = 1 << 20;

/// Position of a leaf among those of all variables.
pub(super) type Leaf = usize;

/// The leaves of a program's variables.
pub(super) struct Leaves<'p> {
    program: &'p Program,
    /// First leaf of each variable.
    bases: Vec<Leaf>,
    pub count: usize,
}

/// The leaves of a place.
pub(super) struct Spot {
    pub leaves: Range<Leaf>,
    pub ty: Type,
    /// True if the place is these leaves, and not a part that the program chooses as it runs.
    pub exact: bool,
    /// Highest and lowest bit of the one leaf, if the place is a slice.
    pub slice: Option<(u32, u32)>,
    /// The leaves of a union around it, whose other members change with it.
    pub union: Option<Range<Leaf>>,
}

impl<'p> Leaves<'p> {
    /// `None` for variables that are too large, or types that contain themselves.
    pub fn new(program: &'p Program) -> Option<Leaves<'p>> {
        let mut leaves = Leaves {
            program,
            bases: Vec::with_capacity(program.vars.len()),
            count: 0,
        };
        for var in &program.vars {
            leaves.bases.push(leaves.count);
            leaves.count += leaves.size(var.ty, 0)?;
            if leaves.count > MOST {
                return None;
            }
        }
        Some(leaves)
    }

    fn size(&self, ty: Type, depth: u32) -> Option<usize> {
        if depth > MOST_DEPTH {
            return None;
        }
        let members = |id: stateplane_ir::StructId| {
            let fields = &self.program.structs[id.index()].fields;
            fields.iter().try_fold(0usize, |sum, field| {
                let sum = sum + self.size(field.ty, depth + 1)?;
                (sum <= MOST).then_some(sum)
            })
        };
        match ty {
            Type::Struct(id) | Type::Union(id) => members(id),
            Type::Header(id) => Some(1 + members(id)?),
            Type::Stack(id) => {
                let stack = &self.program.stacks[id.index()];
                let elements = self
                    .size(stack.element, depth + 1)?
                    .checked_mul(stack.size as usize)?;
                (elements < MOST).then_some(1 + elements)
            }
            _ => Some(1),
        }
    }

    /// Leaves of a value of a type that some variable has, or a part of one.
    pub fn of(&self, ty: Type) -> usize {
        self.size(ty, 0).unwrap_or(1)
    }

    /// The leaves of a variable.
    pub fn variable(&self, var: VarId) -> Range<Leaf> {
        let base = self.bases[var.index()];
        base..base + self.of(self.program.vars[var.index()].ty)
    }

    /// The types of the leaves of a value, in their order.
    pub fn types(&self, ty: Type) -> Vec<Type> {
        let mut types = Vec::new();
        self.push_types(ty, &mut types);
        types
    }

    fn push_types(&self, ty: Type, types: &mut Vec<Type>) {
        match ty {
            Type::Struct(id) | Type::Union(id) | Type::Header(id) => {
                if let Type::Header(_) = ty {
                    types.push(Type::Bool);
                }
                for field in &self.program.structs[id.index()].fields {
                    self.push_types(field.ty, types);
                }
            }
            Type::Stack(id) => {
                types.push(Type::Bits(32));
                let stack = &self.program.stacks[id.index()];
                for _ in 0..stack.size {
                    self.push_types(stack.element, types);
                }
            }
            _ => types.push(ty),
        }
    }

    /// The leaves of a place.
    pub fn spot(&self, place: &Place) -> Spot {
        let mut spot = Spot {
            leaves: self.variable(place.var),
            ty: self.program.vars[place.var.index()].ty,
            exact: true,
            slice: None,
            union: None,
        };
        for step in &place.path {
            let Some(inner) = self.program.step_type(spot.ty, step) else {
                spot.exact = false;
                return spot;
            };
            let begin = match (step, spot.ty) {
                (Projection::Field(field), Type::Struct(id) | Type::Header(id)) => {
                    let valid = usize::from(matches!(spot.ty, Type::Header(_)));
                    spot.leaves.start + valid + self.before(id, *field)
                }
                (Projection::Field(field), Type::Union(id)) => {
                    spot.union.get_or_insert_with(|| spot.leaves.clone());
                    spot.leaves.start + self.before(id, *field)
                }
                (Projection::Index(index), Type::Stack(id)) => match constant(index) {
                    Some(at) if at < u64::from(self.program.stacks[id.index()].size) => {
                        spot.leaves.start + 1 + at as usize * self.of(inner)
                    }
                    _ => {
                        spot.exact = false;
                        return spot;
                    }
                },
                (Projection::Slice { hi, lo }, _) => {
                    // A slice of a slice is no place that the check makes.
                    spot.exact &= spot.slice.is_none();
                    spot.slice = Some((*hi, *lo));
                    spot.leaves.start
                }
                _ => {
                    spot.exact = false;
                    return spot;
                }
            };
            spot.leaves = begin..begin + self.of(inner);
            spot.ty = inner;
        }
        spot
    }

    fn before(&self, id: stateplane_ir::StructId, field: u32) -> usize {
        let fields = &self.program.structs[id.index()].fields;
        let before = fields.iter().take(field as usize);
        before.map(|field| self.of(field.ty)).sum()
    }

    /// The name of a leaf as the source has it.
    pub fn name(&self, leaf: Leaf) -> String {
        let var = self.bases.partition_point(|base| *base <= leaf) - 1;
        let def = &self.program.vars[var];
        let mut name = last_part(&def.name).to_owned();
        self.push_name(def.ty, leaf - self.bases[var], &mut name);
        name
    }

    fn push_name(&self, ty: Type, mut at: usize, name: &mut String) {
        match ty {
            Type::Struct(id) | Type::Union(id) | Type::Header(id) => {
                if let Type::Header(_) = ty {
                    if at == 0 {
                        name.push_str(".isValid()");
                        return;
                    }
                    at -= 1;
                }
                for field in &self.program.structs[id.index()].fields {
                    let size = self.of(field.ty);
                    if at < size {
                        name.push('.');
                        name.push_str(&field.name);
                        return self.push_name(field.ty, at, name);
                    }
                    at -= size;
                }
            }
            Type::Stack(id) => {
                let element = self.program.stacks[id.index()].element;
                let size = self.of(element).max(1);
                if at == 0 {
                    return name.push_str(".nextIndex");
                }
                name.push_str(&format!("[{}]", (at - 1) / size));
                self.push_name(element, (at - 1) % size, name);
            }
            _ => {}
        }
    }
}

/// The number that an expression is.
pub(super) fn constant(expr: &Expr) -> Option<u64> {
    match &expr.kind {
        ExprKind::Const(stateplane_ir::Const::Bits(bits)) => {
            let digits = bits.to_u64_digits();
            match digits[..] {
                [] => Some(0),
                [low] => Some(low),
                _ => None,
            }
        }
        _ => None,
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
