//! Plans and targets for the tests of findings.
//!
//! Invariant: nothing about them raises a finding that a test did not ask for.

use std::path::Path;

use fiord_host::{
    Device, DeviceFacts, Layer, LayerKind, RequestQueue, StorageStack, TargetFacts, TargetKind,
};
use fiord_options::table::find_job_option;
use fiord_options::{Lookup, Section, Spec};
use fiord_plan::Plan;
use fiord_plan::facts::{Facts, RunSettings};

use crate::lint::known::KnownTarget;

/// A plan of jobs with these options; an engine and a size are given to those without.
pub(crate) fn plan(jobs: &[(&'static str, &[(&'static str, &str)])]) -> Plan {
    let section = |(name, options): &(&'static str, &[(&'static str, &str)])| {
        let common = [("ioengine", "null"), ("size", "1m")];
        let options = common.iter().chain(options.iter());
        let specs = options.map(|(option, value)| (spec(option), *value));
        Section::new(*name).with(specs)
    };
    let sections: Vec<Section> = jobs.iter().map(section).collect();
    let facts = Facts { engines: fiord_engine::registry::ENGINES, ..Facts::default() };
    fiord_plan::build(&sections, &[], &facts, &RunSettings::default()).unwrap().0
}

fn spec(name: &str) -> &'static Spec {
    let found = find_job_option(name, false, &[]);
    assert!(matches!(found, Lookup::Found(_)), "{name}: {found:?}");
    let Lookup::Found(spec) = found else { unreachable!() };
    spec
}

/// A regular file of 1 MiB, written in full, that nothing else uses.
pub(crate) fn known_target(path: &str) -> KnownTarget {
    let facts = TargetFacts {
        kind: TargetKind::Regular,
        size_bytes: Some(1 << 20),
        allocated_bytes: Some(1 << 20),
        ..TargetFacts::absent(Path::new(path))
    };
    KnownTarget { facts, stack: None }
}

/// A stack of one device of this kind, `sdb`.
pub(crate) fn on_device(kind: &str, write_back_cache: bool) -> StorageStack {
    let queue = RequestQueue { write_back_cache, ..RequestQueue::default() };
    let device = Device { name: "sdb".to_string(), kind: kind.to_string(), queue, ..Device::default() };
    let facts = DeviceFacts {
        device,
        claims: Vec::new(),
        file_systems: Vec::new(),
        caches_in_memory: false,
        pci: None,
    };
    StorageStack { layers: vec![Layer { depth: 0, kind: LayerKind::Device(Box::new(facts)) }] }
}
