//! The blocks that a program gives to `V1Switch`.

use crate::codes;
use crate::walk::type_name;
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_syntax::tree::{
    ControlDecl, Declaration, ExprKind, Instantiation, ParserDecl, Program,
};

/// One of the six blocks.
#[derive(Clone, Copy)]
pub struct Block<'t, D> {
    /// Its declaration.
    pub declaration: &'t D,
    /// The constructor's call: `MyIngress()`.
    pub construct: Span,
}

/// All blocks, and the instance that has them.
pub struct Pipeline<'t> {
    /// The instance `main`.
    pub main: &'t Instantiation,
    /// The parser.
    pub parser: Block<'t, ParserDecl>,
    /// The control that verifies checksums.
    pub verify: Block<'t, ControlDecl>,
    /// Ingress.
    pub ingress: Block<'t, ControlDecl>,
    /// Egress.
    pub egress: Block<'t, ControlDecl>,
    /// The control that computes checksums.
    pub compute: Block<'t, ControlDecl>,
    /// The deparser.
    pub deparser: Block<'t, ControlDecl>,
}

const FORM: &str = "write `V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;`";

/// Finds them.
///
/// # Errors
///
/// The complaint about a program without such an instance.
pub fn find(tree: &Program) -> Result<Pipeline<'_>, Box<Diagnostic>> {
    let mut mains = tree.declarations.iter().filter_map(|d| match d {
        Declaration::Instantiation(i) if i.name.as_str() == "main" => Some(i),
        _ => None,
    });
    let Some(main) = mains.next_back() else {
        let message = "the program has no instance `main`";
        return Err(Box::new(
            Diagnostic::error(codes::PROGRAM_FORM, Span::default(), message).with_help(FORM),
        ));
    };
    let wrong = |span, message: &str| {
        Box::new(Diagnostic::error(codes::PROGRAM_FORM, span, message).with_help(FORM))
    };
    if type_name(&main.ty) != Some("V1Switch") || main.args.len() != 6 {
        return Err(wrong(main.span, "`main` is no V1Switch of six blocks"));
    }
    const NAMES: [&str; 6] = ["p", "vr", "ig", "eg", "ck", "dep"];
    let block = |at: usize| -> Result<(&str, Span), Box<Diagnostic>> {
        let named = main.args.iter().find(|arg| {
            arg.name
                .as_ref()
                .is_some_and(|name| name.as_str() == NAMES[at])
        });
        let arg = named.unwrap_or(&main.args[at]);
        let construct = arg.value.as_ref().and_then(|value| match &value.kind {
            ExprKind::Construct { ty, .. } => Some((type_name(ty)?, value.span)),
            _ => None,
        });
        construct.ok_or_else(|| wrong(arg.span, "a block is not constructed in place"))
    };
    let control = |at: usize| -> Result<Block<'_, ControlDecl>, Box<Diagnostic>> {
        let (name, construct) = block(at)?;
        let found = tree.declarations.iter().find_map(|d| match d {
            Declaration::Control(c) if c.signature.name.as_str() == name => Some(c),
            _ => None,
        });
        let declaration = found.ok_or_else(|| wrong(construct, "no control of this name"))?;
        Ok(Block {
            declaration,
            construct,
        })
    };
    let (name, construct) = block(0)?;
    let parser = tree.declarations.iter().find_map(|d| match d {
        Declaration::Parser(p) if p.signature.name.as_str() == name => Some(p),
        _ => None,
    });
    let parser = Block {
        declaration: parser.ok_or_else(|| wrong(construct, "no parser of this name"))?,
        construct,
    };
    let pipeline = Pipeline {
        main,
        parser,
        verify: control(1)?,
        ingress: control(2)?,
        egress: control(3)?,
        compute: control(4)?,
        deparser: control(5)?,
    };
    // A block that two places share would be rewritten for one of them.
    let signatures = [
        &pipeline.ingress.declaration.signature,
        &pipeline.egress.declaration.signature,
    ];
    if std::ptr::eq(signatures[0], signatures[1]) {
        return Err(wrong(main.span, "ingress and egress are the same control"));
    }
    Ok(pipeline)
}
