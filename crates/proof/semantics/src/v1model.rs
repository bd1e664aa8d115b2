//! The pipeline of v1model around a program: its input packets, and their outcomes.

use crate::machine::{Instance, Machine, Run, Stop, Variable};
use crate::packet::{PacketIn, PacketOut};
use crate::types::Type;
use crate::value::Value;
use crate::{Fault, Outcome};
use num_bigint::BigInt;
use std::rc::Rc;

/// The value of `egress_spec` that stands for dropping.
pub(crate) const DROP_PORT: u32 = 511;

/// A field of standard metadata that a packet begins with; all others but times and depths
/// of queues are zero.
fn begins(name: &str, port: u16, length: usize) -> Option<BigInt> {
    match name {
        "ingress_port" => Some(BigInt::from(port)),
        "packet_length" => Some(BigInt::from(length)),
        "instance_type" | "mcast_grp" | "checksum_error" | "priority" | "egress_spec" => {
            Some(BigInt::ZERO)
        }
        _ => None,
    }
}

/// Headers, metadata and standard metadata.
struct Context {
    headers: Value,
    metadata: Value,
    standard: Value,
}

impl Context {
    fn set(&mut self, name: &str, value: Option<BigInt>) {
        if let Value::Struct(decl, fields) = &mut self.standard
            && let Some(field) = decl.field(name)
            && let Value::Number(_, old) = &mut fields[field]
        {
            *old = value;
        }
    }

    fn get(&self, name: &str) -> Option<BigInt> {
        let Value::Struct(decl, fields) = &self.standard else {
            return None;
        };
        fields[decl.field(name)?].number().cloned()
    }
}

impl<'p> Machine<'p> {
    /// Takes a packet through parser, ingress, egress and deparser.
    pub(crate) fn process(
        &mut self,
        pipeline: &[Rc<Instance<'p>>],
        port: u16,
        frame: &[u8],
    ) -> Run<Outcome> {
        let [parser, _, ingress, egress, _, deparser] = pipeline else {
            return Err(Stop::unsupported("a package of other blocks"));
        };
        self.frames.truncate(1);
        self.steps = 0;
        self.packet = PacketIn::new(frame);
        self.emitted = PacketOut::default();
        let types = self.block_types(parser)?;
        let [_, headers, metadata, standard] = types.as_slice() else {
            return Err(Stop::unsupported("a parser of other parameters"));
        };
        let standard = match standard {
            Type::Struct(decl) => {
                let fields = decl.fields.iter().map(|(name, ty)| match ty {
                    Type::Error => self.mistaken(ty.default()),
                    Type::Number(width) => Value::Number(*width, begins(name, port, frame.len())),
                    ty => ty.uninitialised(),
                });
                Value::Struct(decl.clone(), fields.collect())
            }
            _ => return Err(Stop::unsupported("such standard metadata")),
        };
        let mut context = Context {
            headers: headers.uninitialised(),
            // v1model sets metadata to zero.
            metadata: self.mistaken(metadata.default()),
            standard,
        };
        let parsed = self.run(parser, &mut context, true)?;
        if let Some(error) = parsed {
            let first = self.is(Fault::ErrorsAreLost);
            let error = if first { Rc::from("NoError") } else { error };
            if let Value::Struct(decl, fields) = &mut context.standard
                && let Some(field) = decl.field("parser_error")
            {
                fields[field] = Value::Error(Some(error));
            }
        }
        self.run(ingress, &mut context, false)?;
        let group = context.get("mcast_grp");
        if group.ok_or(Stop::Unknown("the multicast group"))? != BigInt::ZERO {
            return Err(Stop::unsupported("multicast"));
        }
        let out = context.get("egress_spec");
        let out = out.ok_or(Stop::Unknown("the port"))?;
        if out == BigInt::from(DROP_PORT) {
            return Ok(Outcome::Dropped);
        }
        let out_port = u16::try_from(&out).map_err(|_| Stop::Unknown("the port"))?;
        context.set("egress_port", Some(out));
        context.set("egress_spec", None);
        self.run(egress, &mut context, false)?;
        if context.get("egress_spec") == Some(BigInt::from(DROP_PORT)) {
            return Ok(Outcome::Dropped);
        }
        self.deparse(deparser, &context)?;
        let rest = self.packet.rest();
        let rest = rest.ok_or_else(|| Stop::unsupported("half a byte taken"))?;
        let rest = rest.to_vec();
        if !self.emitted.bits.len().is_multiple_of(8) {
            return Err(Stop::unsupported("half a byte emitted"));
        }
        let (mut bytes, mut known) = (Vec::new(), Vec::new());
        for bits in self.emitted.bits.chunks(8) {
            let (mut byte, mut mask) = (0, 0);
            for bit in bits {
                byte = byte << 1 | u8::from(bit.unwrap_or(false));
                mask = mask << 1 | u8::from(bit.is_some());
            }
            bytes.push(byte);
            known.push(mask);
        }
        known.extend(rest.iter().map(|_| 0xff));
        bytes.extend(rest);
        Ok(Outcome::Sent {
            port: out_port,
            bytes,
            known,
        })
    }

    fn block_types(&mut self, block: &Rc<Instance<'p>>) -> Run<Vec<Type>> {
        let mut types = Vec::new();
        for param in block.params() {
            types.push(self.parameter_type(param).unwrap_or(Type::Other));
        }
        Ok(types)
    }

    /// Runs a block; returns the error if it is a parser that ends in `reject`.
    fn run(
        &mut self,
        block: &Rc<Instance<'p>>,
        context: &mut Context,
        is_parser: bool,
    ) -> Run<Option<Rc<str>>> {
        let types = self.block_types(block)?;
        let mut values = Vec::new();
        if is_parser {
            values.push(Value::PacketIn);
        }
        values.extend([
            context.headers.clone(),
            context.metadata.clone(),
            context.standard.clone(),
        ]);
        let variables = variables(block, types, values);
        let (mut variables, result) = self.run_block(block, variables);
        let [.., headers, metadata, standard] = variables.as_mut_slice() else {
            return Err(Stop::unsupported("a block of other parameters"));
        };
        let take =
            |variable: &mut Variable<'p>| std::mem::replace(&mut variable.value, Value::Void);
        (context.headers, context.metadata, context.standard) =
            (take(headers), take(metadata), take(standard));
        match result {
            Ok(_) | Err(Stop::Exit) => Ok(None),
            Err(Stop::Reject(error)) if is_parser => Ok(Some(error)),
            Err(stop) => Err(stop),
        }
    }

    fn deparse(&mut self, block: &Rc<Instance<'p>>, context: &Context) -> Run<()> {
        let types = self.block_types(block)?;
        let values = vec![Value::PacketOut, context.headers.clone()];
        let variables = variables(block, types, values);
        match self.run_block(block, variables).1 {
            Ok(_) | Err(Stop::Exit) => Ok(()),
            Err(stop) => Err(stop),
        }
    }
}

fn variables<'p>(
    block: &Rc<Instance<'p>>,
    types: Vec<Type>,
    values: Vec<Value>,
) -> Vec<Variable<'p>> {
    let params = block.params().iter().zip(types).zip(values);
    let variables = params.map(|((param, ty), value)| Variable {
        name: param.name.as_str(),
        ty,
        value,
    });
    variables.collect()
}
