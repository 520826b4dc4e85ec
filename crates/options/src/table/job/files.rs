//! The files and devices that a job works on.
//!
//! Invariant: names are taken as they were given; whether they exist is not looked at here.

use crate::table::set::{U32, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// The files and devices it works on, and their zones.
    pub struct Files, scope Scope::Job;

    "Files and devices" {
        /// Directory that generated files go into.
        ///
        /// Several, separated by colons, are distributed among the workers of the job. A colon within a name is
        /// written `\:`.
        ///
        /// Example: `directory=/mnt/a:/mnt/b`.
        directory: Text;
        /// Files or devices to use.
        ///
        /// Several are separated by colons; a colon within a name is written `\:`. Workers and jobs that name the
        /// same file share it. `-` is standard input or output.
        ///
        /// Example: `filename=/dev/nvme0n1`, or two files: `filename=a.dat:b.dat`.
        filename: Text;
        /// How generated files are named.
        ///
        /// `$jobname`, `$jobnum`, `$filenum` and `$clientuid` stand for the worker's name and number, the file's
        /// number and the client's address. Directories in the name are created.
        ///
        /// Example: `filename_format=data.$jobnum.$filenum` makes `data.0.0`, `data.0.1` and so on.
        filename_format: Text = "$jobname.$jobnum.$filenum";
        /// Prefix generated files with the client's address when a job is run for another host.
        ///
        /// Keeps clients from working on each other's files.
        #[ignored("only the files of jobs that run by --client begin with its address")]
        unique_filename: bool = 1, in 0..=1;
        /// Use all files under this directory.
        ///
        /// Example: `opendir=/srv/data`.
        opendir: Text;
        /// Lock each file while I/O on it is in flight.
        ///
        /// `exclusive`: I/O of one worker at a time; `readwrite`: reads of any number of workers, or other I/O of one.
        /// Workers that wait take turns. Only workers of this run that set it, too, and name the file by the same path,
        /// respect the lock. A worker that pauses for its rate or think time may hold a lock meanwhile.
        ///
        /// Example: `lockfile=readwrite` with two jobs on one `filename`.
        lockfile: LockFile = "none";
        /// Type the files must have.
        ///
        /// With `none` the type is detected; with any other value, the job is refused unless its files are of that
        /// type.
        filetype: FileType = "none";
        /// Number of files of each worker.
        ///
        /// `size` is divided between them unless `filesize` is given. Ignored when `filename` is given.
        ///
        /// Example: `nrfiles=10` with `size=1g` makes ten files of a tenth of 1 GiB each.
        nrfiles | nr_files: u32 = 1, in 0..=U32;
        /// Maximum number of files open at a time; all of them by default.
        ///
        /// Example: `nrfiles=1000` with `openfiles=100`.
        openfiles: u32, in 0..=U32;
        /// How the next file is chosen.
        ///
        /// The number after `random`, `roundrobin` and `sequential` is the number of I/Os to one file before the next
        /// is chosen. After the skewed distributions it is their parameter, which may be followed by the position of
        /// the most used file, from 0 to 1.
        ///
        /// Example: `file_service_type=random:8`.
        file_service_type: FileService = "roundrobin";
        /// Switch the device to this I/O scheduler before the run.
        ioscheduler: Text;
        /// Lay out the files of one job after those of another.
        ///
        /// Avoids files that are interleaved on the disk.
        create_serialize: bool = 1, in 0..=1;
        /// Sync files after laying them out.
        create_fsync: bool = 1, in 0..=1;
        /// Create a file when it is first opened for I/O, instead of before the run.
        create_on_open: bool = 0, in 0..=1;
        /// Lay out the files and do no I/O.
        ///
        /// Example: `create_only=1` in one run prepares the files of the next.
        create_only: bool = 0, in 0..=1;
        /// Whether missing files may be created.
        ///
        /// With 0, a missing file is an error, which protects against a mistyped device name.
        allow_file_create: bool = 1, in 0..=1;
        /// Whether a target that is in use may be written to.
        ///
        /// In use means mounted, swap, part of another device, opened exclusively, or backing a loop device. By default
        /// such a job is refused, and a device is claimed exclusively (`O_EXCL`) while it is written to.
        allow_mounted_write: bool = 0, in 0..=1;
        /// Read the files into the page cache before the run.
        ///
        /// Sets `invalidate` to 0. Only for engines that read through the cache.
        pre_read: bool = 0, in 0..=1;
        /// Remove the job's files when it is done.
        unlink: bool = 0, in 0..=1;
        /// Remove the job's files after each of its `loops`.
        unlink_each_loop: bool = 0, in 0..=1;
        /// How space is allocated when files are laid out.
        ///
        /// Example: `fallocate=none` for a file system where it is slow.
        fallocate: Fallocate = "native";
        /// Access pattern announced to the kernel with posix_fadvise(2).
        fadvise_hint: FadviseHint = 1;
        /// Write lifetime hint for the job's files.
        write_hint: WriteHint;
        /// Start at the end of each file and extend it.
        file_append: bool = 0, in 0..=1;
        /// Overwrite existing data: a writing job lays its files out in full first.
        overwrite: bool = 0, in 0..=1;
        /// Sync the files when the job ends after writing.
        end_fsync: bool = 0, in 0..=1;
        /// Sync each file's file system when the job ends.
        end_syncfs: bool = 0, in 0..=1;
        /// Sync a file whenever it is closed.
        fsync_on_close: bool = 0, in 0..=1;
    }

    "Zones" {
        /// How zones are treated.
        ///
        /// `strided` works in one zone of `zonerange` bytes until `zonesize` bytes have been transferred, and then
        /// moves on to the next zone, which starts `zoneskip` bytes after the end of the current one; the last zone
        /// is followed by the first. Random I/O stays within the zone, too, and visits each of its blocks once before
        /// it repeats any, unless `norandommap` is set.
        ///
        /// `zbd` is for zoned block devices, whose zones are written from start to end and reset as a whole. Each write
        /// goes to the write pointer of its zone, also when zones are chosen at random; a zone that is full is reset before
        /// it is written again; reads stay below the write pointer. Trims reset zones, and have the length of a zone: all
        /// zones in order, or at random those that are not empty. With `verify`, blocks are read back before their zone is
        /// reset. On any other target zones of `zonesize` bytes are emulated, all of them empty when the run begins; a trim
        /// discards what is in them.
        ///
        /// Example: `zonemode=strided` with `zonesize=1m` and `zonerange=1g` reads the first MiB of every GiB.
        zonemode: ZoneMode = "none";
        /// Length of a zone of `zonemode=strided`; by default `zonesize`. `zonemode=zbd` ignores it.
        zonerange: Bytes = 0;
        /// Bytes transferred in one zone before moving to the next; if larger than `zonerange`, the zone is repeated.
        ///
        /// With `zonemode=zbd`, the length of a zone; on a zoned device 0 or the length of its zones.
        zonesize: Bytes = 0;
        /// Bytes of an emulated zone of `zonemode=zbd` that can be written, when less than the zone.
        zonecapacity: Bytes = 0;
        /// Bytes between two zones, or a multiple of `zonesize` (`2z`).
        ///
        /// With `zonemode=zbd`, the zones that sequential jobs leave out after each zone.
        zoneskip: Size = 0;
        /// Whether reads may go beyond the write pointer of a zone, to its end (`zonemode=zbd`).
        read_beyond_wp: bool = 0, in 0..=1;
        /// Zones that all jobs together may have open for writing (`zonemode=zbd`); 0 for as many as the device can.
        max_open_zones: u32 = 0, in 0..=4096;
        /// Zones that one worker may have open for writing (`zonemode=zbd`); 0 sets no limit.
        job_max_open_zones: u32 = 0, in 0..=4096;
        /// Whether the device's own limits on open zones are ignored.
        ignore_zone_limits: bool = 0, in 0..=1;
        /// Share of the zones, by bytes written, from which on zones are reset before they are full.
        ///
        /// Example: `zone_reset_threshold=0.8` with `zone_reset_frequency=0.1` resets a zone after each ten writes
        /// once 80 % is written.
        zone_reset_threshold: FloatList, in 0..=1;
        /// How often a zone is reset once the threshold is passed: resets per write.
        zone_reset_frequency: FloatList, in 0..=1;
        /// After a failed write, ask the device for the zone's write pointer and go on from there.
        ///
        /// Has an effect with `continue_on_error=write`, which lets the job go on.
        recover_zbd_write_error: bool = 0, in 0..=1;
        /// Whether the remainder at a zone's end is written instead of finishing the zone.
        write_zone_remainder: bool = 0, in 0..=1;
    }
}
