//! Arithmetic in parentheses: `(4 * 1k + 512)`.
//!
//! Invariant: evaluation ends, whatever the text: depth and length are bounded, and no operation panics.

/// Looks at the text after a number and says by what to multiply it and how many bytes of text the suffix takes.
pub(crate) type Suffix<'f> = dyn Fn(&str) -> (i128, usize) + 'f;

/// Nesting beyond this is refused rather than recursed into.
const MAX_DEPTH: u32 = 64;

/// Evaluates an expression of numbers, `+ - * / % ^` and parentheses. Numbers may carry the suffixes that `suffix`
/// knows. The result is exact up to 2^53.
pub(crate) fn evaluate(text: &str, suffix: &Suffix<'_>) -> Result<f64, String> {
    let mut parser = Parser { rest: text.trim(), suffix, depth: 0 };
    let value = parser.sum()?;
    parser.skip_space();
    if !parser.rest.is_empty() {
        return Err(format!("{:?} is left over after the expression in {text:?}", parser.rest));
    }
    if !value.is_finite() {
        return Err(format!("{text:?} has no finite value"));
    }
    Ok(value)
}

struct Parser<'t> {
    rest: &'t str,
    suffix: &'t Suffix<'t>,
    depth: u32,
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes the next letter if it is one of `wanted`.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        self.skip_space();
        let letter = self.rest.chars().next().filter(|letter| wanted.contains(letter))?;
        self.rest = &self.rest[1..];
        Some(letter)
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        while let Some(operator) = self.take(&['+', '-']) {
            let right = self.product()?;
            value = if operator == '+' { value + right } else { value - right };
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.power()?;
        while let Some(operator) = self.take(&['*', '/', '%']) {
            let right = self.power()?;
            if operator != '*' && right == 0.0 {
                return Err("an expression divides by zero".to_string());
            }
            value = match operator {
                '*' => value * right,
                '/' => value / right,
                _ => value.trunc() % right.trunc(),
            };
        }
        Ok(value)
    }

    /// Right-associative, and binding tighter than a sign on its left.
    fn power(&mut self) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("an expression is nested too deeply".to_string());
        }
        let value = match self.take(&['-', '+']) {
            Some('-') => -self.power()?,
            Some(_) => self.power()?,
            None => {
                let base = self.atom()?;
                match self.take(&['^']) {
                    Some(_) => base.powf(self.power()?),
                    None => base,
                }
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    fn atom(&mut self) -> Result<f64, String> {
        if self.take(&['(']).is_some() {
            let value = self.sum()?;
            return match self.take(&[')']) {
                Some(_) => Ok(value),
                None => Err("an expression lacks a closing parenthesis".to_string()),
            };
        }
        self.skip_space();
        self.number()
    }

    fn number(&mut self) -> Result<f64, String> {
        if self.rest.starts_with("0x") || self.rest.starts_with("0X") {
            let (number, rest) =
                super::number::scan(self.rest).ok_or_else(|| format!("{:?} is not a number", self.rest))?;
            self.rest = rest;
            return Ok(number as f64);
        }
        let length = self.rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (digits, rest) = self.rest.split_at(length.unwrap_or(self.rest.len()));
        let number: f64 =
            digits.parse().map_err(|_| format!("a number is missing before {:?}", self.rest))?;
        let (factor, used) = (self.suffix)(rest);
        self.rest = &rest[used..];
        Ok(number * factor as f64)
    }
}
