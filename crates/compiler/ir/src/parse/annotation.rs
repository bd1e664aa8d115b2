//! Annotations.

use super::lexer::Token;
use super::{Parser, Result};
use crate::{Annotation, AnnotationBody, AnnotationToken, AnnotationValue};
use num_bigint::BigInt;

impl Parser<'_> {
    /// Annotations, possibly none.
    pub(super) fn annotations(&mut self) -> Result<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.take("@") {
            let name = self.path()?;
            let body = if self.take("(") {
                let mut tokens = Vec::new();
                while !self.take(")") {
                    tokens.push(self.annotation_token()?);
                }
                AnnotationBody::Tokens(tokens)
            } else if self.take("[") {
                self.structured_body()?
            } else {
                AnnotationBody::Empty
            };
            annotations.push(Annotation { name, body });
        }
        Ok(annotations)
    }

    fn annotation_token(&mut self) -> Result<AnnotationToken> {
        if self.take(".") {
            return Ok(AnnotationToken::Other(self.string()?));
        }
        match self.peek() {
            Token::Text(_) => Ok(AnnotationToken::String(self.string()?)),
            Token::Number(number) => {
                self.at += 1;
                self.sign(":")?;
                Ok(AnnotationToken::Number(
                    number.clone().into(),
                    self.string()?,
                ))
            }
            _ => self.expected("a token of an annotation or `)`"),
        }
    }

    fn structured_body(&mut self) -> Result<AnnotationBody> {
        if *self.look(1) != Token::Sign("=") {
            return Ok(AnnotationBody::Values(
                self.list("]", Self::annotation_value)?,
            ));
        }
        let pairs = self.list("]", |parser| {
            let key = parser.segment()?;
            parser.sign("=")?;
            Ok((key, parser.annotation_value()?))
        })?;
        Ok(AnnotationBody::Pairs(pairs))
    }

    fn annotation_value(&mut self) -> Result<AnnotationValue> {
        if self.take_word("true") {
            return Ok(AnnotationValue::Bool(true));
        }
        if self.take_word("false") {
            return Ok(AnnotationValue::Bool(false));
        }
        let negative = self.take("-");
        match self.peek() {
            Token::Text(_) if !negative => Ok(AnnotationValue::String(self.string()?)),
            Token::Number(number) => {
                self.at += 1;
                let number = BigInt::from(number.clone());
                Ok(AnnotationValue::Int(if negative {
                    -number
                } else {
                    number
                }))
            }
            _ => self.expected("a value of an annotation"),
        }
    }
}
