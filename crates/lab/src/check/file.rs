//! A check file: jobs in fio's language, and limits beside, in TOML.
//!
//! Invariant: a profile is made only from a file without any error, and each of its figures can be measured by its jobs.

use std::ffi::OsStr;

use fiord_compare::figure::{Figure, Measure};
use fiord_options::Problem;
use fiord_options::cli::sort_by_place;
use fiord_options::suggest::nearest;
use fiord_options::toml::{Keys, Source, Text};
use fiord_report::Code;
use fiord_stats::OrderBy;

use super::expression::{Expression, Quantity, Quotient, Term};
use super::job_file::{self, Stage};
use super::limit::{Better, Limit, Unit};
use super::profile::{FigureOfCheck, Profile};
use super::term::term;

pub(super) const TOP: [&str; 10] = [
    "title",
    "fast_enough_for",
    "rounds",
    "headline",
    "jobs",
    "source",
    "remedy",
    "forbidden_findings",
    "limit",
    "figure",
];

pub(super) const FIGURE: [&str; 7] = ["title", "of", "pass", "limit", "source", "remedy", "details"];

/// Most rounds that a check may ask for.
const ROUNDS_MAX: usize = 10;

/// What is said of limits whose source is not given.
const OWN_LIMIT: &str = "the check's own";

/// Reads a check file; `path` is how the user named it, `name` what its results are called.
///
/// # Errors
/// All of its errors, in the order of their places.
pub fn read(path: &OsStr, name: &str, text: &str) -> Result<Profile, Vec<Problem>> {
    let mut source = Source::new(path, text);
    let remedy = "texts are in quotes, jobs between '''; fiord check --show etcd prints an example";
    let Some(table) = source.parse(remedy) else { return Err(source.problems) };
    let keys = Keys { table: table.get_ref(), span: 0..0 };
    let profile = profile(&mut source, &keys, name);
    let Source { mut problems, .. } = source;
    sort_by_place(&mut problems);
    match profile {
        Some(profile) if problems.is_empty() => Ok(profile),
        _ => Err(problems),
    }
}

fn profile<'f>(source: &mut Source<'f>, keys: &Keys<'f>, name: &str) -> Option<Profile> {
    source.only(keys, &TOP, "a check");
    let title = source.needed(keys, "title", "\"synced appends of 22 MiB\"");
    let jobs = source.needed(keys, "jobs", "''' and a job file of fio'''");
    let workload = source.string(keys, "fast_enough_for").map_or(name, |(text, _)| text);
    let rounds = source.number(keys, "rounds", ROUNDS_MAX).unwrap_or(1);
    let before = source.problems.len();
    let stages = match &jobs {
        Some((text, span)) => job_file::read(source, text, span.clone()),
        None => Vec::new(),
    };
    let are_jobs_known = jobs.is_some() && source.problems.len() == before;
    let shared = Shared {
        source: source.string(keys, "source").map(|(text, _)| text.to_string()),
        remedy: source.string(keys, "remedy").map(|(text, _)| text.to_string()),
        stages: &stages,
        are_jobs_known,
    };
    let mut figures = short_limits(source, keys, &shared);
    for keys in source.tables(keys, "figure") {
        figures.extend(figure(source, &keys, &shared).map(|figure| (keys.span.start, figure)));
    }
    unique(source, &figures);
    let figures: Vec<FigureOfCheck> = figures.into_iter().map(|(_, figure)| figure).collect();
    let forbidden = forbidden(source, keys);
    let has_limit = figures.iter().any(|figure| figure.limit.is_some()) || !forbidden.is_empty();
    if !has_limit && source.problems.is_empty() {
        source.error(
            0,
            "a check without a limit has no verdict",
            "add [limit] and a line such as read.p99 = \"<= 10ms\"",
        );
    }
    let headline = headline(source, keys, &figures);
    let (title, _) = title?;
    let (job_file, _) = jobs?;
    Some(Profile {
        name: name.to_string(),
        runs: title.to_string(),
        workload: workload.to_string(),
        text: source.text.to_string(),
        job_file: job_file.to_string(),
        headline,
        rounds,
        space: job_file::space(&stages),
        stages,
        figures,
        forbidden,
    })
}

/// What the figures of a check have in common.
struct Shared<'s> {
    source: Option<String>,
    remedy: Option<String>,
    stages: &'s [Stage],
    /// Whether they are those of the file: what is wrong with figures of broken jobs says nothing.
    are_jobs_known: bool,
}

/// The limits of one line each: `sync.p99 = "<= 10ms"`. A dot in a key makes a table, so that the name is in parts.
fn short_limits<'f>(
    source: &mut Source<'f>,
    keys: &Keys<'f>,
    shared: &Shared<'_>,
) -> Vec<(usize, FigureOfCheck)> {
    let mut figures = Vec::new();
    let mut open: Vec<_> = source
        .entries(keys, "limit")
        .into_iter()
        .rev()
        .map(|((name, span), value)| (name.to_string(), span, value))
        .collect();
    while let Some((name, span, value)) = open.pop() {
        if let toml::de::DeValue::Table(table) = value.get_ref() {
            let mut inner: Vec<_> = table.iter().collect();
            inner.order_by_key(|(key, _)| std::cmp::Reverse(key.span().start));
            open.extend(
                inner
                    .into_iter()
                    .map(|(key, value)| (format!("{name}.{}", key.get_ref()), span.clone(), value)),
            );
            continue;
        }
        let Some((text, at)) = source.as_text(value, &name) else { continue };
        let Some(of) = expression(source, &[(&name, span.clone())], None, shared) else { continue };
        let Some((better, value)) = bound(source, (text, at.clone()), &of) else { continue };
        let from = shared.source.clone().unwrap_or_else(|| OWN_LIMIT.to_string());
        let limit = Some(Limit { pass: value, fail: Some(value), better, from });
        let remedy = shared.remedy.clone();
        figures.push((span.start, FigureOfCheck { title: name, of, limit, remedy, details: Vec::new() }));
    }
    figures
}

/// A figure with all that can be said of it.
fn figure<'f>(source: &mut Source<'f>, keys: &Keys<'f>, shared: &Shared<'_>) -> Option<FigureOfCheck> {
    source.only(keys, &FIGURE, "a figure");
    source.needed_any(keys, "of", "\"read.p99\"");
    let texts = source.strings(keys, "of");
    if texts.is_empty()
        && keys.table.get("of").is_some_and(|of| of.get_ref().as_array().is_some_and(|list| list.is_empty()))
    {
        source.error(keys.span.start, "of is an empty list", "write of = \"read.p99\"");
    }
    let of = if texts.is_empty() { None } else { expression(source, &texts, None, shared) };
    let job = of.as_ref().and_then(|of| of.0.first()).map(|first| first.term.clone());
    let mut details = Vec::new();
    for ((name, _), value) in source.entries(keys, "details") {
        let text = source.as_text(value, name);
        let of = text.and_then(|text| expression(source, &[text], job.as_ref(), shared));
        details.extend(of.map(|of| (name.to_string(), of)));
    }
    let pass = source.string(keys, "pass");
    let fail = source.string(keys, "limit");
    let from = source.string(keys, "source").map(|(text, _)| text.to_string());
    let remedy = source.string(keys, "remedy").map(|(text, _)| text.to_string());
    let title = source.string(keys, "title").map(|(text, _)| text.to_string());
    let of = of?;
    let at = pass.as_ref().or(fail.as_ref()).map(|(_, span)| span.start);
    let is_limited = pass.is_some() || fail.is_some();
    let wanted = usize::from(pass.is_some()) + usize::from(fail.is_some());
    let [pass, fail] = [pass, fail].map(|text| text.and_then(|text| bound(source, text, &of)));
    if wanted != usize::from(pass.is_some()) + usize::from(fail.is_some()) {
        return None;
    }
    let limit = match is_limited {
        false => None,
        true => {
            let (better, value) = pass.or(fail)?;
            let beyond = fail.map(|(_, value)| value);
            let is_looser = beyond.is_some_and(|beyond| match better {
                Better::Lower => value > beyond,
                Better::Higher => value < beyond,
            });
            if is_looser {
                source.error(
                    at.unwrap_or(0),
                    "pass is looser than limit, so that nothing lies between them",
                    "pass is the stricter of the two: with headroom",
                );
            }
            let from = from.or_else(|| shared.source.clone()).unwrap_or_else(|| OWN_LIMIT.to_string());
            Some(Limit { pass: value, fail: beyond, better, from })
        }
    };
    let remedy = remedy.or_else(|| limit.as_ref().and(shared.remedy.clone()));
    let title = title.unwrap_or_else(|| texts.iter().map(|(text, _)| *text).collect::<Vec<_>>().join(", "));
    Some(FigureOfCheck { title, of, limit, remedy, details })
}

/// Refuses figures of one title, whose rounds would be taken for those of one figure.
fn unique(source: &mut Source<'_>, figures: &[(usize, FigureOfCheck)]) {
    for (number, (at, figure)) in figures.iter().enumerate() {
        if figures[..number].iter().any(|(_, known)| known.title == figure.title) {
            source.error(
                *at,
                format!("two figures are called {:?}", figure.title),
                "give each a title of its own",
            );
        }
    }
}

/// The figure that lists show: the title of one that is a latency.
fn headline<'f>(source: &mut Source<'f>, keys: &Keys<'f>, figures: &[FigureOfCheck]) -> Option<String> {
    let (title, span) = source.string(keys, "headline")?;
    let mut latencies =
        figures.iter().filter(|figure| figure.of.unit() == Unit::Ns).map(|figure| figure.title.as_str());
    if latencies.clone().any(|known| known == title) {
        return Some(title.to_string());
    }
    let remedy = match latencies.next() {
        Some(first) => format!("name one, such as {first:?}"),
        None => "remove the key: this check has no latency".to_string(),
    };
    source.error(span.start, format!("no latency of this check is called {title:?}"), remedy);
    None
}

fn forbidden<'f>(source: &mut Source<'f>, keys: &Keys<'f>) -> Vec<Code> {
    let mut codes = Vec::new();
    for (name, span) in source.strings(keys, "forbidden_findings") {
        match Code::from_name(name) {
            Some(code) if codes.contains(&code) => {}
            Some(code) => codes.push(code),
            None => {
                let remedy = match nearest(name, Code::ALL.iter().map(|code| code.name())) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => "docs/findings.md lists them".to_string(),
                };
                source.error(span.start, format!("no finding has the code {name:?}"), remedy);
            }
        }
    }
    codes
}

/// What a figure is, of one text or several; terms without a job are of that of `within`.
fn expression(
    source: &mut Source<'_>,
    texts: &[Text<'_>],
    within: Option<&Term>,
    shared: &Shared<'_>,
) -> Option<Expression> {
    if !shared.are_jobs_known {
        return None;
    }
    let mut quotients: Vec<Quotient> = Vec::new();
    for (text, span) in texts {
        let mut terms = text.split(" / ").map(|text| term(text.trim(), within, shared.stages));
        let quotient = match (terms.next(), terms.next(), terms.next()) {
            (Some(Ok(term)), None, _) => Ok(Quotient { term, over: None }),
            (Some(Ok(term)), Some(Ok(over)), None) => {
                let is_like = Quotient { term: term.clone(), over: None }.unit()
                    == Quotient { term: over.clone(), over: None }.unit();
                match is_like {
                    true => Ok(Quotient { term, over: Some(over) }),
                    false => Err((
                        format!("{text:?} divides figures of different units"),
                        "divide a latency by a latency, or a rate by a rate".to_string(),
                    )),
                }
            }
            (_, _, Some(_)) => Err((
                format!("{text:?} has more than one / in it"),
                "write one figure, or one divided by another".to_string(),
            )),
            (Some(Err(why)), ..) | (_, Some(Err(why)), _) => Err(why),
            (None, ..) => Err((format!("{text:?} is empty"), String::new())),
        };
        match quotient {
            Err((what, remedy)) => {
                source.error(span.start, what, remedy);
                return None;
            }
            Ok(quotient) if quotients.first().is_some_and(|first| first.unit() != quotient.unit()) => {
                source.error(
                    span.start,
                    format!("{text:?} has another unit than the figure before it"),
                    "the worst is taken of figures of one unit",
                );
                return None;
            }
            Ok(quotient) => quotients.push(quotient),
        }
    }
    Some(Expression(quotients))
}

/// A limit of a figure: `<= 10ms`.
fn bound(source: &mut Source<'_>, (text, span): Text<'_>, of: &Expression) -> Option<(Better, f64)> {
    let natural = of.better();
    let (sign, better_shown) = match natural {
        Better::Lower => ("<=", "lower is better"),
        Better::Higher => (">=", "higher is better"),
    };
    let example = match of.unit() {
        Unit::Ns => "10ms",
        Unit::PerSecond | Unit::Count => "500",
        Unit::BytesPerSecond => "100MiB/s",
        Unit::Percent => "90%",
        Unit::Times => "5x",
    };
    let Some(value) = text.trim().strip_prefix(sign).map(str::trim) else {
        let what = match text.trim().starts_with(['<', '>']) {
            true => format!("{text:?} bounds the wrong side: {better_shown}"),
            false => format!("{text:?} is not a limit"),
        };
        source.error(span.start, what, format!("write \"{sign} {example}\""));
        return None;
    };
    let number =
        |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let value = match (of.unit(), of.0.first().map(|first| first.term.quantity)) {
        (Unit::Percent, _) => value.strip_suffix('%').and_then(number),
        (Unit::Times, _) => number(value.strip_suffix('x').unwrap_or(value)),
        (_, Some(Quantity::Of(figure))) => figure.value(value).ok(),
        (_, Some(other)) => Figure { subject: other.subject(), measure: Measure::Mean }.value(value).ok(),
        (_, None) => None,
    };
    if value.is_none() {
        source.error(
            span.start,
            format!("{text:?} has no value of this figure"),
            format!("write \"{sign} {example}\""),
        );
    }
    Some((natural, value?))
}
