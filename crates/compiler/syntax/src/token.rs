//! Tokens of P4-16 (specification section 6.4 and appendix G).

use std::fmt;
use std::sync::Arc;

use stateplane_diagnostics::{SourceMap, Span};

/// A token after preprocessing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Kind of the token.
    pub kind: TokenKind,
    /// The token as written; empty for [`TokenKind::End`].
    pub text: Arc<str>,
    /// Position; for a token from the body of a macro, the position of the macro's call.
    pub span: Span,
    /// True if it is the first of its line.
    pub line_start: bool,
    /// True if white space or a comment precedes it.
    pub space_before: bool,
    /// True if the next token follows without anything between.
    pub joint: bool,
}

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A name, none of the keywords.
    Ident,
    /// A keyword, among them those that may also serve as names.
    Keyword(Keyword),
    /// A number literal, not yet known to be well formed.
    Number,
    /// A string literal with its quotes and escapes.
    String,
    /// An operator or a punctuation mark.
    Symbol(Symbol),
    /// `@pragma`, one token, which rules the rest of its line.
    Pragma,
    /// A character that begins no token.
    Unknown,
    /// The end of the program.
    End,
}

impl Token {
    /// True if it is a name or a keyword, and so possibly the name of a macro.
    #[must_use]
    pub fn is_word(&self) -> bool {
        matches!(self.kind, TokenKind::Ident | TokenKind::Keyword(_))
    }

    /// True if it is the given operator or punctuation mark.
    #[must_use]
    pub fn is(&self, symbol: Symbol) -> bool {
        self.kind == TokenKind::Symbol(symbol)
    }
}

macro_rules! spelled {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`.")] $variant,)+
        }

        impl $name {
            /// The one of that spelling.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Text of the token as written.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}

spelled! {
    /// The keywords.
    Keyword {
        Abstract "abstract",
        Action "action",
        Actions "actions",
        Apply "apply",
        Bit "bit",
        Bool "bool",
        Break "break",
        Const "const",
        Continue "continue",
        Control "control",
        Default "default",
        Else "else",
        Entries "entries",
        Enum "enum",
        Error "error",
        Exit "exit",
        Extern "extern",
        False "false",
        For "for",
        Header "header",
        HeaderUnion "header_union",
        If "if",
        In "in",
        Inout "inout",
        Int "int",
        Key "key",
        List "list",
        MatchKind "match_kind",
        Out "out",
        Package "package",
        Parser "parser",
        Priority "priority",
        Return "return",
        Select "select",
        State "state",
        String "string",
        Struct "struct",
        Switch "switch",
        Table "table",
        This "this",
        Transition "transition",
        True "true",
        Tuple "tuple",
        Type "type",
        Typedef "typedef",
        ValueSet "value_set",
        Varbit "varbit",
        Void "void",
        DontCare "_",
    }
}

impl Keyword {
    /// True if the grammar also takes it for a name.
    #[must_use]
    pub const fn is_contextual(self) -> bool {
        matches!(
            self,
            Self::Actions
                | Self::Apply
                | Self::Entries
                | Self::Key
                | Self::List
                | Self::Priority
                | Self::State
                | Self::Type
        )
    }
}

spelled! {
    /// Operators and punctuation marks. `>>` is two tokens, the first of them
    /// [`joint`](Token::joint), because it closes two type argument lists as often as it
    /// shifts.
    Symbol {
        ShlAssign "<<=",
        ShrAssign ">>=",
        AddSatAssign "|+|=",
        SubSatAssign "|-|=",
        AddSat "|+|",
        SubSat "|-|",
        Invalid "{#}",
        Mask "&&&",
        Dots "...",
        DotDot "..",
        Shl "<<",
        And "&&",
        Or "||",
        Equal "==",
        NotEqual "!=",
        GreaterEqual ">=",
        LessEqual "<=",
        Concat "++",
        AddAssign "+=",
        PlusColon "+:",
        SubAssign "-=",
        MulAssign "*=",
        DivAssign "/=",
        ModAssign "%=",
        AndAssign "&=",
        OrAssign "|=",
        XorAssign "^=",
        Paste "##",
        Hash "#",
        Plus "+",
        Minus "-",
        Star "*",
        Slash "/",
        Percent "%",
        Pipe "|",
        Ampersand "&",
        Caret "^",
        Tilde "~",
        LeftParen "(",
        RightParen ")",
        LeftBracket "[",
        RightBracket "]",
        LeftBrace "{",
        RightBrace "}",
        Less "<",
        Greater ">",
        Not "!",
        Colon ":",
        Comma ",",
        Question "?",
        Dot ".",
        Assign "=",
        Semicolon ";",
        At "@",
    }
}

/// One line for each token: file, line and column, kind, text.
#[must_use]
pub fn list(tokens: &[Token], sources: &SourceMap) -> String {
    use fmt::Write as _;
    let mut out = String::new();
    for token in tokens {
        let kind = match token.kind {
            TokenKind::Ident => "name",
            TokenKind::Keyword(_) => "keyword",
            TokenKind::Number => "number",
            TokenKind::String => "string",
            TokenKind::Symbol(_) => "symbol",
            TokenKind::Pragma => "pragma",
            TokenKind::Unknown => "unknown",
            TokenKind::End => "end",
        };
        let place = sources
            .get(token.span.file)
            .map_or_else(String::new, |file| {
                let (name, position) = file.place(token.span.start);
                format!("{name}:{}:{}", position.line, position.column)
            });
        let line = format!("{place:30} {kind:8} {}", token.text);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
