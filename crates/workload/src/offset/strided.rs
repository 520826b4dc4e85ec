//! Zones that a job works on one at a time (`zonemode=strided`).
//!
//! Invariant: a zone lies within its file's part of the job; what was transferred decides when the next one begins.

use fiord_plan::StridedZones;

/// The zones of one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileZones {
    zones: StridedZones,
    /// The part of the file that the job works on.
    file_begin_bytes: u64,
    file_end_bytes: u64,
    /// Where the current zone begins.
    begin_bytes: u64,
    /// Transferred in it.
    done_bytes: u64,
    /// The file ended within the zone.
    is_at_end: bool,
}

impl FileZones {
    /// In the first zone.
    pub(crate) fn new(zones: StridedZones, begin_bytes: u64, end_bytes: u64) -> FileZones {
        FileZones {
            zones,
            file_begin_bytes: begin_bytes,
            file_end_bytes: end_bytes,
            begin_bytes,
            done_bytes: 0,
            is_at_end: false,
        }
    }

    /// The first byte of the zone, and the one after its last.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        (self.begin_bytes, self.full_end_bytes().min(self.file_end_bytes))
    }

    fn full_end_bytes(&self) -> u64 {
        self.begin_bytes.saturating_add(self.zones.zone_bytes)
    }

    /// Goes on to the next zone if this one is done, and returns whether it did. After the last zone comes the first.
    pub(crate) fn go_on(&mut self) -> bool {
        if self.done_bytes < self.zones.transfer_bytes {
            return false;
        }
        let next = self.full_end_bytes().saturating_add(self.zones.skip_bytes);
        self.begin_bytes = if next < self.file_end_bytes { next } else { self.file_begin_bytes };
        self.done_bytes = 0;
        true
    }

    /// There is no more room in the zone. Returns whether the zone may be covered again. A zone that is truncated by
    /// the end of the file may not: it ends the file for this pass.
    pub(crate) fn repeats(&mut self) -> bool {
        self.is_at_end = self.full_end_bytes() > self.file_end_bytes;
        !self.is_at_end
    }

    /// Counts transferred bytes.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.done_bytes = self.done_bytes.saturating_add(bytes);
    }

    /// Begins a pass: in the first zone if the file had ended, otherwise where the last pass stopped. Returns whether
    /// the zone starts over.
    pub(crate) fn restart(&mut self) -> bool {
        let begins_again = std::mem::take(&mut self.is_at_end);
        if begins_again {
            (self.begin_bytes, self.done_bytes) = (self.file_begin_bytes, 0);
        }
        begins_again
    }
}
