//! Which directories are removed, and above all which are not.
//!
//! Invariant: each test has its own directory, which is removed with it.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fiord-own-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir(&path).unwrap();
        Dir(path)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A directory as a study leaves it that was killed, with this mark.
    fn left(&self, name: &str, mark: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join(MARK), mark).unwrap();
        fs::write(path.join("data"), [1; 4096]).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mark(boot: &str, lock: &str) -> String {
    format!("{TITLE}\npid 7\nboot {boot}\nlock {lock}\nfile data\nfile appends\n")
}

fn this_boot() -> String {
    procfs::boot_id().unwrap()
}

/// A file of a job may have the name of anything but a hidden file.
#[test]
fn a_file_called_owner_is_not_the_mark() {
    let dir = Dir::new();
    let mut scratch = ScratchFiles::create(&dir.0, "check").unwrap();
    let file = scratch.make("owner").unwrap();
    fs::write(&file, [7; 4096]).unwrap();
    let mark = fs::read_to_string(scratch.path().join(MARK)).unwrap();
    assert_eq!(Mark::read(&mark).unwrap().names, ["owner"]);
    drop(scratch);
    assert_eq!(dir.names(), [""; 0]);
}

/// A job may name a file that no file system can have; the run fails, and its directory goes all the same.
#[test]
fn a_name_that_is_too_long_keeps_nothing() {
    let dir = Dir::new();
    let mut scratch = ScratchFiles::create(&dir.0, "check").unwrap();
    scratch.record(&"z".repeat(300)).unwrap();
    scratch.make("data").unwrap();
    drop(scratch);
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn a_directory_is_removed_with_its_owner_and_its_name_is_not_reused() {
    let dir = Dir::new();
    let mut first = ScratchFiles::create(&dir.0, "quick").unwrap();
    let second = ScratchFiles::create(&dir.0, "quick").unwrap();
    assert_ne!(first.path(), second.path());
    let data = first.make("data").unwrap();
    assert_eq!(data, first.path().join("data"));
    let step = Step::prepare("a", vec![fiord_options::Section::new("a")]).on(first.path().join("appends"));
    first.record_files_of(&[step]).unwrap();
    fs::write(first.path().join("appends"), "x").unwrap();
    drop((first, second));
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

#[test]
fn files_of_a_killed_study_are_removed_and_reported() {
    let dir = Dir::new();
    // As after a kill: all is there but the process.
    let mut own = ScratchFiles::create(&dir.0, "quick").unwrap();
    let data = own.make("data").unwrap();
    fs::write(data, [1; 8192]).unwrap();
    let path = own.path().to_path_buf();
    assert!(clear(&dir.0, false).is_empty(), "its owner lives");
    assert!(path.exists());
    own.mark.unlock().unwrap();
    assert_eq!(
        clear(&dir.0, true),
        [format!("removed {} (8KiB), left by a study that was killed", path.display())]
    );
    assert!(dir.names().is_empty());
    dir.left("fiord-sweep-1", &mark("an earlier one", "held"));
    assert_eq!(clear(&dir.0, false).len(), 1);
    assert!(dir.names().is_empty());
}

/// The steps of removing a directory, which in reverse are those of creating it: after whichever step it was
/// interrupted, the next study removes the remains.
#[test]
fn a_removal_that_was_interrupted_is_completed_by_the_next_study() {
    for steps in 0..=3 {
        let dir = Dir::new();
        let mut own = ScratchFiles::create(&dir.0, "quick").unwrap();
        own.make("data").unwrap();
        let path = own.path().to_path_buf();
        if steps > 0 {
            own.opened.remove_files(&own.names).unwrap();
        }
        if steps > 1 {
            assert_eq!(own.opened.move_mark_out().unwrap(), Some(with_suffix(&path, BESIDE)));
        }
        if steps > 2 {
            fs::remove_dir(&path).unwrap();
        }
        assert_eq!((clear(&dir.0, false), dir.names().is_empty()), (Vec::new(), false), "its owner lives");
        let other = ScratchFiles::create(&dir.0, "quick").unwrap();
        assert!(!other.path().starts_with(&path), "its name is in use");
        drop(other);
        own.mark.unlock().unwrap();
        let messages = clear(&dir.0, true);
        let expected = format!("removed {} (0B), left by a study that was killed", path.display());
        assert_eq!((messages, dir.names()), (vec![expected], Vec::new()), "after {steps} steps");
    }
}

#[test]
fn files_possibly_in_use_on_another_machine_stay_and_are_reported() {
    let dir = Dir::new();
    dir.left("fiord-quick-1", &mark("another machine's", "held"));
    dir.left("fiord-quick-2", &mark(&this_boot(), "none"));
    let messages = clear(&dir.0, true);
    assert_eq!((messages.len(), dir.names().len()), (2, 2), "{messages:?}");
    assert!(
        messages
            .iter()
            .all(|text| text.contains("may still be running on another machine; remove it yourself")),
        "{messages:?}"
    );
}

#[test]
fn files_that_no_study_created_are_kept() {
    let dir = Dir::new();
    let precious = dir.0.join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("data"), "precious").unwrap();
    fs::write(precious.join(MARK), mark(&this_boot(), "held")).unwrap();
    // A name alone is not a mark; a mark of another kind is none; a link is not followed.
    fs::create_dir_all(dir.0.join("fiord-quick-1/data")).unwrap();
    dir.left("fiord-quick-2", "owner: me\n");
    dir.left("fiord-quick-3", &mark(&this_boot(), "held").replace("file data", "file ../precious/data"));
    symlink(&precious, dir.0.join("fiord-quick-4")).unwrap();
    fs::write(dir.0.join("fiord-quick-5"), mark(&this_boot(), "held")).unwrap();
    let linked = dir.left("fiord-quick-6", "");
    fs::remove_file(linked.join(MARK)).unwrap();
    symlink(precious.join(MARK), linked.join(MARK)).unwrap();
    fs::write(dir.0.join("fiord-quick-9.owner"), "owner: me\n").unwrap();
    symlink(precious.join(MARK), dir.0.join("fiord-quick-10.owner")).unwrap();
    let before = dir.names();
    assert_eq!(clear(&dir.0, false), Vec::<String>::new());
    // A directory that contains another file is not touched.
    let mixed = dir.left("fiord-quick-7", &mark(&this_boot(), "held"));
    fs::write(mixed.join("thesis"), "precious").unwrap();
    let outward = dir.left("fiord-quick-8", &mark(&this_boot(), "held"));
    symlink(precious.join("data"), outward.join("appends")).unwrap();
    let messages = clear(&dir.0, false);
    assert!(
        messages.len() == 2
            && messages.iter().all(|text| text.contains("it contains files that no study made")),
        "{messages:?}"
    );
    assert_eq!(dir.names().len(), before.len() + 2);
    assert!(mixed.join("data").exists() && mixed.join("thesis").exists());
    assert_eq!(fs::read(precious.join("data")).unwrap(), b"precious");
}

#[test]
fn a_directory_that_was_moved_away_is_not_taken_for_another_of_its_name() {
    let dir = Dir::new();
    let mut own = ScratchFiles::create(&dir.0, "quick").unwrap();
    own.make("data").unwrap();
    let path = own.path().to_path_buf();
    fs::rename(&path, dir.0.join("moved")).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("data"), "precious").unwrap();
    drop(own);
    assert_eq!(fs::read(path.join("data")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(dir.0.join("moved")).unwrap().count(), 0);
}
