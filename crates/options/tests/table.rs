//! The table of options against the list of names that fio 3.33 or 3.42 takes, and against itself.
//!
//! Invariant: `option_names.txt` holds names (with an alias behind some), nothing else of fio's.

use std::collections::HashSet;

use fiord_engine::registry;
use fiord_options::table::{
    engine_specs, find_command_line_option, find_job_option, job_specs, program_specs,
};
use fiord_options::value::EngineName;
use fiord_options::{Lookup, Scope, Spec, Status, engine, job};

const NAMES: &str = include_str!("option_names.txt");

fn all_specs() -> impl Iterator<Item = &'static Spec> {
    job_specs().chain(program_specs()).chain(engine_specs())
}

#[test]
fn every_option_of_fio_is_declared() {
    let mut missing = Vec::new();
    for name in NAMES.lines().flat_map(str::split_whitespace) {
        let found = match (name.split_once(':'), name.strip_prefix("--")) {
            (Some((engine, name)), _) => {
                find_job_option(name, false, EngineName::from_word(engine).as_slice())
            }
            (None, Some(name)) => find_command_line_option(name, &[]),
            (None, None) => find_job_option(name, false, &[]),
        };
        let exact = name.rsplit(':').next().unwrap_or(name).trim_start_matches('-');
        match found {
            Lookup::Found(spec) if spec.names().any(|known| known == exact) => {}
            // The alias of an engine's option follows it without the engine.
            _ if engine_specs().any(|spec| spec.aliases.contains(&name)) => {}
            _ => missing.push(name),
        }
    }
    assert!(missing.is_empty(), "not declared: {missing:?}");
}

#[test]
fn every_name_and_alias_that_is_declared_is_fios_or_said_not_to_be() {
    let known: HashSet<&str> = NAMES
        .split_whitespace()
        .map(|name| name.rsplit(':').next().unwrap_or(name).trim_start_matches("--"))
        .collect();
    for spec in all_specs() {
        let is_own = spec.doc.contains("Not an option of fio.");
        assert!(spec.names().all(|name| known.contains(name) != is_own), "{}: is it fio's?", spec.name);
    }
}

#[test]
fn an_alias_is_one_of_the_option_it_stands_behind() {
    for line in NAMES.lines().filter(|line| !line.starts_with("--")) {
        let names: Vec<&str> = line.split_whitespace().collect();
        let bare = |name: &str| name.rsplit(':').next().map(str::to_string);
        let together = all_specs().any(|spec| {
            names.iter().all(|name| spec.names().any(|known| bare(name).as_deref() == Some(known)))
        });
        assert!(together, "{line} is not one option");
    }
}

#[test]
fn no_name_is_declared_twice() {
    let mut seen = HashSet::new();
    for spec in job_specs().chain(program_specs()) {
        for name in spec.names() {
            assert!(seen.insert(name), "{name} is declared twice");
        }
    }
    let mut seen = HashSet::new();
    for spec in engine_specs() {
        let Scope::Engine(engines) = spec.scope else { panic!("{} is not an engine option", spec.name) };
        for (name, engine) in spec.names().flat_map(|name| engines.iter().map(move |engine| (name, engine))) {
            assert!(seen.insert((name, engine)), "{engine}:{name} is declared twice");
        }
    }
}

#[test]
fn defaults_are_values_of_their_options() {
    for spec in all_specs().filter(|spec| !spec.default.is_empty()) {
        assert_eq!(spec.check(Some(spec.default.as_ref())), Ok(()), "{}={}", spec.name, spec.default);
    }
}

#[test]
fn options_are_documented_in_sentences() {
    for spec in all_specs() {
        let summary = spec.doc.lines().next().unwrap_or_default();
        assert!(summary.ends_with('.'), "{}: {summary:?}", spec.name);
        assert!(summary.len() <= 110, "{}: {summary:?} is too long for a list", spec.name);
        assert!(!spec.category.is_empty(), "{}", spec.name);
    }
}

#[test]
fn dormant_options_wait_for_pending_ones() {
    for spec in all_specs() {
        let Status::Dormant(parent) = spec.status else { continue };
        // Those of a profile become settings of other options before there is a job.
        if parent != job::General::profile {
            assert_ne!(parent.status, Status::Ready, "{} works now, so {} must too", parent.name, spec.name);
        }
    }
}

#[test]
fn unbuilt_options_are_those_of_engines_that_are_not_built_in() {
    for spec in engine_specs() {
        let Scope::Engine(engines) = spec.scope else { panic!("{} is not an engine option", spec.name) };
        let is_built = engines.iter().any(|engine| registry::NAMES.contains(engine));
        assert_eq!(spec.status == Status::Unbuilt, !is_built, "{}", spec.name);
    }
}

/// Two engines have options of the same name; code that names one of them means that one.
#[test]
fn an_option_is_the_one_of_its_set() {
    for engine in [EngineName::IoUring, EngineName::Pvsync2] {
        let Lookup::Found(found) = find_job_option("hipri", false, &[engine]) else { panic!("{engine}") };
        assert_eq!(found == engine::IoUring::hipri, engine == EngineName::IoUring);
        assert_eq!(found == engine::Pvsync2::hipri, engine == EngineName::Pvsync2);
    }
    let specs: Vec<&Spec> = all_specs().collect();
    let same = |one: &Spec, other: &Spec| one.name == other.name && one.scope == other.scope;
    for one in &specs {
        assert!(specs.iter().all(|other| (one == other) == same(one, other)), "{one:?}");
    }
}

#[test]
fn lookups_follow_aliases_engines_and_abbreviations() {
    let name = |lookup: Lookup| match lookup {
        Lookup::Found(spec) => spec.name.to_string(),
        Lookup::Ambiguous(names) => format!("ambiguous: {}", names.join(" ")),
        Lookup::Unknown { suggestion } => format!("unknown, perhaps {}", suggestion.unwrap_or("nothing")),
    };
    assert_eq!(name(find_job_option("blocksize", false, &[])), "bs");
    assert_eq!(name(find_job_option("iodept", false, &[])), "unknown, perhaps iodepth");
    assert_eq!(name(find_job_option("group_rep", true, &[])), "group_reporting");
    assert_eq!(name(find_job_option("unl", true, &[])), "ambiguous: unlink unlink_each_loop");
    assert_eq!(name(find_job_option("unlink", true, &[])), "unlink");
    assert_eq!(name(find_job_option("fixedbufs", false, &[EngineName::Psync])), "unknown, perhaps nothing");
    assert_eq!(name(find_job_option("fixedbufs", false, &[EngineName::IoUring])), "fixedbufs");
    assert_eq!(name(find_command_line_option("outp", &[])), "ambiguous: output output-format");
    assert_eq!(name(find_command_line_option("output", &[])), "output");
    assert_eq!(name(find_command_line_option("output_format", &[])), "unknown, perhaps output-format");
}
