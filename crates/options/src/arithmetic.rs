//! The one parser of arithmetic: `+ - * / % ^`, signs and parentheses, by precedence climbing.
//!
//! Invariant: parsing ends, whatever the text: nesting is bounded, and every step takes at least one character.
//!
//! Two kinds of arithmetic are written in job files: what fio hands to `bc` (`8*$mb_memory`) and expressions in
//! parentheses (`(4 * 1k + 512)`). A [`Dialect`] states how their grammars differ, [`Arithmetic`] how they read and
//! compute numbers.

/// The numbers of a dialect: how they are written, and how they are computed with.
pub(crate) trait Arithmetic {
    /// A value.
    type Number;

    /// Reads the number that `text` begins with, and returns it with the text after it.
    fn number<'t>(&self, text: &'t str) -> Result<(Self::Number, &'t str), String>;

    /// The value of a minus sign before `number`.
    fn negate(&self, number: Self::Number) -> Result<Self::Number, String>;

    /// The value of `left operator right`.
    fn apply(
        &self,
        operator: Operator,
        left: Self::Number,
        right: Self::Number,
    ) -> Result<Self::Number, String>;
}

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
    /// `^`
    Power,
}

impl Operator {
    fn of(letter: char) -> Option<Operator> {
        Some(match letter {
            '+' => Operator::Add,
            '-' => Operator::Subtract,
            '*' => Operator::Multiply,
            '/' => Operator::Divide,
            '%' => Operator::Remainder,
            '^' => Operator::Power,
            _ => return None,
        })
    }

    fn precedence(self) -> Precedence {
        match self {
            Operator::Add | Operator::Subtract => Precedence::Sum,
            Operator::Multiply | Operator::Divide | Operator::Remainder => Precedence::Product,
            Operator::Power => Precedence::Power,
        }
    }
}

/// How tightly operators bind, the loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Sum,
    Product,
    Power,
}

/// The operand of a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The number or parenthesis after it, as in `bc`: `-2^2` is 4.
    BindsTighterThanPower,
    /// A whole power, as in mathematics: `-2^2` is -4.
    BindsLooserThanPower,
}

/// How the grammar of one kind of arithmetic differs from the other's.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The operand of a sign.
    pub(crate) sign: Sign,
    /// Whether a `+` may be a sign.
    pub(crate) unary_plus: bool,
    /// Which characters are white space.
    pub(crate) is_space: fn(char) -> bool,
    /// Parentheses, signs and exponents that may be nested, so that no text can exhaust the stack.
    pub(crate) nesting_max: u32,
    /// The error for text that is nested deeper.
    pub(crate) nested_too_deeply: &'static str,
    /// The error for a parenthesis that is not closed.
    pub(crate) unclosed: &'static str,
}

impl Dialect {
    /// Computes the expression that `text` begins with, and returns its value with the text after it and white space.
    ///
    /// # Errors The first error in the order of the text: a number that `arithmetic` cannot read, an operation that
    /// it cannot do, a parenthesis without its end, text that is nested too deeply.
    pub(crate) fn evaluate<'t, A: Arithmetic>(
        &self,
        text: &'t str,
        arithmetic: &A,
    ) -> Result<(A::Number, &'t str), String> {
        let mut parser = Parser { rest: text, dialect: self, arithmetic, nesting: 0 };
        let value = parser.expression(Precedence::Sum)?;
        parser.skip_space();
        Ok((value, parser.rest))
    }
}

struct Parser<'p, 't, A> {
    rest: &'t str,
    dialect: &'p Dialect,
    arithmetic: &'p A,
    nesting: u32,
}

impl<A: Arithmetic> Parser<'_, '_, A> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches(self.dialect.is_space);
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest.chars().next()
    }

    /// Takes the next character if it is `wanted`, which is ASCII.
    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.rest = &self.rest[1..];
        }
        is_next
    }

    /// The next operator, taken if it binds at least as tightly as `loosest`.
    fn operator(&mut self, loosest: Precedence) -> Option<Operator> {
        let operator = self.peek().and_then(Operator::of)?;
        let binds = operator.precedence() >= loosest;
        if binds {
            self.rest = &self.rest[1..];
        }
        binds.then_some(operator)
    }

    /// Operands and the operators between them that bind at least as tightly as `loosest`.
    fn expression(&mut self, loosest: Precedence) -> Result<A::Number, String> {
        let mut left = self.operand()?;
        while let Some(operator) = self.operator(loosest) {
            let right = match operator.precedence() {
                Precedence::Sum => self.expression(Precedence::Product)?,
                Precedence::Product => self.expression(Precedence::Power)?,
                Precedence::Power => self.nested(|parser| parser.expression(Precedence::Power))?,
            };
            left = self.arithmetic.apply(operator, left, right)?;
        }
        Ok(left)
    }

    /// A number, a parenthesis, or either with a sign.
    fn operand(&mut self) -> Result<A::Number, String> {
        if self.take('(') {
            let value = self.nested(|parser| parser.expression(Precedence::Sum))?;
            return if self.take(')') { Ok(value) } else { Err(self.dialect.unclosed.to_string()) };
        }
        if self.take('-') {
            let value = self.signed()?;
            return self.arithmetic.negate(value);
        }
        if self.dialect.unary_plus && self.take('+') {
            return self.signed();
        }
        self.skip_space();
        let (number, rest) = self.arithmetic.number(self.rest)?;
        self.rest = rest;
        Ok(number)
    }

    /// The operand of a sign.
    fn signed(&mut self) -> Result<A::Number, String> {
        match self.dialect.sign {
            Sign::BindsTighterThanPower => self.nested(Self::operand),
            Sign::BindsLooserThanPower => self.nested(|parser| parser.expression(Precedence::Power)),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<A::Number, String>,
    ) -> Result<A::Number, String> {
        self.nesting += 1;
        if self.nesting > self.dialect.nesting_max {
            return Err(self.dialect.nested_too_deeply.to_string());
        }
        let value = read(self)?;
        self.nesting -= 1;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::expand;
    use crate::value::expression;
    use proptest::prelude::*;

    /// An expression whose structure is known, to be written as text and computed without a parser.
    #[derive(Debug, Clone)]
    enum Tree {
        Number(u8),
        Negated(Box<Tree>),
        Pair(Box<Tree>, Operator, Box<Tree>),
    }

    fn trees() -> impl Strategy<Value = Tree> {
        use Operator::{Add, Divide, Multiply, Power, Remainder, Subtract};
        let operators = prop::sample::select(vec![Add, Subtract, Multiply, Divide, Remainder, Power]);
        (0..10_u8).prop_map(Tree::Number).prop_recursive(5, 24, 2, move |inner| {
            let pair = (inner.clone(), operators.clone(), inner.clone())
                .prop_map(|(left, operator, right)| Tree::Pair(left.into(), operator, right.into()));
            prop_oneof![1 => inner.prop_map(|tree| Tree::Negated(tree.into())), 4 => pair]
        })
    }

    /// How tightly a tree's text binds: 1 sum, 2 product, 3 and 4 power and sign in the order of the dialect, 5 a
    /// number.
    fn binding(tree: &Tree, sign: Sign) -> u8 {
        let sign_is_tighter = u8::from(sign == Sign::BindsTighterThanPower);
        match tree {
            Tree::Number(_) => 5,
            Tree::Negated(_) => 3 + sign_is_tighter,
            Tree::Pair(_, Operator::Power, _) => 4 - sign_is_tighter,
            Tree::Pair(_, Operator::Add | Operator::Subtract, _) => 1,
            Tree::Pair(..) => 2,
        }
    }

    /// A tree as text, in parentheses where it binds less tightly than `least`: no others are written.
    fn write(tree: &Tree, sign: Sign, least: u8) -> String {
        let own = binding(tree, sign);
        let text = match tree {
            Tree::Number(number) => number.to_string(),
            Tree::Negated(inner) => format!("-{}", write(inner, sign, if own == 4 { 4 } else { 3 })),
            Tree::Pair(left, operator, right) => {
                let (letter, least_left, least_right) = match operator {
                    Operator::Add => ("+", 1, 2),
                    Operator::Subtract => (" - ", 1, 2),
                    Operator::Multiply => ("*", 2, 3),
                    Operator::Divide => (" /", 2, 3),
                    Operator::Remainder => ("% ", 2, 3),
                    Operator::Power => ("^", own + 1, 3),
                };
                format!("{}{letter}{}", write(left, sign, least_left), write(right, sign, least_right))
            }
        };
        if own < least { format!("({text})") } else { text }
    }

    /// The value of a tree in whole numbers: division truncates. `None` if an operation cannot be done.
    fn whole(tree: &Tree) -> Option<i128> {
        let Tree::Pair(left, operator, right) = tree else {
            return match tree {
                Tree::Negated(inner) => whole(inner)?.checked_neg(),
                Tree::Number(number) => Some(i128::from(*number)),
                Tree::Pair(..) => None,
            };
        };
        let (left, right) = (whole(left)?, whole(right)?);
        match operator {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Divide => left.checked_div(right),
            Operator::Remainder => left.checked_rem(right),
            Operator::Power => left.checked_pow(u32::try_from(right).ok()?),
        }
    }

    /// The value of a tree in doubles. `None` if an operation cannot be done.
    fn double(tree: &Tree) -> Option<f64> {
        let Tree::Pair(left, operator, right) = tree else {
            return match tree {
                Tree::Negated(inner) => Some(-double(inner)?),
                Tree::Number(number) => Some(f64::from(*number)),
                Tree::Pair(..) => None,
            };
        };
        let (left, right) = (double(left)?, double(right)?);
        match operator {
            Operator::Add => Some(left + right),
            Operator::Subtract => Some(left - right),
            Operator::Multiply => Some(left * right),
            Operator::Divide => (right != 0.0).then(|| left / right),
            Operator::Remainder => (right != 0.0).then(|| left.trunc() % right.trunc()),
            Operator::Power => Some(left.powf(right)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn sums_mean_what_their_structure_says(tree in trees()) {
            let text = write(&tree, Sign::BindsTighterThanPower, 1);
            let expected = whole(&tree).map(|value| value.to_string());
            prop_assert_eq!(expand::evaluate(&text).ok(), expected, "{}", text);
        }

        #[test]
        fn expressions_mean_what_their_structure_says(tree in trees()) {
            let text = write(&tree, Sign::BindsLooserThanPower, 1);
            let expected = double(&tree).filter(|value| value.is_finite());
            prop_assert_eq!(expression::evaluate(&text, &|_| (1, 0)).ok(), expected, "{}", text);
        }
    }

    #[test]
    fn the_dialects_differ_in_what_a_sign_stands_before() {
        let double = |text: &str| expression::evaluate(text, &|_| (1, 0));
        assert_eq!((expand::evaluate("-2^2"), double("-2^2")), (Ok("4".to_string()), Ok(-4.0)));
        assert_eq!((expand::evaluate("+2").is_err(), double("+2")), (true, Ok(2.0)));
    }

    #[test]
    fn the_limits_of_nesting_are_those_of_the_dialects() {
        for opening in ["(", "-", "1^"] {
            let nested = |depth: usize| {
                let closing = if opening == "(" { ")".repeat(depth) } else { String::new() };
                format!("{}1{closing}", opening.repeat(depth))
            };
            let double = |depth| expression::evaluate(&nested(depth), &|_| (1, 0));
            assert!(expand::evaluate(&nested(50)).is_ok() && double(63).is_ok(), "{opening}");
            assert_eq!(expand::evaluate(&nested(51)), Err("it is nested too deeply".to_string()));
            assert_eq!(double(64), Err("an expression is nested too deeply".to_string()));
        }
    }
}
