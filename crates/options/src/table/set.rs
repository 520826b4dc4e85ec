//! How options are declared: about five lines per option, from which everything else follows.
//!
//! Invariant: an option is declared in one place (a file of `job/`, `program.rs` or a file of `engine/`) through the
//! `options!` macro, and its parser, default, documentation, help and lookup all come from that declaration.

use std::ffi::OsStr;

use super::spec::Spec;
use crate::value::{Reading, Value, behind_empty_first};

/// Declares a set of options: a struct of typed values, its `Default`, its `OptionSet`, and a constant for each option.
///
/// The constant is the option itself, called as its field is: `options.blocks.bs` is the block size of a job,
/// `Blocks::bs` is the option of that name. It is the only way for code to name an option, so that a name that is
/// misspelt or no longer declared does not compile.
///
/// ```text
/// options! {
///     /// Doc of the struct.
///     pub struct Blocks, scope Scope::Job;
///
///     "Heading of the reference page" {
///         /// Summary line.
///         ///
///         /// A few sentences.
///         bs | blocksize: PerDirection<Bytes> = 4096, in 1..=U32_MAX;
///         /// No default: the field is an `Option`.
///         #[pending("why it is refused")]
///         hugepage_size as "hugepage-size": Bytes;
///     }
/// }
/// ```
///
/// A declaration is one of
///
/// - ready: the field holds the value;
/// - `#[pending("reason")]`: refused with this reason, unless the value given is the default;
/// - `#[ignored("explanation")]`: accepted without effect, with a warning;
/// - `#[dormant(Set::option)]`: has an effect only together with that option, which is itself refused; accepted;
/// - `#[secret(masked)]`: ready, and its value is shown to no one.
///
/// All but the first and the last have no value that could be read: their fields are of type [`NotRead`]. The same holds for all
/// options of a set that is declared `unbuilt`, whose engines are not built in (`scope Scope::Engine(…), unbuilt;`).
macro_rules! options {
    (
        $(#[doc = $struct_doc:literal])*
        pub struct $set:ident, scope $scope:expr;

        $($category:literal {
            $(
                $(#[doc = $doc:literal])*
                $(#[pending($pending:literal)])?
                $(#[ignored($ignored:literal)])?
                $(#[dormant($dormant:path)])?
                $(#[unbuilt($unbuilt:ident)])?
                $(#[secret($secret:ident)])?
                $name:ident $(as $spelled:literal)? $(| $alias:ident)*:
                    $type:ty $(= $default:literal)? $(, in $range:expr)?;
            )*
        })*
    ) => {
        $(#[doc = $struct_doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $set {
            $($(
                $(#[doc = $doc])*
                pub $name: options!(
                    @field [$($pending)? $($ignored)? $($dormant)? $($unbuilt)?] $type $(= $default)?
                ),
            )*)*
        }

        impl Default for $set {
            fn default() -> $set {
                $set {
                    $($(
                        $name: options!(
                            @default [$($pending)? $($ignored)? $($dormant)? $($unbuilt)?] $type $(= $default)?
                        ),
                    )*)*
                }
            }
        }

        #[allow(
            non_upper_case_globals,
            dead_code,
            reason = "an option is called as its field is; code names few of them"
        )]
        impl $set {
            $($(
                $(#[doc = $doc])*
                pub const $name: &'static $crate::Spec = {
                    static SPEC: $crate::Spec = $crate::Spec {
                        name: options!(@name $name $(as $spelled)?),
                        aliases: &[$(stringify!($alias)),*],
                        scope: $scope,
                        takes: <$type as $crate::value::Value>::TAKES,
                        status: options!(
                            @status $(pending $pending)? $(ignored $ignored)? $(dormant $dormant)?
                            $(unbuilt $unbuilt)?
                        ),
                        kind: <$type as $crate::value::Value>::KIND,
                        default: options!(@text $($default)?),
                        range: options!(@range $($range)?),
                        choices: <$type as $crate::value::Value>::CHOICES,
                        doc: concat!($($doc, "\n"),*),
                        secret: options!(@secret $($secret)?),
                        category: $category,
                        parse: |text, reading| {
                            reading.range = options!(@range $($range)?);
                            $crate::table::set::parse::<$type>(None, text, reading).map(drop)
                        },
                    };
                    &SPEC
                };
            )*)*
        }

        impl $crate::table::set::OptionSet for $set {
            const TABLES: &'static [&'static [&'static $crate::Spec]] = &[&[$($($set::$name,)*)*]];

            fn apply(
                &mut self,
                spec: &$crate::Spec,
                text: Option<&std::ffi::OsStr>,
                reading: &mut $crate::value::Reading,
            ) -> Option<Result<$crate::table::set::Applied, String>> {
                $($(
                    if spec == $set::$name {
                        reading.range = options!(@range $($range)?);
                        return Some(options!(
                            @apply [$($pending)? $($ignored)? $($dormant)? $($unbuilt)?]
                            self.$name, text, reading, $type $(= $default)?
                        ));
                    }
                )*)*
                None
            }
        }
    };

    (
        $(#[doc = $struct_doc:literal])*
        pub struct $set:ident, scope $scope:expr, unbuilt;

        $($category:literal {
            $(
                $(#[doc = $doc:literal])*
                $name:ident $(as $spelled:literal)? $(| $alias:ident)*:
                    $type:ty $(= $default:literal)? $(, in $range:expr)?;
            )*
        })*
    ) => {
        options! {
            $(#[doc = $struct_doc])*
            pub struct $set, scope $scope;

            $($category {
                $(
                    $(#[doc = $doc])*
                    #[unbuilt($set)]
                    $name $(as $spelled)? $(| $alias)*: $type $(= $default)? $(, in $range)?;
                )*
            })*
        }
    };

    (@secret) => { false };
    (@secret masked) => { true };

    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident as $spelled:literal) => { $spelled };

    (@text) => { "" };
    (@text $default:literal) => { concat!($default) };

    (@range) => { None };
    (@range $range:expr) => { Some($range) };

    (@status) => { $crate::Status::Ready };
    (@status pending $why:literal) => { $crate::Status::Pending($why) };
    (@status ignored $why:literal) => { $crate::Status::Ignored($why) };
    (@status dormant $parent:path) => { $crate::Status::Dormant($parent) };
    (@status unbuilt $of:ident) => { $crate::Status::Unbuilt };

    (@field [$($unread:tt)+] $($rest:tt)*) => { $crate::table::set::NotRead };
    (@field [] $type:ty) => { Option<$type> };
    (@field [] $type:ty = $default:literal) => { $type };

    (@default [$($unread:tt)+] $($rest:tt)*) => { $crate::table::set::NotRead };
    (@default [] $type:ty) => { None };
    (@default [] $type:ty = $default:literal) => { $crate::table::set::default_value::<$type>(concat!($default)) };

    (@apply [$($unread:tt)+] $field:expr, $text:ident, $reading:ident, $type:ty $(= $default:literal)?) => {
        $crate::table::set::check_unread::<$type>($text, options!(@text $($default)?), $reading)
    };
    (@apply [] $field:expr, $text:ident, $reading:ident, $type:ty) => {
        $crate::table::set::parse::<$type>($field.as_ref(), $text, $reading).map(|value| {
            $field = value.or($field.take());
            $crate::table::set::Applied::Set
        })
    };
    (@apply [] $field:expr, $text:ident, $reading:ident, $type:ty = $default:literal) => {
        $crate::table::set::parse::<$type>(Some(&$field), $text, $reading).map(|value| {
            value.into_iter().for_each(|value| $field = value);
            $crate::table::set::Applied::Set
        })
    };
}
pub(crate) use options;

/// Makes one set of several tables, each a field, and of the engines' private options.
macro_rules! option_sets {
    (
        $(#[doc = $set_doc:literal])*
        pub struct $set:ident { $($(#[doc = $doc:literal])* $field:ident: $table:ty,)* }

        engines { $($engine:ident: $engine_options:ty,)* }
    ) => {
        $(#[doc = $set_doc])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $set {
            $($(#[doc = $doc])* pub $field: $table,)*
            $(
                #[doc = concat!("Options of engines: `", stringify!($engine), "`.")]
                pub $engine: $engine_options,
            )*
        }

        impl $crate::table::OptionSet for $set {
            const TABLES: &'static [&'static [&'static $crate::Spec]] =
                &[$(<$table as $crate::table::OptionSet>::TABLES[0]),*];

            fn apply(
                &mut self,
                spec: &$crate::Spec,
                text: Option<&std::ffi::OsStr>,
                reading: &mut $crate::value::Reading,
            ) -> Option<Result<$crate::table::Applied, String>> {
                $(
                    if let Some(applied) = $crate::table::OptionSet::apply(&mut self.$field, spec, text, reading) {
                        return Some(applied);
                    }
                )*
                $(
                    if let Some(applied) = $crate::table::OptionSet::apply(&mut self.$engine, spec, text, reading) {
                        return Some(applied);
                    }
                )*
                None
            }
        }
    };
}
pub(crate) use option_sets;

/// Largest value of a 32-bit count; shown as "or more".
pub(crate) const U32: i128 = u32::MAX as i128;

/// Largest value of a 64-bit size; shown as "or more".
pub(crate) const U64: i128 = u64::MAX as i128;

/// The value of an option that no code may read: it is pending, ignored, dormant or unbuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NotRead;

/// The result of applying one setting whose value was well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The option now has the value.
    Set,
    /// The option is not read, and the value is its default, so that nothing is lost.
    Neutral,
    /// The option is not read, and its value is not the default.
    NotRead,
}

/// A struct declared by `options!`.
pub trait OptionSet: Default {
    /// The declarations of this set, in order, one slice for each table it is made of; those of engines are not among
    /// them.
    const TABLES: &'static [&'static [&'static Spec]];

    /// Sets one option; `reading` has the meaning of suffixes and collects warnings. `None` when the option is not of
    /// this set; `Err` is the sentence that says what is wrong with the value.
    fn apply(
        &mut self,
        spec: &Spec,
        text: Option<&OsStr>,
        reading: &mut Reading,
    ) -> Option<Result<Applied, String>>;
}

/// Parses the value of one option, on top of the value it had: `bs=,8k` leaves the block size of reads alone.
/// `None`: the option keeps what it had, since the one value it takes is left out (`runtime=,3`).
pub(crate) fn parse<T: Value>(
    before: Option<&T>,
    text: Option<&OsStr>,
    reading: &mut Reading,
) -> Result<Option<T>, String> {
    let Some(bytes) = text else {
        return T::bare().map(Some).ok_or_else(|| format!("needs a value ({})", T::KIND));
    };
    let Some(text) = bytes.to_str() else { return T::parse_bytes(bytes, reading).map(Some) };
    if text.is_empty() && T::unset().is_none() {
        return Err(format!("needs a value ({})", T::KIND));
    }
    match behind_empty_first(text).filter(|_| T::ONE_OF_LIST) {
        Some(others) => {
            // They are read, so that they must be values; none is used.
            let read: Result<Vec<T>, String> =
                others.into_iter().map(|part| T::parse(part, reading)).collect();
            read?;
            reading.note(format!("{text:?} has no effect: only the first value is used, and it is empty"));
            Ok(None)
        }
        None => T::parse_onto(before, text, reading).map(Some),
    }
}

/// The default of the table as a value.
///
/// # Panics
/// When the table is wrong; a test resolves every set once.
#[expect(clippy::panic, reason = "documented; a test resolves every set")]
pub(crate) fn default_value<T: Value>(text: &str) -> T {
    if let Some(unset) = T::unset().filter(|_| text.is_empty()) {
        return unset;
    }
    match T::parse_onto(None, text, &mut Reading::default()) {
        Ok(value) => value,
        Err(why) => panic!("default {text:?} in the table of options: {why}"),
    }
}

/// Checks the value of an option that is not read, and whether it is the default.
pub(crate) fn check_unread<T: Value>(
    text: Option<&OsStr>,
    default: &str,
    reading: &mut Reading,
) -> Result<Applied, String> {
    let value = parse::<T>(None, text, reading)?;
    let neutral = match value {
        Some(value) => !default.is_empty() && value == default_value::<T>(default),
        None => true,
    };
    Ok(if neutral { Applied::Neutral } else { Applied::NotRead })
}
