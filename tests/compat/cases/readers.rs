//! Programs that read fio's files, unmodified, on fiord's: fio-plot, and those of Debian's fio package.
//!
//! Invariant: a reader runs on both programs' files in the same way; what it makes of fio's, it makes of fiord's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fiord_compat::case::Verdict;
use fiord_compat::compare::{equal, success};
use fiord_compat::program::{SKIPPED, finish, target_dir};
use fiord_compat::{Case, Pair, Ran, case};

/// The virtual environment that `cargo x ci --install` makes.
fn venv(program: &str) -> Result<PathBuf, String> {
    let path = target_dir().join("readers/bin").join(program);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{SKIPPED}no readers installed (cargo x ci --install)"))
    }
}

/// A script of Debian's package, unpacked where it is packed.
fn script(name: &str, place: &Path) -> Result<PathBuf, String> {
    let installed = Path::new("/usr/bin").join(name);
    if installed.exists() {
        return Ok(installed);
    }
    let packed = Path::new("/usr/share/doc/fio").join(format!("{name}.gz"));
    if !packed.exists() {
        return Err(format!("{SKIPPED}Debian's fio package has no {name} here"));
    }
    let unpacked = place.with_extension("py");
    let out = Command::new("zcat")
        .arg(&packed)
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("zcat: {error}"))?;
    std::fs::write(&unpacked, out.stdout).map_err(|error| format!("{}: {error}", unpacked.display()))?;
    Ok(unpacked)
}

/// Runs a Python program in the directory that a run left.
fn read(program: &Path, args: &[&str], ran: &Ran, place: &Path) -> Result<Ran, String> {
    let mut command = Command::new(venv("python3")?);
    command.arg(program).args(args).current_dir(&ran.dir).env("MPLBACKEND", "Agg");
    finish(command, "", place)
}

/// A reader's run on either program's files, in the same way.
fn read_both(pair: &Pair, program: &str, args: &[&str]) -> Result<[Ran; 2], String> {
    let run = |ran: &Ran, name: &str| {
        let place = pair.beside(name);
        let path = if program == "fio-plot" { venv(program)? } else { script(program, &place)? };
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

/// Runs a reader of logs; it must succeed and say as many lines.
fn logs_read(program: &'static str, args: &'static [&'static str]) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        let [fio, fiord] = read_both(pair, program, args)?;
        let spoke = |ran: &Ran| ran.stdout.lines().count() > 0;
        equal("said something", spoke(&fio), spoke(&fiord))
    }
}

/// fiologparser.py takes the four columns that logs had before priorities and stops at a fifth, fio's own too; it is
/// given the first four.
fn four_columns_read(pair: &Pair) -> Verdict {
    for ran in [&pair.fio, &pair.fiord] {
        let first_four = |line: &str| line.splitn(5, ", ").take(4).collect::<Vec<_>>().join(", ") + "\n";
        let text: String = ran.file("l_clat.1.log")?.lines().map(first_four).collect();
        std::fs::write(ran.dir.join("four.log"), text).map_err(|error| format!("four.log: {error}"))?;
    }
    logs_read("fiologparser.py", &["-i", "500", "four.log"])(pair)
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let job = "--name=a --ioengine=null --rw=randread --bs=4k --size=4m --iodepth=4 --numjobs=1";
    let logged =
        "--name=a --ioengine=null --rw=randread --bs=4k --size=4m --time_based --runtime=2 --rate_iops=500";
    let plot = |name: &str, args: &'static [&'static str]| {
        let args_of_run =
            format!("--output-format=json --output=randread-4-1.json {job} --time_based --runtime=1");
        case(format!("readers/fio-plot-{name}"), args_of_run).check(success).check(plotted(args))
    };
    let log = |name: &str, options: &str| {
        case(format!("readers/{name}"), format!("{logged} {options}")).check(success)
    };
    vec![
        case("readers/fio_jsonplus_clat2csv", format!("--output-format=json+ --output=out.json {job}"))
            .check(success)
            .check(jsonplus_to_csv),
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
        log("fiologparser", "--write_lat_log=l --log_avg_msec=100").check(four_columns_read),
        log("fiologparser_hist", "--write_hist_log=l --log_hist_msec=200")
            .check(logs_read("fiologparser_hist.py", &["l_clat_hist.1.log"])),
        log("fio-histo-log-pctiles", "--write_hist_log=l --log_hist_msec=200").check(logs_read(
            "fio-histo-log-pctiles.py",
            &["--fio-version", "3", "--time-quantum", "1", "l_clat_hist.1.log"],
        )),
    ]
}
