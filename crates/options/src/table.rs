//! The one table of options: a declaration of about five lines per option, from which everything else follows.
//!
//! Invariant: an option is declared in one place (`job.rs`, `program.rs` or one file of `engine/`) through the
//! `options!` macro, and its parser, default, documentation, help and lookup all come from that declaration.

use crate::section::Setting;
use crate::spec::{Scope, Spec};
use crate::suggest;
use crate::value::{Reading, Value, number};

/// Declares a set of options: a struct of typed values, its `Default`, and its `OptionSet`.
///
/// ```text
/// options! {
///     /// Doc of the struct.
///     pub struct JobOptions, scope Scope::Job, with { io_uring: IoUring };
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
/// `with` names further sets that are parsed alongside (the engines' private options). A declaration is one of
///
/// - ready: the field holds the value;
/// - `#[pending("reason")]`: refused with this reason, unless the value given is the default;
/// - `#[ignored("explanation")]`: accepted without effect, and said so;
/// - `#[dormant("option")]`: has an effect only together with `option`, which is itself pending; accepted.
///
/// The last three have no value that could be read: their fields are of type [`NotRead`].
macro_rules! options {
    (
        $(#[doc = $struct_doc:literal])*
        pub struct $set:ident, scope $scope:expr $(, with { $($sub:ident: $sub_type:ty),* $(,)? })?;

        $($category:literal {
            $(
                $(#[doc = $doc:literal])*
                $(#[pending($pending:literal)])?
                $(#[ignored($ignored:literal)])?
                $(#[dormant($dormant:literal)])?
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
                    @field [$($pending)? $($ignored)? $($dormant)?] $type $(= $default)?
                ),
            )*)*
            $($(
                #[doc = concat!("Private options of the ", stringify!($sub), " engine.")]
                pub $sub: $sub_type,
            )*)?
        }

        impl Default for $set {
            fn default() -> $set {
                $set {
                    $($(
                        $name: options!(
                            @default [$($pending)? $($ignored)? $($dormant)?] $type $(= $default)?
                        ),
                    )*)*
                    $($( $sub: <$sub_type>::default(), )*)?
                }
            }
        }

        impl $crate::table::OptionSet for $set {
            fn specs() -> &'static [$crate::Spec] {
                // A static, not a constant: a setting's spec is recognised by its address.
                static SPECS: &[$crate::Spec] = &[$($(
                    $crate::Spec {
                        name: options!(@name $name $(as $spelled)?),
                        aliases: &[$(stringify!($alias)),*],
                        scope: $scope,
                        takes: <$type as $crate::value::Value>::TAKES,
                        status: options!(
                            @status $(pending $pending)? $(ignored $ignored)? $(dormant $dormant)?
                        ),
                        kind: <$type as $crate::value::Value>::KIND,
                        default: options!(@text $($default)?),
                        range: options!(@range $($range)?),
                        choices: <$type as $crate::value::Value>::CHOICES,
                        doc: concat!($($doc, "\n"),*),
                        category: $category,
                        check: |text| {
                            let mut reading = $crate::value::Reading::new(options!(@range $($range)?));
                            $crate::table::parse::<$type>(None, text, &mut reading).map(drop)
                        },
                    },
                )*)*];
                SPECS
            }

            fn apply(
                &mut self,
                setting: &$crate::Setting,
                reading: &mut $crate::value::Reading,
            ) -> Option<Result<$crate::table::Applied, String>> {
                $($(
                    if let Some(applied) = self.$sub.apply(setting, reading) {
                        return Some(applied);
                    }
                )*)?
                if !Self::specs().iter().any(|spec| spec.is(setting.spec)) {
                    return None;
                }
                let text = setting.value.as_deref();
                Some(match setting.spec.name {
                    $($(
                        options!(@name $name $(as $spelled)?) => {
                            reading.range = options!(@range $($range)?);
                            options!(
                                @apply [$($pending)? $($ignored)? $($dormant)?]
                                self.$name, text, reading, $type $(= $default)?
                            )
                        }
                    )*)*
                    _ => Ok($crate::table::Applied::Set),
                })
            }
        }
    };

    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident as $spelled:literal) => { $spelled };

    (@text) => { "" };
    (@text $default:literal) => { concat!($default) };

    (@range) => { None };
    (@range $range:expr) => { Some($range) };

    (@status) => { $crate::Status::Ready };
    (@status pending $why:literal) => { $crate::Status::Pending($why) };
    (@status ignored $why:literal) => { $crate::Status::Ignored($why) };
    (@status dormant $parent:literal) => { $crate::Status::Dormant($parent) };

    (@field [$why:literal] $($rest:tt)*) => { $crate::table::NotRead };
    (@field [] $type:ty) => { Option<$type> };
    (@field [] $type:ty = $default:literal) => { $type };

    (@default [$why:literal] $($rest:tt)*) => { $crate::table::NotRead };
    (@default [] $type:ty) => { None };
    (@default [] $type:ty = $default:literal) => { $crate::table::default_value::<$type>(concat!($default)) };

    (@apply [$why:literal] $field:expr, $text:ident, $reading:ident, $type:ty $(= $default:literal)?) => {
        $crate::table::check_unread::<$type>($text, options!(@text $($default)?), $reading)
    };
    (@apply [] $field:expr, $text:ident, $reading:ident, $type:ty) => {
        $crate::table::parse::<$type>($field.as_ref(), $text, $reading).map(|value| {
            $field = value.or($field.take());
            $crate::table::Applied::Set
        })
    };
    (@apply [] $field:expr, $text:ident, $reading:ident, $type:ty = $default:literal) => {
        $crate::table::parse::<$type>(Some(&$field), $text, $reading).map(|value| {
            value.into_iter().for_each(|value| $field = value);
            $crate::table::Applied::Set
        })
    };
}
pub(crate) use options;

/// The value of an option that no code may read: it is pending, ignored or dormant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NotRead;

/// What came of applying one setting whose value was well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The option now has the value.
    Set,
    /// The option is not read, and the value is its default, so that nothing is lost.
    Neutral,
    /// The option is not read, and the value asks for something.
    NotRead,
}

/// A struct declared by `options!`.
pub trait OptionSet: Default {
    /// The declarations of this set, in order; those of engines are not among them.
    fn specs() -> &'static [Spec];

    /// Applies one setting on top of what is there; `reading` brings the meaning of suffixes and takes notes. `None`
    /// when the option is not of this set; `Err` is the sentence that says what is wrong with the value.
    fn apply(&mut self, setting: &Setting, reading: &mut Reading) -> Option<Result<Applied, String>>;
}

/// Parses the value of one option, on top of the value it had: `bs=,8k` leaves the block size of reads alone.
/// `None`: the option keeps what it had, since the one value it takes is left out (`runtime=,3`).
pub(crate) fn parse<T: Value>(
    before: Option<&T>,
    text: Option<&str>,
    reading: &mut Reading,
) -> Result<Option<T>, String> {
    let Some(text) = text else {
        return T::bare().map(Some).ok_or_else(|| format!("needs a value ({})", T::KIND));
    };
    if text.is_empty() && T::unset().is_none() {
        return Err(format!("needs a value ({})", T::KIND));
    }
    match number::behind_empty_first(text).filter(|_| T::ONE_OF_LIST) {
        Some(others) => {
            // They are read, so that they must be values; none is used.
            let read: Result<Vec<T>, String> =
                others.into_iter().map(|part| T::parse(part, reading)).collect();
            read?;
            reading.note(format!("{text:?} has no effect: the first value is taken, and it is left out"));
            Ok(None)
        }
        None => T::parse_onto(before, text, reading).map(Some),
    }
}

/// The default of the table as a value.
///
/// # Panics
/// When the table is wrong; a test resolves every set once.
pub(crate) fn default_value<T: Value>(text: &str) -> T {
    if let Some(unset) = T::unset().filter(|_| text.is_empty()) {
        return unset;
    }
    match T::parse_onto(None, text, &mut Reading::default()) {
        Ok(value) => value,
        Err(why) => panic!("default {text:?} in the table of options: {why}"),
    }
}

/// Checks the value of an option that is not read, and tells the default from anything else.
pub(crate) fn check_unread<T: Value>(
    text: Option<&str>,
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

/// The outcome of looking a name up.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// The option of that name, alias or unambiguous abbreviation.
    Found(&'static Spec),
    /// An abbreviation of several options: their names, sorted.
    Ambiguous(Vec<&'static str>),
    /// No such option; perhaps the one meant.
    Unknown {
        /// The nearest name, when one is near.
        suggestion: Option<&'static str>,
    },
}

/// All job options, in the order of the reference page.
pub fn job_specs() -> &'static [Spec] {
    crate::job::JobOptions::specs()
}

/// All command-line options of the program itself.
pub fn program_specs() -> &'static [Spec] {
    crate::program::ProgramOptions::specs()
}

/// The private options of all engines; `Spec::scope` names the engines.
pub fn engine_specs() -> impl Iterator<Item = &'static Spec> + Clone {
    crate::engine::sets().into_iter().flatten()
}

/// Looks up a job option, or one private to any of `engines`. With `abbreviations` (the command line), a prefix
/// that fits one option only will do.
pub fn find_job_option(name: &str, abbreviations: bool, engines: &[&str]) -> Lookup {
    find(name, abbreviations, job_specs().iter().chain(private_specs(engines)))
}

/// Looks up a command-line option of the program; a prefix that fits one option only will do.
pub fn find_program_option(name: &str) -> Lookup {
    find(name, true, program_specs().iter())
}

/// Looks up any option of the command line as `getopt_long` does: program, job and engine options in one list, so
/// that an abbreviation must be unambiguous among all of them. `Spec::scope` tells which kind was found.
pub fn find_command_line_option(name: &str, engines: &[&str]) -> Lookup {
    find(name, true, program_specs().iter().chain(job_specs()).chain(private_specs(engines)))
}

/// The options private to any of `engines`.
fn private_specs<'a>(engines: &'a [&'a str]) -> impl Iterator<Item = &'static Spec> + Clone + 'a {
    engine_specs().filter(move |spec| match spec.scope {
        Scope::Engine(names) => names.iter().any(|name| engines.contains(name)),
        Scope::Job | Scope::Program => false,
    })
}

fn find(name: &str, abbreviations: bool, specs: impl Iterator<Item = &'static Spec> + Clone) -> Lookup {
    if let Some(spec) = specs.clone().find(|spec| spec.names().any(|known| known == name)) {
        return Lookup::Found(spec);
    }
    if abbreviations && !name.is_empty() {
        let mut fitting: Vec<&'static Spec> =
            specs.clone().filter(|spec| spec.names().any(|known| known.starts_with(name))).collect();
        fitting.sort_by_key(|spec| spec.name);
        fitting.dedup_by_key(|spec| spec.name);
        match fitting.as_slice() {
            [] => {}
            [only] => return Lookup::Found(only),
            several => return Lookup::Ambiguous(several.iter().map(|spec| spec.name).collect()),
        }
    }
    Lookup::Unknown { suggestion: suggest::nearest(name, specs.flat_map(Spec::names)) }
}
