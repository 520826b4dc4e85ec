//! Arithmetic in parentheses: `(4 * 1k + 512)`.
//!
//! Invariant: a value is finite; what is not, and division by zero, is an error.

use super::scan::scan;
use crate::arithmetic::{Arithmetic, Dialect, Operator, Sign};

/// Looks at the text after a number and says by what to multiply it and how many bytes of text the suffix takes.
pub(crate) type Suffix<'f> = dyn Fn(&str) -> (i128, usize) + 'f;

const EXPRESSION: Dialect = Dialect {
    sign: Sign::BindsLooserThanPower,
    unary_plus: true,
    is_space: char::is_whitespace,
    nesting_max: 63,
    nested_too_deeply: "an expression is nested too deeply",
    unclosed: "an expression lacks a closing parenthesis",
};

/// Evaluates an expression of numbers, `+ - * / % ^` and parentheses. Numbers may carry the suffixes that `suffix`
/// knows. The result is exact up to 2^53.
pub(crate) fn evaluate(text: &str, suffix: &Suffix<'_>) -> Result<f64, String> {
    let (value, rest) = EXPRESSION.evaluate(text.trim(), &Doubles { suffix })?;
    if !rest.is_empty() {
        return Err(format!("{rest:?} is left over after the expression in {text:?}"));
    }
    if !value.is_finite() {
        return Err(format!("{text:?} has no finite value"));
    }
    Ok(value)
}

/// Arithmetic of doubles whose numbers may have a suffix.
struct Doubles<'f> {
    suffix: &'f Suffix<'f>,
}

impl Arithmetic for Doubles<'_> {
    type Number = f64;

    fn number<'t>(&self, text: &'t str) -> Result<(f64, &'t str), String> {
        if text.starts_with("0x") || text.starts_with("0X") {
            let (number, rest) = scan(text).ok_or_else(|| format!("{text:?} is not a number"))?;
            return Ok((number as f64, rest));
        }
        let length = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (digits, rest) = text.split_at(length.unwrap_or(text.len()));
        let number: f64 = digits.parse().map_err(|_| format!("a number is missing before {text:?}"))?;
        let (factor, used) = (self.suffix)(rest);
        Ok((number * factor as f64, &rest[used..]))
    }

    fn negate(&self, number: f64) -> Result<f64, String> {
        Ok(-number)
    }

    fn apply(&self, operator: Operator, left: f64, right: f64) -> Result<f64, String> {
        if matches!(operator, Operator::Divide | Operator::Remainder) && right == 0.0 {
            return Err("an expression divides by zero".to_string());
        }
        Ok(match operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide => left / right,
            Operator::Remainder => left.trunc() % right.trunc(),
            Operator::Power => left.powf(right),
        })
    }
}
