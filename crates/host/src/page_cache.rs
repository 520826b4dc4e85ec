//! What the page cache holds of files while a run reads and writes them past it.
//!
//! Invariant: looking asks the page cache alone, never the file system: one that does not answer holds nothing up. A file
//! of which the kernel does not say it is left out.

use std::fs::File;
use std::path::{Path, PathBuf};

use fiord_sys::extents::{self, CachedPages};
use fiord_sys::file::{self, OpenHow};
use fiord_sys::stat;

/// Files of which more was cached than this would take long to look at, in pages.
const PAGES_MAX: u64 = 1 << 16;

/// What the page cache held of one file during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageCacheUse {
    /// The file.
    pub path: PathBuf,
    /// The type of its file system.
    pub file_system: String,
    /// How often it was looked at since the run began.
    pub looks: u32,
    /// How often there were pages that had not been written to the device yet; none if there were some before.
    pub unwritten_looks: u32,
    /// The parts of the file that its jobs looked at themselves when they began and when they ended, in bytes.
    pub looked_bytes: u64,
    /// By how much the cached part of these has grown.
    pub grown_bytes: u64,
}

/// Files that are looked at.
#[derive(Debug, Default)]
pub struct PageCacheWatch {
    files: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    file: File,
    was_clean: bool,
    is_small: bool,
    seen: PageCacheUse,
}

impl PageCacheWatch {
    /// Begins with these regular files, whose file systems must answer at once.
    pub fn start<'p>(files: impl IntoIterator<Item = &'p Path>) -> PageCacheWatch {
        let watched = |path: &Path| {
            let file = file::open(path, &OpenHow { nonblocking: true, ..OpenHow::READ }).ok()?;
            // Kernels (6.12 for one) crash on looks at such a file.
            if stat::is_dax(&file).unwrap_or(true) {
                return None;
            }
            let CachedPages { cached, unwritten } = extents::cached_pages(&file).ok()?;
            let seen = PageCacheUse { path: path.to_path_buf(), ..PageCacheUse::default() };
            Some(Watched { file, was_clean: unwritten == 0, is_small: cached <= PAGES_MAX, seen })
        };
        PageCacheWatch { files: files.into_iter().filter_map(watched).collect() }
    }

    /// Looks at all of them.
    pub fn look(&mut self) {
        for Watched { file, was_clean, is_small, seen } in
            self.files.iter_mut().filter(|watched| watched.is_small)
        {
            let Ok(CachedPages { cached, unwritten }) = extents::cached_pages(&*file) else { continue };
            seen.looks += 1;
            seen.unwritten_looks += u32::from(*was_clean && unwritten > 0);
            *is_small = cached <= PAGES_MAX;
        }
    }

    /// What was seen so far.
    pub fn uses(&self) -> Vec<PageCacheUse> {
        self.files.iter().map(|watched| watched.seen.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use fiord_testing::skip;

    use super::*;

    #[test]
    fn pages_that_come_and_are_not_written_yet_are_seen() {
        let path = std::env::temp_dir().join(format!("fiord-page-cache-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let mut watch = PageCacheWatch::start([path.as_path()]);
        if watch.files.is_empty() {
            fs::remove_file(&path).unwrap();
            skip!("the kernel does not say what is cached of {}", path.display());
        }
        watch.look();
        file.write_all_at(&[7; 1 << 16], 0).unwrap();
        watch.look();
        fs::remove_file(&path).unwrap();
        let [seen] = &watch.uses()[..] else { panic!("{watch:?}") };
        assert_eq!(seen.looks, 2);
        assert!(seen.unwritten_looks <= 1);
    }
}
