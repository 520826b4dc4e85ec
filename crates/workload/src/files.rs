//! The choice of the file for the next operation, and of the files to have open.
//!
//! Invariant: the current file is always open, and never more files are open than allowed.

use fiord_plan::{FileIndex, FileService};
use fiord_stats::{Capped, Random, Ranks};

use crate::open_files::OpenFiles;
use crate::substream::Substream;

/// Slots per file: fio draws a slot, and a Zipf distribution of slots favours the first file more than a distribution
/// of files would.
const SLOTS_PER_FILE: u64 = 1024;

/// Chooses files and keeps the window of open ones.
///
/// The current file is the first of the open ones. Each file that is done is replaced by the next of the list that was
/// not open yet. A skewed distribution never drops a file: one that is done restarts, or the hottest files would be the
/// first to end.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    choice: FileChoice,
    every: u32,
    /// Operations before the next choice.
    left: u32,
    open: OpenFiles,
    /// Still open, but done for this pass.
    finished: Vec<FileIndex>,
    /// The next file of the list to be opened.
    unopened: FileIndex,
    count: FileIndex,
    limit: usize,
    generation: u64,
    /// Drawn, but not open yet.
    awaited: Option<FileIndex>,
    random: Random,
}

/// The file of the next operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This open file.
    File(FileIndex),
    /// A file that is not open; call again with permission to open it.
    Unopened,
    /// None, because all files are done.
    Nobody,
}

/// The effect of the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retired {
    /// It was removed from the open files.
    Left,
    /// It restarts.
    BeginsAgain,
    /// It is replaced by one that is not open; call again with permission to open it.
    Unopened,
}

#[derive(Debug, Clone)]
enum FileChoice {
    RoundRobin,
    Sequential,
    Even,
    /// With the distance of the favourite from the first file.
    Zipf(Ranks, u64),
    /// As above.
    Pareto(Ranks, u64),
    Normal(Ranks),
}

/// The favourite of `files` files.
fn shift(files: u64, centre: f64) -> u64 {
    u64::capped(files as f64 * centre)
}

impl Service {
    pub(crate) fn new(service: FileService, count: usize, open_at_once: u32, seed: u64) -> Service {
        let files = count as u64;
        let (choice, every) = match service {
            FileService::RoundRobin { every } => (FileChoice::RoundRobin, every),
            FileService::Sequential => (FileChoice::Sequential, u32::MAX),
            FileService::Random { every } => (FileChoice::Even, every),
            FileService::Zipf { theta, centre } => {
                (FileChoice::Zipf(Ranks::zipf(files * SLOTS_PER_FILE, theta), shift(files, centre)), 1)
            }
            FileService::Pareto { power, centre } => {
                (FileChoice::Pareto(Ranks::pareto(files, power), shift(files, centre)), 1)
            }
            FileService::Normal { deviation, centre } => {
                (FileChoice::Normal(Ranks::normal(files, deviation, centre)), 1)
            }
        };
        let limit = if open_at_once == 0 { count } else { count.min(open_at_once as usize) };
        let mut service = Service {
            choice,
            every: every.max(1),
            left: 0,
            open: OpenFiles::new(count, limit),
            finished: Vec::with_capacity(limit),
            unopened: 0,
            count: FileIndex::capped(count),
            limit,
            generation: 0,
            awaited: None,
            random: Substream::Files.of(seed),
        };
        service.reopen();
        service
    }

    /// Begins a pass: no file is done.
    pub(crate) fn restart(&mut self) {
        if self.is_limited() {
            self.generation += 1;
        }
        self.reopen();
    }

    fn reopen(&mut self) {
        self.open.restart();
        self.finished.clear();
        self.unopened = FileIndex::capped(self.limit);
        self.awaited = None;
        // The next file is the first already, unless files are drawn.
        self.left = if self.is_drawn() { 0 } else { self.every };
    }

    /// The file of the next operation. Without permission to open files, the set of open ones does not change.
    #[inline]
    pub(crate) fn turn(&mut self, may_open: bool) -> Turn {
        if self.left == 0 {
            self.choose();
        }
        if self.awaited.is_some() && !self.open_awaited(may_open) {
            return Turn::Unopened;
        }
        self.open.front().map_or(Turn::Nobody, Turn::File)
    }

    /// Counts an operation on the current file.
    #[inline]
    pub(crate) fn count(&mut self) {
        // `Sequential` never chooses, so its countdown is not used.
        if !matches!(self.choice, FileChoice::Sequential) {
            self.left -= 1;
        }
    }

    /// Goes on to the next open file, because the current one has no operation now; `false`: as many have been `tried` as
    /// are open.
    pub(crate) fn pass_over(&mut self, tried: usize) -> bool {
        self.open.rotate();
        tried < self.open.len()
    }

    /// Ends the current file.
    pub(crate) fn retire(&mut self, may_open: bool) -> Retired {
        if matches!(self.choice, FileChoice::Zipf(..) | FileChoice::Pareto(..) | FileChoice::Normal(_)) {
            return Retired::BeginsAgain;
        }
        let opens_another = self.unopened < self.count;
        if opens_another && !may_open {
            return Retired::Unopened;
        }
        let file = self.open.pop_front();
        if opens_another {
            // Behind the files that are open already: files have their turns in the order of the list.
            self.open.push_back(self.unopened);
            self.unopened += 1;
            self.generation += 1;
        } else {
            self.finished.extend(file);
        }
        self.left = if self.is_drawn() { 0 } else { self.every };
        Retired::Left
    }

    /// Changes with the set of open files; never, if all may be open.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The open files, in no particular order.
    pub(crate) fn open(&self) -> impl Iterator<Item = FileIndex> + '_ {
        self.open.iter().chain(self.finished.iter().copied())
    }

    fn is_limited(&self) -> bool {
        self.limit < self.count as usize
    }

    fn is_drawn(&self) -> bool {
        !matches!(self.choice, FileChoice::RoundRobin | FileChoice::Sequential)
    }

    /// Moves the next file to the front.
    fn choose(&mut self) {
        if self.open.len() == 0 {
            return;
        }
        self.left = self.every;
        let rank = match &self.choice {
            FileChoice::Sequential => return,
            FileChoice::RoundRobin => return self.open.rotate(),
            FileChoice::Even => {
                let place = usize::capped(self.random.below(self.open.len() as u64));
                return self.open.bring_forward(place);
            }
            FileChoice::Zipf(zipf, shift) => zipf.sample(&mut self.random) / SLOTS_PER_FILE + shift,
            FileChoice::Pareto(pareto, shift) => pareto.sample(&mut self.random) + shift,
            FileChoice::Normal(normal) => normal.sample(&mut self.random),
        };
        let file = FileIndex::capped(rank % u64::from(self.count));
        if !self.open.bring_file_forward(file) {
            // It becomes the current one as soon as it is open.
            self.awaited = Some(file);
        }
    }

    /// Opens the awaited file in place of the last one, if permitted.
    fn open_awaited(&mut self, may_open: bool) -> bool {
        if let (Some(file), true) = (self.awaited, may_open) {
            self.open.replace_last(file);
            self.generation += 1;
            self.awaited = None;
        }
        may_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequence of files, each with space for `room` operations.
    fn turns(choice: FileService, count: usize, open_at_once: u32, room: usize) -> Vec<FileIndex> {
        let mut service = Service::new(choice, count, open_at_once, 5);
        let mut left = vec![room; count];
        let mut turns = Vec::new();
        while let Turn::File(file) = service.turn(true) {
            if left[file as usize] == 0 {
                if service.retire(true) == Retired::BeginsAgain {
                    break;
                }
                continue;
            }
            left[file as usize] -= 1;
            service.count();
            turns.push(file);
        }
        turns
    }

    // The orders are those of fio's operation log for the same options.

    #[test]
    fn round_robin_takes_turns() {
        assert_eq!(turns(FileService::RoundRobin { every: 1 }, 3, 3, 2), [0, 1, 2, 0, 1, 2]);
        let every_3 = turns(FileService::RoundRobin { every: 3 }, 3, 3, 4);
        assert_eq!(every_3, [0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2]);
    }

    #[test]
    fn sequential_finishes_a_file_first() {
        assert_eq!(turns(FileService::Sequential, 3, 3, 2), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn the_window_moves_when_a_file_is_done() {
        let two_open = turns(FileService::RoundRobin { every: 1 }, 4, 2, 3);
        assert_eq!(two_open, [0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3]);
        assert_eq!(turns(FileService::Sequential, 4, 2, 2), [0, 0, 1, 1, 2, 2, 3, 3]);
        let every_2 = turns(FileService::RoundRobin { every: 2 }, 4, 2, 3);
        assert_eq!(every_2, [0, 0, 1, 1, 0, 1, 2, 2, 3, 3, 2, 3]);
        let three_open = turns(FileService::RoundRobin { every: 2 }, 4, 3, 3);
        assert_eq!(three_open, [0, 0, 1, 1, 2, 2, 0, 1, 2, 3, 3, 3]);
        assert_eq!(turns(FileService::Random { every: 1 }, 3, 1, 2), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn random_reaches_every_file_evenly() {
        let turns = turns(FileService::Random { every: 2 }, 4, 4, 5000);
        assert_eq!(turns.len(), 20_000);
        assert!(turns.chunks(2).take(5000).all(|pair| pair[0] == pair[1]));
        let first = turns[..10_000].iter().filter(|file| **file == 2).count();
        assert!(first.abs_diff(2500) < 500, "{first}");
    }

    #[test]
    fn skewed_distributions_prefer_some_files() {
        let share = |choice, file: FileIndex| {
            let mut service = Service::new(choice, 100, 0, 7);
            let mut hits = 0;
            for _ in 0..10_000 {
                hits += u32::from(service.turn(true) == Turn::File(file));
                service.count();
            }
            f64::from(hits) / 10_000.0
        };
        assert!(share(FileService::Zipf { theta: 1.2, centre: 0.0 }, 0) > 0.2);
        assert!(share(FileService::Zipf { theta: 1.2, centre: 0.25 }, 25) > 0.2);
        assert!(share(FileService::Zipf { theta: 1.2, centre: 1.0 }, 0) > 0.2);
        assert!(share(FileService::Pareto { power: 0.1, centre: 0.0 }, 0) > 0.2);
        assert!(share(FileService::Pareto { power: 0.1, centre: 0.9 }, 90) > 0.2);
        assert!(share(FileService::Normal { deviation: 5.0, centre: 0.5 }, 50) > 0.05);
        assert!(share(FileService::Normal { deviation: 5.0, centre: 0.5 }, 0) < 0.01);
    }

    #[test]
    fn a_zipf_distribution_has_the_shares_of_fio() {
        // Reads of each of 8 files under zipf:1.2:0, of 4096 in all.
        let fio = [3750, 131, 64, 51, 38, 22, 26, 14];
        let mut service = Service::new(FileService::Zipf { theta: 1.2, centre: 0.0 }, 8, 0, 7);
        let mut hits = [0_u32; 8];
        for _ in 0..4096 {
            if let Turn::File(file) = service.turn(true) {
                hits[file as usize] += 1;
            }
            service.count();
        }
        let near = |ours: u32, theirs: u32| f64::from(ours.abs_diff(theirs)) < 6.0 * f64::from(theirs).sqrt();
        assert!(hits.iter().zip(fio).all(|(ours, theirs)| near(*ours, theirs)), "{hits:?}");
    }

    #[test]
    fn passing_over_tries_each_open_file_once() {
        for choice in [FileService::RoundRobin { every: 2 }, FileService::Sequential] {
            let mut service = Service::new(choice, 4, 3, 5);
            let mut tried = Vec::new();
            loop {
                let Turn::File(file) = service.turn(true) else { unreachable!("none is done") };
                tried.push(file);
                if !service.pass_over(tried.len()) {
                    break;
                }
            }
            assert_eq!(tried, [0, 1, 2], "{choice:?}");
            assert_eq!(
                service.turn(true),
                Turn::File(0),
                "{choice:?}: the next attempt begins where this one did"
            );
        }
    }

    #[test]
    fn a_file_is_opened_only_with_permission() {
        let mut service = Service::new(FileService::Zipf { theta: 0.5, centre: 0.0 }, 1000, 2, 7);
        let (mut opened, mut generation) = (0, service.generation());
        for _ in 0..1000 {
            let turn = service.turn(false);
            assert_eq!(service.generation(), generation);
            if turn == Turn::Unopened {
                opened += 1;
                assert!(matches!(service.turn(true), Turn::File(_)));
            }
            assert_eq!(service.open().count(), 2);
            generation = service.generation();
            service.count();
        }
        assert!(opened > 500 && generation == opened, "{opened} {generation}");
    }
}
