//! The codes of everything that this crate reports: `E00xx` and `W00xx` from the
//! preprocessor, `E01xx` from the lexer, `E02xx` from the parser.

stateplane_diagnostics::codes! {
    FILE_NOT_FOUND = "E0001": "a file to be compiled or included is in none of the places searched";
    FILE_UNREADABLE = "E0002": "a file is there but cannot be read as text";
    INCLUDE_DEPTH = "E0003": "files include each other too deeply, or without end";
    BAD_DIRECTIVE = "E0004": "a preprocessor directive is not formed as it must be";
    UNBALANCED_CONDITIONAL = "E0005": "#if, #elif, #else and #endif do not match up";
    BAD_CONDITION = "E0006": "the condition of #if or #elif is not an integer expression";
    ERROR_DIRECTIVE = "E0007": "the program asked for this error with #error";
    BAD_MACRO_CALL = "E0008": "a macro is called with arguments that do not fit its definition";
    EXPANSION_LIMIT = "E0009": "the program becomes too large when its macros and includes are expanded";
    UNKNOWN_DIRECTIVE = "W0001": "a preprocessor directive is not known and has no effect";
    MACRO_REDEFINED = "W0002": "a macro is defined again with another meaning";
    EXTRA_TEXT = "W0003": "a preprocessor directive is followed by text that has no effect";

    UNKNOWN_CHARACTER = "E0101": "a character is not part of any P4 token";
    UNTERMINATED_STRING = "E0102": "a string literal has no closing quote";
    UNTERMINATED_COMMENT = "E0103": "a comment opened with /* is never closed";
    BAD_NUMBER = "E0104": "a number literal is not formed as it must be";
    LITERAL_TOO_WIDE = "E0105": "a number literal is wider than the compiler supports";

    UNEXPECTED_TOKEN = "E0201": "the text does not follow the grammar of P4 at this place";
    NESTED_TOO_DEEPLY = "E0202": "constructs are nested more deeply than the compiler supports";
    MISPLACED = "E0203": "a declaration or statement stands where its kind is not allowed";
    MISSING_PART = "E0204": "a declaration lacks a part that it must have";
    UNCLOSED = "E0205": "an opening brace, bracket or parenthesis is never closed";
}

#[cfg(test)]
mod tests {
    #[test]
    fn codes_are_unique() {
        assert_eq!(stateplane_diagnostics::duplicate_code(&[super::ALL]), None);
    }
}
