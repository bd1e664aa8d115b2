//! Types of places.

use crate::{Place, Program, Projection, Type};

impl Program {
    /// Type of a place; `None` if a step of its path does not exist.
    pub fn place_type(&self, place: &Place) -> Option<Type> {
        let mut ty = self.vars.get(place.var.index())?.ty;
        for step in &place.path {
            ty = self.step_type(ty, step)?;
        }
        Some(ty)
    }

    /// Type of a part of a value of type `ty`; `None` if it has no such part.
    pub fn step_type(&self, ty: Type, step: &Projection) -> Option<Type> {
        match (step, ty) {
            (Projection::Field(field), Type::Struct(id) | Type::Header(id) | Type::Union(id)) => {
                let def = self.structs.get(id.index())?;
                Some(def.fields.get(*field as usize)?.ty)
            }
            (Projection::Index(_) | Projection::Next | Projection::Last, Type::Stack(id)) => {
                Some(self.stacks.get(id.index())?.element)
            }
            (Projection::Slice { hi, lo }, Type::Bits(width) | Type::Int(width)) => {
                (lo <= hi && *hi < width).then(|| Type::Bits(hi - lo + 1))
            }
            _ => None,
        }
    }
}
