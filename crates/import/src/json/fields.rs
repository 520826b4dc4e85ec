//! The members of a JSON object, by key and type.
//!
//! Invariant: a member of the wrong type is an error that has the path to it; one that is absent or null is `None`.

use fiord_stats::Capped;
use serde_json::{Map, Value};

/// One step from a value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Index(usize),
}

/// A value is not of the type that a report has there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrongType {
    /// The way to it from the top of the document.
    pub path: Vec<PathStep>,
    pub problem: String,
}

/// An object, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Fields<'v> {
    members: Option<&'v Map<String, Value>>,
    path: Vec<PathStep>,
}

impl<'v> Fields<'v> {
    /// A whole document.
    pub fn root(value: &'v Value) -> Fields<'v> {
        Fields { members: value.as_object(), path: Vec::new() }
    }

    /// An item of the list of this key, at the end of this path.
    pub fn at(value: &'v Value, path: Vec<PathStep>, key: &str) -> Result<Fields<'v>, WrongType> {
        match value.as_object() {
            Some(members) => Ok(Fields { members: Some(members), path }),
            None => Err(WrongType { path, problem: format!("{key:?} has an item that is not an object") }),
        }
    }

    /// All members, in the order of the document.
    pub fn members(&self) -> impl Iterator<Item = (&'v str, &'v Value)> {
        self.members.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// An error about this object as a whole.
    pub fn wrong(&self, problem: &str) -> WrongType {
        WrongType { path: self.path.clone(), problem: problem.to_string() }
    }

    fn get(&self, key: &str) -> Option<&'v Value> {
        self.members.and_then(|members| members.get(key)).filter(|value| !value.is_null())
    }

    fn within(&self, step: PathStep) -> Vec<PathStep> {
        let mut path = self.path.clone();
        path.push(step);
        path
    }

    pub fn wrong_member(&self, key: &str, wanted: &str) -> WrongType {
        let path = self.within(PathStep::Key(key.to_string()));
        WrongType { path, problem: format!("{key:?} is not {wanted}") }
    }

    /// A number.
    pub fn float(&self, key: &str) -> Result<Option<f64>, WrongType> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.wrong_member(key, "a number"))
    }

    /// A whole number in the range of its type. Programs that rewrite reports make floats of them.
    pub fn number<T: TryFrom<i128>>(&self, key: &str) -> Result<Option<T>, WrongType> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let whole = match value {
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(whole), _) => Some(i128::from(whole)),
                (_, Some(whole)) => Some(i128::from(whole)),
                _ => number.as_f64().filter(|float| float.fract() == 0.0).map(i128::capped),
            },
            _ => None,
        };
        let fits = whole.and_then(|whole| T::try_from(whole).ok());
        fits.map(Some).ok_or_else(|| self.wrong_member(key, "a whole number of the range it has in reports"))
    }

    /// A string.
    pub fn text(&self, key: &str) -> Result<Option<String>, WrongType> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong_member(key, "a string"))?;
        Ok(Some(text.to_string()))
    }

    /// An object.
    pub fn object(&self, key: &str) -> Result<Option<Fields<'v>>, WrongType> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let members = value.as_object().ok_or_else(|| self.wrong_member(key, "an object"))?;
        Ok(Some(Fields { members: Some(members), path: self.within(PathStep::Key(key.to_string())) }))
    }

    /// An object, or the first of a list of objects.
    pub fn object_in(&self, key: &str) -> Result<Option<Fields<'v>>, WrongType> {
        match self.get(key) {
            Some(Value::Array(_)) => Ok(self.list(key)?.and_then(|objects| objects.into_iter().next())),
            _ => self.object(key),
        }
    }

    /// Whether it has a list of this name.
    pub fn is_list(&self, key: &str) -> bool {
        matches!(self.get(key), Some(Value::Array(_)))
    }

    /// A list of objects.
    pub fn list(&self, key: &str) -> Result<Option<Vec<Fields<'v>>>, WrongType> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let items = value.as_array().ok_or_else(|| self.wrong_member(key, "a list"))?;
        let path = self.within(PathStep::Key(key.to_string()));
        let item = |(index, value): (usize, &'v Value)| {
            let mut path = path.clone();
            path.push(PathStep::Index(index));
            Fields::at(value, path, key)
        };
        items.iter().enumerate().map(item).collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// All members, which are numbers.
    pub fn figures(&self) -> Result<Vec<(&'v str, f64)>, WrongType> {
        let members = self.members.into_iter().flatten();
        let figure = |(key, value): (&'v String, &'v Value)| match value.as_f64() {
            Some(figure) => Ok((key.as_str(), figure)),
            None => Err(self.wrong_member(key, "a number")),
        };
        members.map(figure).collect()
    }

    /// A list of numbers; empty if there is none.
    pub fn floats(&self, key: &str) -> Result<Vec<f64>, WrongType> {
        let known = self.known_floats(key)?.into_iter();
        known.map(|item| item.ok_or_else(|| self.wrong_member(key, "a list of numbers"))).collect()
    }

    /// The same, where `null` stands for numbers that are not known.
    pub fn known_floats(&self, key: &str) -> Result<Vec<Option<f64>>, WrongType> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let wrong = || self.wrong_member(key, "a list of numbers");
        let items = value.as_array().ok_or_else(wrong)?.iter();
        let number =
            |item: &Value| if item.is_null() { Ok(None) } else { item.as_f64().ok_or_else(wrong).map(Some) };
        items.map(number).collect()
    }

    /// All members as text.
    pub fn texts(&self) -> Vec<(String, String)> {
        let members = self.members.into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
        members.map(|(key, value)| (key.clone(), text(value))).collect()
    }
}
