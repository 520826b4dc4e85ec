//! Replaces `${VAR}`, `$ncpus`, `$mb_memory` and `$pagesize`, and computes sums with them.
//!
//! Invariant: text without a `$` is unchanged.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::environment::{KeywordValues, ReadVariable};
use crate::arithmetic::{Arithmetic, Dialect, Operator, Sign};
use crate::bytes::{find, replace};
use crate::shown::shown;

/// A text whose variables have been replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The text.
    pub text: OsString,
    /// Variables that are not set or empty, as they are shown; they are replaced by nothing.
    pub unset: Vec<String>,
}

/// Replaces every `${NAME}` by the variable's value. Variables in the value are not replaced, and a `${` without its
/// `}` is unchanged.
pub fn variables(text: &OsStr, lookup: ReadVariable<'_>) -> Expanded {
    let mut expanded = Vec::with_capacity(text.len());
    let mut unset = Vec::new();
    let mut rest = text.as_bytes();
    while let Some(start) = find(rest, b"${") {
        let Some(length) = find(&rest[start..], b"}") else { break };
        let name = OsStr::from_bytes(&rest[start + 2..start + length]);
        expanded.extend_from_slice(&rest[..start]);
        match lookup(name).filter(|value| !value.is_empty()) {
            Some(value) => expanded.extend_from_slice(value.as_bytes()),
            None => unset.push(shown(name)),
        }
        rest = &rest[start + length + 1..];
    }
    expanded.extend_from_slice(rest);
    Expanded { text: OsString::from_vec(expanded), unset }
}

/// Replaces the reserved keywords in a value. With `sums`, a number written as a sum with keywords (`10*$mb_memory`) is
/// computed; `Err` is the sentence that says why it cannot be computed.
///
/// fio hands such a value to `bc`, and only when a keyword stands in it: `10*10` alone stays text.
pub fn keywords(value: &OsStr, values: &KeywordValues, sums: bool) -> Result<OsString, String> {
    if *values == KeywordValues::UNKNOWN {
        return Ok(value.to_os_string());
    }
    let known =
        [("$pagesize", values.page_bytes), ("$mb_memory", values.memory_mib), ("$ncpus", values.cpus)];
    let mut replaced = value.as_bytes().to_vec();
    for (keyword, number) in known {
        replaced = replace(&replaced, keyword.as_bytes(), number.to_string().as_bytes());
    }
    if replaced == value.as_bytes() || !sums || !replaced.iter().any(|byte| b"+-*/".contains(byte)) {
        return Ok(OsString::from_vec(replaced));
    }
    let sum = shown(OsStr::from_bytes(&replaced));
    evaluate(&sum).map(OsString::from).map_err(|why| format!("cannot compute \"{sum}\": {why}"))
}

/// The grammar of sums in `bc`.
const SUM: Dialect = Dialect {
    sign: Sign::BindsTighterThanPower,
    unary_plus: false,
    is_space: |letter| letter.is_ascii_whitespace(),
    nesting_max: 50,
    nested_too_deeply: "it is nested too deeply",
    unclosed: "a \")\" is missing",
};

/// Computes a sum as `bc` does with `scale=0`: division truncates, other results keep their decimals.
pub(crate) fn evaluate(text: &str) -> Result<String, String> {
    match SUM.evaluate(text, &Decimals)? {
        (result, "") => Ok(result.print()),
        (_, rest) => Err(format!("\"{rest}\" is not part of a sum")),
    }
}

/// Exact arithmetic.
struct Decimals;

impl Arithmetic for Decimals {
    type Number = Decimal;

    fn number<'t>(&self, text: &'t str) -> Result<(Decimal, &'t str), String> {
        let mut number = Decimal { mantissa: 0, scale: 0 };
        let mut digits = 0;
        let mut after_point = false;
        let mut rest = text;
        while let Some(&next) = rest.as_bytes().first() {
            match next {
                b'0'..=b'9' => {
                    let grown = number.mantissa.checked_mul(10).map(|size| size + i128::from(next - b'0'));
                    number.mantissa = grown.ok_or_else(|| TOO_LARGE.to_string())?;
                    number.scale += u32::from(after_point);
                    digits += 1;
                }
                b'.' if !after_point => after_point = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        match (digits, text) {
            (0, "") => Err("a number is missing at the end".to_string()),
            (0, _) => Err(format!("\"{text}\" is not a number")),
            _ if number.scale > SCALE_MAX => Err(TOO_LARGE.to_string()),
            _ => Ok((number, rest)),
        }
    }

    fn negate(&self, number: Decimal) -> Result<Decimal, String> {
        let mantissa = number.mantissa.checked_neg().ok_or_else(|| TOO_LARGE.to_string())?;
        Ok(Decimal { mantissa, ..number })
    }

    fn apply(&self, operator: Operator, left: Decimal, right: Decimal) -> Result<Decimal, String> {
        left.apply(operator, right)
    }
}

/// A decimal number: `mantissa` divided by ten to the power of `scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    mantissa: i128,
    scale: u32,
}

const TOO_LARGE: &str = "a number is too large";

/// Decimals a number may have; `bc` has no limit, sizes have no use for more.
const SCALE_MAX: u32 = 30;

impl Decimal {
    /// The mantissa at a scale not smaller than its own.
    fn at_scale(self, scale: u32) -> Result<i128, String> {
        10i128
            .checked_pow(scale - self.scale)
            .and_then(|factor| self.mantissa.checked_mul(factor))
            .ok_or_else(|| TOO_LARGE.to_string())
    }

    /// The same number truncated to `scale` decimals.
    fn cut(self, scale: u32) -> Decimal {
        if self.scale <= scale {
            return self;
        }
        let divisor = 10i128.checked_pow(self.scale - scale);
        Decimal { mantissa: divisor.map_or(0, |divisor| self.mantissa / divisor), scale }
    }

    fn apply(self, operator: Operator, right: Decimal) -> Result<Decimal, String> {
        let scale = self.scale.max(right.scale);
        let too_large = || TOO_LARGE.to_string();
        match operator {
            Operator::Multiply => {
                let mantissa = self.mantissa.checked_mul(right.mantissa).ok_or_else(too_large)?;
                Ok(Decimal { mantissa, scale: self.scale + right.scale }.cut(scale))
            }
            Operator::Power => self.power(right),
            _ => {
                let (left, right) = (self.at_scale(scale)?, right.at_scale(scale)?);
                let by_zero = || "it divides by zero".to_string();
                let (mantissa, scale) = match operator {
                    Operator::Add => (left.checked_add(right).ok_or_else(too_large)?, scale),
                    Operator::Subtract => (left.checked_sub(right).ok_or_else(too_large)?, scale),
                    Operator::Divide => (left.checked_div(right).ok_or_else(by_zero)?, 0),
                    _ => (left.checked_rem(right).ok_or_else(by_zero)?, scale),
                };
                Ok(Decimal { mantissa, scale })
            }
        }
    }

    fn power(self, right: Decimal) -> Result<Decimal, String> {
        let exponent = right.cut(0).mantissa;
        let exponent = u32::try_from(exponent).map_err(|_| "an exponent must be 0 or more".to_string())?;
        let scale = self.scale.checked_mul(exponent).filter(|scale| *scale <= SCALE_MAX);
        match (scale, self.mantissa.checked_pow(exponent)) {
            (Some(scale), Some(mantissa)) => Ok(Decimal { mantissa, scale }.cut(self.scale)),
            _ => Err(TOO_LARGE.to_string()),
        }
    }

    fn print(self) -> String {
        if self.scale == 0 {
            return self.mantissa.to_string();
        }
        let divisor = 10u128.pow(self.scale);
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let size = self.mantissa.unsigned_abs();
        format!("{sign}{}.{:0width$}", size / divisor, size % divisor, width = self.scale as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEYWORDS: KeywordValues = KeywordValues { cpus: 2, memory_mib: 24105, page_bytes: 4096 };

    fn lookup(name: &OsStr) -> Option<OsString> {
        match name.to_str()? {
            "V" => Some("vv".into()),
            "NESTED" => Some("${V}".into()),
            "COMMENT" => Some("x;y#z".into()),
            "EMPTY" => Some(OsString::new()),
            "a b" => Some("q".into()),
            "BYTES" => Some(OsString::from_vec(b"\xe9".to_vec())),
            _ => None,
        }
    }

    fn expand(text: &str) -> (String, Vec<String>) {
        let expanded = variables(OsStr::new(text), &lookup);
        (expanded.text.into_string().unwrap(), expanded.unset)
    }

    #[test]
    fn variables_are_replaced_once() {
        assert_eq!(expand("a${V}${V}b").0, "avvvvb");
        assert_eq!(expand("${V}Gi").0, "vvGi");
        assert_eq!(expand("${NESTED}").0, "${V}");
        assert_eq!(expand("${COMMENT}").0, "x;y#z");
        assert_eq!(expand("${a b}").0, "q");
        assert_eq!(expand("a\\${V}$${V}").0, "a\\vv$vv");
    }

    #[test]
    fn bytes_that_are_not_utf_8_stay_and_are_put_in_place() {
        let bytes = |text: &[u8]| OsString::from_vec(text.to_vec());
        let expanded = variables(&bytes(b"\xff${V}${BYTES}\xfe${\xfd}"), &lookup);
        assert_eq!(expanded.text, bytes(b"\xffvv\xe9\xfe"));
        assert_eq!(expanded.unset, [r"\xfd"]);
        let replaced = keywords(&bytes(b"\xff-$ncpus"), &KEYWORDS, false);
        assert_eq!(replaced, Ok(bytes(b"\xff-2")));
        assert!(keywords(&bytes(b"\xff-$ncpus"), &KEYWORDS, true).is_err());
    }

    #[test]
    fn what_is_no_variable_stays() {
        assert_eq!(expand("$V ${V").0, "$V ${V");
        assert_eq!(expand("plain").0, "plain");
    }

    #[test]
    fn unset_and_empty_variables_leave_nothing_and_are_named() {
        let both = vec!["NOPE".to_string(), "EMPTY".to_string()];
        assert_eq!(expand("x${NOPE}y${EMPTY}"), ("xy".to_string(), both));
        assert_eq!(expand("${}"), (String::new(), vec![String::new()]));
    }

    fn sum(text: &str) -> String {
        let worked_out = keywords(OsStr::new(text), &KEYWORDS, true);
        worked_out.map_or_else(|why| format!("error: {why}"), |text| text.into_string().unwrap())
    }

    /// Each right-hand side is the result of fio 3.33 with `bc` for the left-hand side.
    #[test]
    fn sums_come_out_as_in_fio() {
        for (text, expected) in [
            ("$ncpus", "2"),
            ("2*$ncpus", "4"),
            ("10*10*1000*$mb_memory", "2410500000"),
            ("($mb_memory*2)", "48210"),
            ("8*$mb_memory/3", "64280"),
            ("3 * $pagesize", "12288"),
            ("$pagesize + 1", "4097"),
            ("$pagesize/3", "1365"),
            ("$pagesize*1.5", "6144.0"),
            ("-$pagesize", "-4096"),
            ("$ncpus*-3", "-6"),
            ("7/$ncpus*2", "6"),
            ("7.5/$ncpus", "3"),
            ("1/4*$ncpus", "0"),
            ("7.25*$ncpus+.1", "14.60"),
            ("(1+2)^$ncpus*1", "9"),
            ("7%$ncpus+1", "2"),
            ("$pagesize$pagesize", "40964096"),
        ] {
            assert_eq!(sum(text), expected, "{text}");
        }
    }

    #[test]
    fn without_an_operator_or_a_keyword_nothing_is_worked_out() {
        assert_eq!(sum("10*10*1000"), "10*10*1000");
        assert_eq!(sum("$pagesizex"), "4096x");
        assert_eq!(sum("$pagesize^2"), "4096^2");
        assert_eq!(sum("$jobname.$jobnum"), "$jobname.$jobnum");
        assert_eq!(sum("$PAGESIZE"), "$PAGESIZE");
    }

    #[test]
    fn text_keeps_its_dashes_and_slashes() {
        let text = keywords(OsStr::new("/tmp/$ncpus-way"), &KEYWORDS, false);
        assert_eq!(text, Ok("/tmp/2-way".into()));
    }

    #[test]
    fn sums_that_cannot_be_done_say_why() {
        for (text, expected) in [
            ("$pagesize/0", "it divides by zero"),
            ("8*$mb_memory*1024k", "\"k\" is not part of a sum"),
            ("$pagesize*", "a number is missing at the end"),
            ("*$pagesize", "\"*4096\" is not a number"),
            ("($pagesize*2", "a \")\" is missing"),
            ("99999999999999999999*99999999999999999999*$ncpus", "a number is too large"),
        ] {
            let message = sum(text);
            assert!(message.starts_with("error: ") && message.ends_with(expected), "{text}: {message}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_instead_of_exhausting_the_stack() {
        for opening in ["(", "-", "1^"] {
            let deep = format!("{}$ncpus*1", opening.repeat(100_000));
            assert!(sum(&deep).ends_with("nested too deeply"), "{opening}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-0-9.+*/%^() ]{0,40}") {
            let _ = keywords(OsStr::new(&format!("{text}*$ncpus")), &KEYWORDS, true);
            let _ = variables(OsStr::new(&text), &lookup);
        }

        #[test]
        fn sums_of_whole_numbers_are_right(left in 0..1_000_000_i64, right in 1..1_000_000_i64) {
            prop_assert_eq!(evaluate(&format!("{left}+{right}*2")), Ok((left + right * 2).to_string()));
            prop_assert_eq!(evaluate(&format!("{left}/{right}")), Ok((left / right).to_string()));
            prop_assert_eq!(evaluate(&format!("({left}-{right})%7")), Ok(((left - right) % 7).to_string()));
        }
    }
}
