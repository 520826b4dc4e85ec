//! Whether bytes went directly between storage and memory of a GPU.
//!
//! Invariant: what is said is what cuFile says of itself. Where it says nothing, or there may be a way that it does not
//! tell, there is no finding.

use fiord_host::GpuWays;
use fiord_plan::Plan;
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};

use super::measured::Measurements;

/// Bytes that went through the memory of this machine.
pub(super) fn copied(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    let ways = measured.gpu_ways?;
    let mut jobs = measured.working(plan).filter(|(job, _)| job.engine.descriptor.is_of_gpus);
    if !jobs.any(|(_, known)| known.stats.directions.iter().any(|of| of.bytes > 0)) {
        return None;
    }
    let (sentence, ios) = said(ways)?;
    let remedy = "`gdscheck -p` shows what is supported; CUFILE_ALLOW_COMPAT_MODE=false refuses what is not";
    let finding = Finding::new(Code::GdsCompat, Subject::Run, sentence, remedy);
    Some(finding.based_on(ios.map(|ios| ("copied_ios", Cell::Count(ios)))))
}

/// What cuFile says, and how many I/Os it counted.
fn said(ways: GpuWays) -> Option<(String, Option<u64>)> {
    let GpuWays { nvidia_fs: [major, minor], storage, may_copy, has_others, copied_ios } = ways;
    let through = "through the memory of this machine";
    match copied_ios {
        Some(0) => None,
        Some(ios) => Some((format!("cuFile counted {ios} I/Os {through}"), copied_ios)),
        None if storage != 0 || has_others || !may_copy => None,
        None => {
            let reason = match (major, minor) {
                (0, 0) => "nvidia-fs is not loaded",
                _ => "nvidia-fs supports none of the storage here",
            };
            Some((format!("all bytes went to the GPU or from it {through}: {reason}"), None))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::evidence::testing::{job, moved, nothing};
    use crate::testing::plan;

    use super::*;

    fn found(options: &[(&'static str, &str)], bytes: u64, ways: Option<GpuWays>) -> Option<String> {
        let file = [("filename", "/data/f"), ("direct", "1")];
        let plan = plan(&[("a", &[&file[..], options].concat())]);
        let stats = moved(0, bytes);
        let measured = Measurements { jobs: &[job(&stats)], gpu_ways: ways, ..nothing() };
        copied(&plan, &measured).map(|finding| finding.sentence)
    }

    /// As cuFile describes a machine without nvidia-fs.
    const NONE: GpuWays =
        GpuWays { nvidia_fs: [0, 0], storage: 0, may_copy: true, has_others: false, copied_ios: None };

    #[test]
    fn bytes_went_through_memory_where_cufile_says_that_there_is_no_other_way() {
        let cufile = &[("ioengine", "libcufile")];
        let of = |ways| found(cufile, 4096, Some(ways));
        let start = "all bytes went to the GPU or from it through the memory of this machine: nvidia-fs";
        assert_eq!(of(NONE), Some(format!("{start} is not loaded")));
        let loaded = GpuWays { nvidia_fs: [2, 26], ..NONE };
        assert_eq!(of(loaded), Some(format!("{start} supports none of the storage here")));
        for spared in [
            GpuWays { storage: 1 << 4, ..loaded },
            GpuWays { has_others: true, ..NONE },
            GpuWays { may_copy: false, ..NONE },
            GpuWays { copied_ios: Some(0), ..NONE },
        ] {
            assert_eq!(of(spared), None, "{spared:?}");
        }
        let counted = GpuWays { storage: 1 << 4, copied_ios: Some(7), ..loaded };
        assert_eq!(of(counted).unwrap(), "cuFile counted 7 I/Os through the memory of this machine");
        assert_eq!(found(cufile, 0, Some(NONE)), None, "nothing was moved");
        assert_eq!(found(cufile, 4096, None), None, "cuFile said nothing");
        assert_eq!(found(&[("ioengine", "psync")], 4096, Some(NONE)), None, "another engine");
    }
}
