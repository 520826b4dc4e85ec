//! Options of the command line that are about the program, not about a job.
//!
//! Invariant: nothing here changes what a job does to a disk, `--readonly` excepted.

use super::set::options;
use super::spec::Scope;
use crate::value::*;

options! {
    /// The program's options, resolved.
    pub struct ProgramOptions, scope Scope::Program;

    "What to do" {
        /// Check options and job files, and do no I/O.
        parse_only as "parse-only": Switch = 0;
        /// Print the jobs of the job files as command lines.
        showcmd: Switch = 0;
        /// Run only the sections of this name. May be repeated; `[global]` always applies.
        section: Text;
        /// Refuse every job that writes or trims.
        readonly: Switch = 0;
        /// Treat warnings about options as errors, but only those that fio also prints.
        warnings_fatal as "warnings-fatal": Switch = 0;
        /// Treat all warnings about options as errors. Not an option of fio.
        strict: Switch = 0;
        /// Maximum number of workers.
        max_jobs as "max-jobs": u32 = 4096;
        /// Directory for the files of verification: saved states, and dumped blocks.
        aux_path as "aux-path": Text;
        /// Memory for shared structures, in KiB.
        #[ignored("fiord allocates what it needs and has no pool to size")]
        alloc_size as "alloc-size": u32;
        /// Merge traces (`merge_blktrace_file`) and do no I/O.
        merge_blktrace_only as "merge-blktrace-only": Switch = 0;
    }

    "Report" {
        /// Run the jobs this often, one run after another, and compare the runs. Not an option of fio.
        ///
        /// The report, the logs and the findings are those of the last run. After them follow median, spread and confidence
        /// interval over all runs, in JSON as `repeats` (docs/repeats.md).
        repeat: u32 = 1, in 1..=1000;
        /// Write the report to this file.
        output: Text;
        /// Format of the report, or several separated by commas.
        output_format as "output-format": OutputFormats = "normal";
        /// Report in terse format, version 3.
        minimal: Switch = 0;
        /// Add a terse report to the others.
        append_terse as "append-terse": Flag = 0;
        /// Version of the terse format.
        terse_version as "terse-version": u32 = 3, in 2..=5;
        /// Log the bandwidth of all jobs together.
        bandwidth_log as "bandwidth-log": Switch = 0;
        /// Do not record this run in the history (`fiord history`). Not an option of fio.
        ///
        /// A run under the name `fio` is never recorded.
        no_history as "no-history": Switch = 0;
        /// A name for this run in the history, by which `fiord compare` finds it. Not an option of fio.
        ///
        /// Of several runs of one name, the newest is found.
        tag: Text;
        /// Whether findings are printed after the report. Not an option of fio.
        ///
        /// A finding is a reason why a figure may not mean what its reader thinks (docs/findings.md).
        trust: Trust = "on";
        /// Exit with status 8 if this holds, such as `read.p99 > 2ms`. May be repeated. Not an option of fio.
        ///
        /// A condition is `[JOB:] FIGURE > LIMIT` or `< LIMIT`, as those of `fiord compare` (docs/compare.md): `read`, `write`,
        /// `trim` or `sync`; a dot; `iops`, `bw`, `mean`, or a percentile (`p99.9`). The status is 6 if the figures do not decide
        /// it: noise lies on both sides of the limit, or a finding voids them. With `--hosts` it is about all hosts as one, or
        /// about how they differ: `hosts.p99.max > 2 * hosts.p99.median`.
        fail_if as "fail-if": Text;
        /// What a condition of `--fail-if` is that the figures do not decide. Not an option of fio.
        ///
        /// `tell` ends with status 6, `pass` as if the condition did not hold, `fail` as if it did.
        undecided: Undecided = "tell";
        /// Export the figures of the run as metrics. May be repeated. Not an option of fio.
        ///
        /// `prometheus:9464` answers Prometheus on a port of 127.0.0.1 while the run lasts (`IP:PORT` for another
        /// address), `otlp:http://HOST:4318/v1/metrics` sends them to an OpenTelemetry collector, `file:PATH` writes them at
        /// the end for node_exporter's textfile collector (docs/metrics.md).
        metrics: MetricsDestination;
        /// Show throughput, latency, jobs, devices and findings on the whole terminal. Not an option of fio.
        ///
        /// `q` returns to the progress line, where `l` shows the view again (docs/live.md).
        live: Switch = 0;
        /// When the progress line is shown.
        eta: EtaWhen = "auto";
        /// Time between two updates of the progress line; at least 250 ms.
        eta_interval as "eta-interval": Seconds = "1s";
        /// Time after which the progress line starts on a new line.
        eta_newline as "eta-newline": Seconds;
        /// Time between two full reports of the run so far.
        status_interval as "status-interval": Seconds;
        /// Report how idle the CPUs were.
        idle_prof as "idle-prof": IdleProf;
    }

    "Help" {
        /// Print this overview.
        help: Switch = 0;
        /// Print the version.
        version: Switch = 0;
        /// Explain a job option, or list all of them.
        cmdhelp: OptionalText;
        /// List the engines, an engine's options, or explain one of them (`ENGINE,OPTION`).
        enghelp: OptionalText;
        /// Print debug messages of these channels, separated by commas; `help` lists them.
        ///
        /// Lines stand where the report is printed, each with its subject and the number of its thread. They have fio's
        /// form where fiord has what fio prints.
        debug: DebugSettings;
        /// Measure the speed of checksums, of all or of those listed (`md5,crc32c`); `help` lists them.
        crctest: OptionalText;
        /// Check the processor's clock.
        cpuclock_test as "cpuclock-test": Switch = 0;
        /// Measure the speed of copying memory.
        memcpytest: OptionalText;
        /// Print a compressed log.
        inflate_log as "inflate-log": Text;
    }

    "Several hosts" {
        /// Run the jobs on these hosts, all from one start (docs/hosts.md). Not an option of fio.
        ///
        /// Names and ranges separated by commas (`db[1-12],^db7`, `user@host:port`), or a file with a host on each line, or with
        /// a section for each and options of jobs that hold on it.
        hosts: Text;
        /// How hosts are reached: `ssh`, `slurm`, `kube`, `server`, or a command with `{agent}`. Not an option of fio.
        via: Text;
        /// Go on without up to this many hosts that cannot be reached, or are lost. Not an option of fio.
        allow_missing as "allow-missing": u32 = 0;
        /// What a host does that has lost this program. Not an option of fio.
        on_lost as "on-lost": OnLost = "stop";
        /// In which order hosts run. Not an option of fio.
        order: HostOrder = "together";
        /// Show the figures of the hosts that have the same as one, too. Not an option of fio.
        group_by as "group-by": GroupBy;
        /// How long a host may take to answer. Not an option of fio.
        connect_timeout as "connect-timeout": Seconds = "10s";
        /// How long a host may take to lay out its files, for which all others wait. Not an option of fio.
        layout_timeout as "layout-timeout": Seconds;
        /// How far apart hosts may start before a finding says so. Not an option of fio.
        ///
        /// By default 10 ms, or a thousandth of the run if that is longer.
        start_within as "start-within": Seconds;
        /// How many hosts are connected to at a time. Not an option of fio.
        fan_out as "fan-out": u32 = 64, in 1..=4096;
        /// Whether this program is copied to hosts that are reached by ssh. Not an option of fio.
        push: Push = "auto";
        /// Leave the copy there, so that the next run need not copy it. Not an option of fio.
        keep_agent as "keep-agent": Switch = 0;
        /// Be root on hosts that are reached by ssh or Slurm, by `sudo` without a password. Not an option of fio.
        sudo: Switch = 0;
        /// The hosts share a target on purpose. Not an option of fio.
        shared: Switch = 0;
        /// By `kube`: make this many pods for the run. Not an option of fio.
        ///
        /// They are one Job, which is removed at the end; each has a volume of its own (docs/hosts.md, "Pods").
        pods: u32 = 0, in 0..=10000;
        /// The storage class of the volumes of pods. Not an option of fio.
        storage_class as "storage-class": Text;
        /// The size of the volume of each pod, as in `20Gi`. Not an option of fio.
        volume_size as "volume-size": Text;
        /// Volumes are devices, `/dev/data`, and not directories, `/data`. Not an option of fio.
        block_volume as "block-volume": Switch = 0;
        /// Start pods on nodes with this label, as in `disk=nvme`. Not an option of fio.
        nodes: Text;
        /// Spread pods evenly over each `node` or `zone`, or start none. Not an option of fio.
        spread: Text;
        /// The cluster, as kubectl calls its context. Not an option of fio.
        context: Text;
        /// The namespace of the pods. Not an option of fio.
        namespace: Text;
        /// The image of the pods, with fiord in its path. Not an option of fio.
        image: Text;
        /// Leave the pods there at the end. Not an option of fio.
        keep_pods as "keep-pods": Switch = 0;
        /// Print what kubectl would be given for the pods, and do nothing. Not an option of fio.
        print_manifest as "print-manifest": Switch = 0;
        /// Run what clients send that know the secret of this machine: on all addresses, or those that follow.
        ///
        /// `,PORT`, `HOST,PORT`, `ip6:ADDRESS,PORT` or `sock:PATH`; the port is 8765 (docs/hosts.md, "A server").
        server: OptionalText;
        /// Run the server in the background, and write its process number to this file.
        daemonize: Text;
        /// Server: keep clients to files below this directory. Not an option of fio.
        root: Text;
        /// Server: let clients run commands. Not an option of fio.
        allow_exec as "allow-exec": Switch = 0;
        /// Server: the devices that clients may use, as patterns separated by commas. Not an option of fio.
        allow_device as "allow-device": Text;
        /// Server: serve clients without a secret, who then write to no device. Not an option of fio.
        no_secret as "no-secret": Switch = 0;
        /// Run the job files that follow on the server of this host, or of the hosts that this file lists.
        client: Text;
        /// Have the server run a job file of its own.
        remote_config as "remote-config": Text;
    }

    "Triggers" {
        /// When this file appears, stop all jobs, save their states and run the command of `--trigger`.
        ///
        /// The file is removed. Each job that verifies what it writes saves its state, as for `verify_state_load`.
        trigger_file as "trigger-file": Text;
        /// Do the same after this time; 0 disables it.
        trigger_timeout as "trigger-timeout": Seconds = 0;
        /// Shell command to run when all states are saved, for example one that cuts the power.
        ///
        /// It needs `--trigger-file` or `--trigger-timeout`. Nothing is synced before it; its output goes to standard error.
        trigger: Text;
        /// Shell command to run then on each host of `--client` or `--hosts`.
        ///
        /// Each host runs it when its states and its report have come, and a server only with its `--allow-exec`. It may end the host.
        trigger_remote as "trigger-remote": Text;
    }
}
