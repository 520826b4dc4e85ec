//! Rules about the placements that writes name.
//!
//! Invariant: whether a namespace has a placement is left to the engine, which asks it.

use fiord_options::value::{DataPlacement, EngineName, PlidSelect};
use fiord_options::{Problem, ProblemKind, Spec, engine, job};

use crate::build::section::ResolvedSection;
use crate::placement::interface;

/// The option by which the job asks for placements; `None` if it does not.
fn asked(section: &ResolvedSection<'_>) -> Option<&'static Spec> {
    let by_name = section.options.access.dataplacement != DataPlacement::None;
    let option = if by_name { job::Access::dataplacement } else { job::Access::fdp };
    (interface(section.options) != DataPlacement::None).then_some(option)
}

pub(super) fn placements_need_commands(section: &ResolvedSection<'_>) -> Option<Problem> {
    let option = asked(section)?;
    let engine = section.engine().filter(|engine| !engine.names_placements)?;
    let able = section.engines.0.iter().filter(|engine| engine.names_placements);
    let able: Vec<EngineName> = able.map(|engine| engine.name).collect();
    let message = format!("writes of {} name no placement", engine.name);
    let remedy = match able.is_empty() {
        true => "leave it out".to_string(),
        false => format!("use ioengine={}", EngineName::join(&able, " or ")),
    };
    Some(section.error(ProblemKind::Conflict, option, message, remedy))
}

/// Only these commands have a field for it in every version of the specification.
pub(super) fn placements_are_of_write_commands(section: &ResolvedSection<'_>) -> Option<Problem> {
    asked(section)?;
    (!section.options.io_uring_cmd.write_mode.are_plain()).then(|| {
        let message = "only Write commands name a placement";
        let option = engine::IoUringCmd::write_mode;
        section.error(
            ProblemKind::Conflict,
            option,
            message,
            "use write_mode=write, or leave out dataplacement=",
        )
    })
}

pub(super) fn one_interface_places(section: &ResolvedSection<'_>) -> Option<Problem> {
    let access = &section.options.access;
    (access.fdp && access.dataplacement == DataPlacement::Streams).then(|| {
        let message = "fdp=1 asks for flexible data placement, dataplacement=streams for streams";
        section.error(ProblemKind::Conflict, job::Access::fdp, message, "leave one of them out")
    })
}

/// A namespace has a list of placement identifiers, but none of streams.
pub(super) fn streams_are_numbered(section: &ResolvedSection<'_>) -> Option<Problem> {
    let access = &section.options.access;
    let is_unnumbered = access.dataplacement == DataPlacement::Streams
        && access.plid_select != PlidSelect::Scheme
        && access.plids.is_none();
    is_unnumbered.then(|| {
        let message = "the job does not say which streams it writes to";
        section.error(ProblemKind::Conflict, job::Access::dataplacement, message, "for example plids=1-4")
    })
}

pub(super) fn a_scheme_has_its_file(section: &ResolvedSection<'_>) -> Option<Problem> {
    asked(section)?;
    let access = &section.options.access;
    (access.plid_select == PlidSelect::Scheme && access.dp_scheme.is_none()).then(|| {
        let message = "the file that says which offsets belong to which placement is missing";
        section.error(ProblemKind::Conflict, job::Access::plid_select, message, "name it with dp_scheme=")
    })
}

pub(super) fn options_of_placements_need_them(section: &ResolvedSection<'_>) -> Option<Problem> {
    let (is_asked, select) = (asked(section).is_some(), section.options.access.plid_select);
    let unused = |option: &'static Spec| match is_asked {
        false => Some((option, format!("{} only modifies dataplacement, which is not given", option.name))),
        true if option == job::Access::plids && select == PlidSelect::Scheme => {
            Some((option, "plid_select=scheme takes the placements of dp_scheme".to_string()))
        }
        true if option == job::Access::dp_scheme && select != PlidSelect::Scheme => {
            Some((option, format!("{} is for plid_select=scheme", option.name)))
        }
        true => None,
    };
    let options = [job::Access::plid_select, job::Access::plids, job::Access::dp_scheme];
    let (option, message) = options.into_iter().filter(|option| section.is_given(option)).find_map(unused)?;
    Some(section.error(ProblemKind::NoEffect, option, message, "").as_warning())
}
