//! What is put in place of `${VAR}` and of `$ncpus`, `$mb_memory` and `$pagesize`, and the sums done with them.
//!
//! Invariant: text without a `$` comes out as it went in.

use std::io;

/// Gives the bytes of a file by the name the user wrote; `-` is standard input.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> io::Result<Vec<u8>>;

/// Gives the value of an environment variable; `None` when it is not set or is not text.
pub type ReadVariable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the grammars need from the world outside, since they touch nothing themselves.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Reads job files and included files.
    pub files: ReadFile<'a>,
    /// Reads environment variables.
    pub variables: ReadVariable<'a>,
    /// What the reserved keywords stand for.
    pub machine: Machine,
}

/// The values of the reserved keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// `$ncpus`: CPUs online.
    pub cpus: u64,
    /// `$mb_memory`: memory in MiB.
    pub memory_mib: u64,
    /// `$pagesize`: size of a memory page in bytes.
    pub page_bytes: u64,
}

/// A text whose variables have been replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The text.
    pub text: String,
    /// Variables that are not set or empty; nothing stands in their place.
    pub unset: Vec<String>,
}

/// Replaces every `${NAME}` by the variable's value. The value is not looked at again, and a `${` without its `}`
/// stays as it is.
pub fn variables(text: &str, lookup: ReadVariable<'_>) -> Expanded {
    let mut expanded = Expanded { text: String::with_capacity(text.len()), unset: Vec::new() };
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + 2..start + length];
        expanded.text.push_str(&rest[..start]);
        match lookup(name).filter(|value| !value.is_empty()) {
            Some(value) => expanded.text.push_str(&value),
            None => expanded.unset.push(name.to_string()),
        }
        rest = &rest[start + length + 1..];
    }
    expanded.text.push_str(rest);
    expanded
}

/// Replaces the reserved keywords in a value. A number that was written as a sum over them (`10*$mb_memory`) is
/// worked out when `sums` asks for it; `Err` is the sentence that says why that cannot be done.
///
/// fio hands such a value to `bc`, and only when a keyword stands in it: `10*10` alone stays text.
pub fn keywords(value: &str, machine: &Machine, sums: bool) -> Result<String, String> {
    let known =
        [("$pagesize", machine.page_bytes), ("$mb_memory", machine.memory_mib), ("$ncpus", machine.cpus)];
    if !known.iter().any(|(keyword, _)| value.contains(keyword)) {
        return Ok(value.to_string());
    }
    let mut replaced = value.to_string();
    for (keyword, number) in known {
        replaced = replaced.replace(keyword, &number.to_string());
    }
    if !sums || !replaced.contains(['+', '-', '*', '/']) {
        return Ok(replaced);
    }
    match evaluate(&replaced) {
        Ok(result) => Ok(result),
        Err(why) => Err(format!("cannot work out \"{replaced}\": {why}")),
    }
}

/// Works out a sum as `bc` does with `scale=0`: division truncates, other results keep their decimals.
fn evaluate(text: &str) -> Result<String, String> {
    let mut sum = Sum { text: text.as_bytes(), at: 0, depth: 0 };
    let result = sum.terms()?;
    sum.blanks();
    match sum.text.get(sum.at) {
        None => Ok(result.print()),
        Some(_) => Err(format!("\"{}\" is not part of a sum", text.get(sum.at..).unwrap_or(text))),
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

    /// The same number with no more than `scale` decimals, the others cut off.
    fn cut(self, scale: u32) -> Decimal {
        if self.scale <= scale {
            return self;
        }
        let divisor = 10i128.checked_pow(self.scale - scale);
        Decimal { mantissa: divisor.map_or(0, |divisor| self.mantissa / divisor), scale }
    }

    fn apply(self, operator: u8, right: Decimal) -> Result<Decimal, String> {
        let scale = self.scale.max(right.scale);
        let too_large = || TOO_LARGE.to_string();
        match operator {
            b'*' => {
                let mantissa = self.mantissa.checked_mul(right.mantissa).ok_or_else(too_large)?;
                Ok(Decimal { mantissa, scale: self.scale + right.scale }.cut(scale))
            }
            b'^' => self.power(right),
            _ => {
                let (left, right) = (self.at_scale(scale)?, right.at_scale(scale)?);
                let by_zero = || "it divides by zero".to_string();
                let (mantissa, scale) = match operator {
                    b'+' => (left.checked_add(right).ok_or_else(too_large)?, scale),
                    b'-' => (left.checked_sub(right).ok_or_else(too_large)?, scale),
                    b'/' => (left.checked_div(right).ok_or_else(by_zero)?, 0),
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

/// Parentheses within parentheses a sum may have, so that no text can exhaust the stack.
const DEPTH_MAX: u32 = 50;

/// A recursive-descent reader of sums.
struct Sum<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
}

impl Sum<'_> {
    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Takes the next character if it is one of `wanted`.
    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        self.blanks();
        let next = *self.text.get(self.at)?;
        wanted.contains(&next).then(|| {
            self.at += 1;
            next
        })
    }

    fn terms(&mut self) -> Result<Decimal, String> {
        let mut left = self.factors()?;
        while let Some(operator) = self.take(b"+-") {
            left = left.apply(operator, self.factors()?)?;
        }
        Ok(left)
    }

    fn factors(&mut self) -> Result<Decimal, String> {
        let mut left = self.power()?;
        while let Some(operator) = self.take(b"*/%") {
            left = left.apply(operator, self.power()?)?;
        }
        Ok(left)
    }

    fn power(&mut self) -> Result<Decimal, String> {
        let base = self.atom()?;
        match self.take(b"^") {
            Some(operator) => {
                self.enter()?;
                let exponent = self.power()?;
                self.depth -= 1;
                base.apply(operator, exponent)
            }
            None => Ok(base),
        }
    }

    fn enter(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err("it is nested too deeply".to_string()) } else { Ok(()) }
    }

    fn atom(&mut self) -> Result<Decimal, String> {
        match self.take(b"-(") {
            Some(b'-') => {
                self.enter()?;
                let number = self.atom()?;
                self.depth -= 1;
                let mantissa = number.mantissa.checked_neg().ok_or_else(|| TOO_LARGE.to_string())?;
                Ok(Decimal { mantissa, ..number })
            }
            Some(_) => {
                self.enter()?;
                let inner = self.terms()?;
                self.depth -= 1;
                self.take(b")").map(|_| inner).ok_or_else(|| "a \")\" is missing".to_string())
            }
            None => self.number(),
        }
    }

    fn number(&mut self) -> Result<Decimal, String> {
        self.blanks();
        let start = self.at;
        let mut number = Decimal { mantissa: 0, scale: 0 };
        let mut digits = 0;
        let mut after_point = false;
        while let Some(&next) = self.text.get(self.at) {
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
            self.at += 1;
        }
        if digits == 0 {
            let found = String::from_utf8_lossy(&self.text[start..]);
            return Err(if found.is_empty() {
                "it ends where a number should stand".to_string()
            } else {
                format!("\"{found}\" begins where a number should stand")
            });
        }
        if number.scale > SCALE_MAX { Err(TOO_LARGE.to_string()) } else { Ok(number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MACHINE: Machine = Machine { cpus: 2, memory_mib: 24105, page_bytes: 4096 };

    fn lookup(name: &str) -> Option<String> {
        match name {
            "V" => Some("vv".to_string()),
            "NESTED" => Some("${V}".to_string()),
            "COMMENT" => Some("x;y#z".to_string()),
            "EMPTY" => Some(String::new()),
            "a b" => Some("q".to_string()),
            _ => None,
        }
    }

    fn expand(text: &str) -> (String, Vec<String>) {
        let expanded = variables(text, &lookup);
        (expanded.text, expanded.unset)
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
        keywords(text, &MACHINE, true).unwrap_or_else(|why| format!("error: {why}"))
    }

    /// Each right-hand side is what fio 3.33 with `bc` made of the left-hand side.
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
        let text = keywords("/tmp/$ncpus-way", &MACHINE, false);
        assert_eq!(text.as_deref(), Ok("/tmp/2-way"));
    }

    #[test]
    fn sums_that_cannot_be_done_say_why() {
        for (text, expected) in [
            ("$pagesize/0", "it divides by zero"),
            ("8*$mb_memory*1024k", "\"k\" is not part of a sum"),
            ("$pagesize*", "it ends where a number should stand"),
            ("*$pagesize", "\"*4096\" begins where a number should stand"),
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
            let _ = keywords(&format!("{text}*$ncpus"), &MACHINE, true);
            let _ = variables(&text, &lookup);
        }

        #[test]
        fn sums_of_whole_numbers_are_right(left in 0..1_000_000_i64, right in 1..1_000_000_i64) {
            prop_assert_eq!(evaluate(&format!("{left}+{right}*2")), Ok((left + right * 2).to_string()));
            prop_assert_eq!(evaluate(&format!("{left}/{right}")), Ok((left / right).to_string()));
            prop_assert_eq!(evaluate(&format!("({left}-{right})%7")), Ok(((left - right) % 7).to_string()));
        }
    }
}
