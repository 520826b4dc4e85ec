//! Unmodified programs that read fio's files, applied to fiord's: fio-plot, and those of Debian's fio package.
//!
//! Invariant: a reader runs on both programs' files in the same way, and must give the same for both.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fiord_compat::compare::{equal, success};
use fiord_compat::program::{finish, target_dir};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, Ran, case};

const INSTALL: &str = "`cargo x ci --install` installs it";

/// A program of the virtual environment that `cargo x ci --install` creates.
fn venv(program: &str) -> PathBuf {
    target_dir().join("readers/bin").join(program)
}

/// A script of Debian's fio package: installed as a program, or compressed in the documentation.
fn packaged(name: &str) -> PathBuf {
    let program = Path::new("/usr/bin").join(name);
    if program.exists() { program } else { Path::new("/usr/share/doc/fio").join(format!("{name}.gz")) }
}

/// The script, decompressed if necessary.
fn script(name: &str, place: &Path) -> Result<PathBuf, String> {
    let packaged = packaged(name);
    if packaged.extension().is_none_or(|extension| extension != "gz") {
        return Ok(packaged);
    }
    let unpacked = place.with_extension("py");
    let out = Command::new("zcat")
        .arg(&packaged)
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("zcat: {error}"))?;
    std::fs::write(&unpacked, out.stdout).map_err(|error| format!("{}: {error}", unpacked.display()))?;
    Ok(unpacked)
}

/// Runs a Python program in the directory of a run.
fn read(program: &Path, args: &[&str], ran: &Ran, place: &Path) -> Result<Ran, String> {
    let mut command = Command::new(venv("python3"));
    command.arg(program).args(args).current_dir(&ran.dir).env("MPLBACKEND", "Agg");
    finish(command, "", place)
}

/// A reader's run on either program's files, in the same way.
fn read_both(pair: &Pair, program: &str, args: &[&str]) -> Result<[Ran; 2], String> {
    let run = |ran: &Ran, name: &str| {
        let place = pair.beside(name);
        let path = if program == "fio-plot" { venv(program) } else { script(program, &place)? };
        let read = read(&path, args, ran, &place)?;
        match read.status {
            0 => Ok(read),
            status => {
                Err(format!("{program} on {name}'s files: exit {status}\n{}\n{}", read.stdout, read.stderr))
            }
        }
    };
    Ok([run(&pair.fio, "fio-read")?, run(&pair.fiord, "fiord-read")?])
}

fn jsonplus_to_csv(pair: &Pair) -> Verdict {
    read_both(pair, "fio_jsonplus_clat2csv", &["out.json", "out.csv"])?;
    let heads = |ran: &Ran| -> Result<String, String> {
        Ok(ran.file("out_job0.csv")?.lines().next().unwrap_or_default().to_string())
    };
    let fiord = pair.fiord.file("out_job0.csv")?;
    if fiord.lines().count() < 2 {
        return Err("the table made of fiord's file has no row".to_string());
    }
    equal("columns", heads(&pair.fio)?, heads(&pair.fiord)?)
}

fn plotted(args: &'static [&'static str]) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        read_both(pair, "fio-plot", args)?;
        let made = |ran: &Ran| {
            ran.files().map(|files| files.iter().any(|(name, size)| name == "plot.png" && *size > 0))
        };
        equal("a plot was made", (true, true), (made(&pair.fio)?, made(&pair.fiord)?))
    }
}

/// Runs a reader of logs; it must succeed and print as many lines.
fn logs_read(program: &'static str, args: &'static [&'static str]) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        let [fio, fiord] = read_both(pair, program, args)?;
        let spoke = |ran: &Ran| ran.stdout.lines().count() > 0;
        equal("printed something", spoke(&fio), spoke(&fiord))
    }
}

/// fiologparser.py accepts the four columns that logs had before priorities and stops at a fifth, also in fio's logs;
/// it is given the first four.
fn four_columns_read(pair: &Pair) -> Verdict {
    for ran in [&pair.fio, &pair.fiord] {
        let first_four = |line: &str| line.splitn(5, ", ").take(4).collect::<Vec<_>>().join(", ") + "\n";
        let text: String = ran.file("l_clat.1.log")?.lines().map(first_four).collect();
        std::fs::write(ran.dir.join("four.log"), text).map_err(|error| format!("four.log: {error}"))?;
    }
    logs_read("fiologparser.py", &["-i", "500", "four.log"])(pair)
}

/// A case that needs fio-plot.
fn with_fio_plot(case: Case) -> Case {
    case.with_program(venv("fio-plot"), INSTALL)
}

/// A case that needs a script of Debian's, and Python with the packages that the scripts import.
fn with_script(name: &str, case: Case) -> Case {
    let package = "it is part of Debian's package fio";
    case.with_program(venv("python3"), INSTALL).with_program(packaged(name), package)
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let job = "--name=a --ioengine=null --rw=randread --bs=4k --size=4m --iodepth=4 --numjobs=1";
    let logged =
        "--name=a --ioengine=null --rw=randread --bs=4k --size=4m --time_based --runtime=2 --rate_iops=500";
    let plot = |name: &str, args: &'static [&'static str]| {
        let args_of_run =
            format!("--output-format=json --output=randread-4-1.json {job} --time_based --runtime=1");
        let case = case(format!("readers/fio-plot-{name}"), args_of_run);
        with_fio_plot(case).check(success).check(plotted(args))
    };
    let log = |script: &str, options: &str| {
        let name = script.trim_end_matches(".py");
        with_script(script, case(format!("readers/{name}"), format!("{logged} {options}"))).check(success)
    };
    let converted =
        case("readers/fio_jsonplus_clat2csv", format!("--output-format=json+ --output=out.json {job}"));
    vec![
        with_script("fio_jsonplus_clat2csv", converted).check(success).check(jsonplus_to_csv),
        plot("bars", &["-i", ".", "-T", "bars", "-s", "compat", "-l", "-r", "randread", "-o", "plot.png"]),
        plot(
            "table",
            &[
                "-i", ".", "-T", "queue", "-s", "compat", "-L", "-r", "randread", "-t", "iops", "-o",
                "plot.png",
            ],
        ),
        log("fio2gnuplot", "--write_bw_log=l --log_avg_msec=100")
            .check(logs_read("fio2gnuplot", &["-b", "-d", "."])),
        log("fiologparser.py", "--write_lat_log=l --log_avg_msec=100").check(four_columns_read),
        log("fiologparser_hist.py", "--write_hist_log=l --log_hist_msec=200")
            .check(logs_read("fiologparser_hist.py", &["l_clat_hist.1.log"])),
        log("fio-histo-log-pctiles.py", "--write_hist_log=l --log_hist_msec=200").check(logs_read(
            "fio-histo-log-pctiles.py",
            &["--fio-version", "3", "--time-quantum", "1", "l_clat_hist.1.log"],
        )),
    ]
}
