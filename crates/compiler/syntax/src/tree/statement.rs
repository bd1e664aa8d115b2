//! Statements and parser states.

use stateplane_diagnostics::Span;

use super::{Annotation, BinaryOp, ConstDecl, Expr, Ident, Keyset, VariableDecl};

/// `{ … }` with its annotations.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its annotations, `@atomic` for one.
    pub annotations: Vec<Annotation>,
    /// Its statements and declarations in order.
    pub statements: Vec<Stmt>,
    /// From the annotations to the closing brace.
    pub span: Span,
}

/// A statement, or a declaration among statements.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// Kind of the statement.
    pub kind: StmtKind,
    /// Position of the statement, with the final `;` if it has one.
    pub span: Span,
}

/// The forms of statements (specification section 11).
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// Unreadable; reported by the parser.
    Malformed,
    /// `;`.
    Empty,
    /// `target = value;` or, with an operator, `target op= value;`.
    Assign {
        /// Target of the assignment.
        target: Expr,
        /// The operator of a compound assignment; never a comparison, `&&`, `||` or `++`.
        op: Option<BinaryOp>,
        /// Position of the `=` or `op=`.
        op_span: Span,
        /// The value, or the right operand.
        value: Expr,
    },
    /// A call; the expression is an [`ExprKind::Call`](super::ExprKind::Call).
    Call(Expr),
    /// `if (condition) then else otherwise`.
    If {
        /// The condition.
        condition: Expr,
        /// Statement that runs if the condition holds.
        then: Box<Stmt>,
        /// Statement that runs if the condition does not hold.
        otherwise: Option<Box<Stmt>>,
    },
    /// `{ … }`.
    Block(Block),
    /// `return;` or `return value;`.
    Return(Option<Expr>),
    /// `exit;`.
    Exit,
    /// `break;`.
    Break,
    /// `continue;`.
    Continue,
    /// `switch (subject) { cases }`.
    Switch {
        /// An expression, or `t.apply().action_run`.
        subject: Expr,
        /// The cases in order.
        cases: Vec<SwitchCase>,
    },
    /// `for (init; condition; update) body`.
    For {
        /// Annotations of the loop.
        annotations: Vec<Annotation>,
        /// Variable declarations, assignments and calls done first.
        init: Vec<Stmt>,
        /// The condition, looked at before each round.
        condition: Expr,
        /// Assignments and calls done after each round.
        update: Vec<Stmt>,
        /// One round.
        body: Box<Stmt>,
    },
    /// `for (ty name in collection) body`.
    ForIn {
        /// Annotations of the loop.
        annotations: Vec<Annotation>,
        /// The loop's variable; it has no initialiser.
        variable: VariableDecl,
        /// Collection over which the variable runs.
        collection: ForCollection,
        /// One round.
        body: Box<Stmt>,
    },
    /// A variable declaration.
    Variable(VariableDecl),
    /// A constant declaration.
    Const(ConstDecl),
}

/// Collection of a `for … in` loop.
#[derive(Clone, Debug, PartialEq)]
pub enum ForCollection {
    /// The elements of a header stack or list.
    Elements(Expr),
    /// `low .. high`, both included.
    Range {
        /// The first value.
        low: Expr,
        /// The last value.
        high: Expr,
    },
}

/// A case of a `switch` statement.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchCase {
    /// An expression or the name of an action; `None` for `default`.
    pub label: Option<Expr>,
    /// Body of the case; `None` where the case falls through to the next.
    pub body: Option<Block>,
    /// The whole case.
    pub span: Span,
}

/// A state of a parser.
#[derive(Clone, Debug, PartialEq)]
pub struct ParserState {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its name.
    pub name: Ident,
    /// Statements of the state.
    pub statements: Vec<Stmt>,
    /// Transition of the state; `None` where nothing is written, which means `reject`.
    pub transition: Option<Transition>,
    /// The whole state.
    pub span: Span,
}

/// `transition …;`.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// Kind of the transition.
    pub kind: TransitionKind,
    /// The whole statement.
    pub span: Span,
}

/// Kind of a state's transition.
#[derive(Clone, Debug, PartialEq)]
pub enum TransitionKind {
    /// Unreadable; reported by the parser.
    Malformed,
    /// To one state: `transition name;`.
    Direct(Ident),
    /// `transition select (subjects) { cases }`.
    Select {
        /// The expressions that are matched.
        subjects: Vec<Expr>,
        /// The cases, tried in order.
        cases: Vec<SelectCase>,
    },
}

/// A case of a `select`.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectCase {
    /// Values that the case matches.
    pub keyset: Keyset,
    /// The state it goes to.
    pub target: Ident,
    /// The whole case.
    pub span: Span,
}
