//! Which of several files the next operation goes to, and which of them are open.
//!
//! Invariant: the current file is always one of the open ones, and never more are open than may be.

use std::collections::VecDeque;

use fiord_plan::{FileIndex, FileService};
use fiord_stats::random::{Normal, Pareto, Random, Zipf};

/// What the draws for files are told apart by.
const PURPOSE: u64 = 3;

/// Chooses files and keeps the window of open ones.
///
/// The current file stands in front of the open ones. Files that are done leave, and the next in the list that was
/// not open yet takes the place. A skewed law never leaves a file: one that is done begins again, or the hottest
/// files would be the first to get nothing.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    law: Law,
    every: u32,
    /// Operations before the next choice.
    left: u32,
    open: VecDeque<FileIndex>,
    /// The next file of the list to be opened.
    unopened: FileIndex,
    count: FileIndex,
    limit: usize,
    generation: u64,
    random: Random,
}

#[derive(Debug, Clone)]
enum Law {
    RoundRobin,
    Sequential,
    Even,
    Zipf(Zipf),
    Pareto(Pareto),
    Normal(Normal),
}

impl Service {
    pub(crate) fn new(service: FileService, count: usize, open_at_once: u32, seed: u64) -> Service {
        let files = count as u64;
        let (law, every) = match service {
            FileService::RoundRobin { every } => (Law::RoundRobin, every),
            FileService::Sequential => (Law::Sequential, u32::MAX),
            FileService::Random { every } => (Law::Even, every),
            FileService::Zipf { theta, every } => (Law::Zipf(Zipf::new(files, theta)), every),
            FileService::Pareto { power, every } => (Law::Pareto(Pareto::new(files, power)), every),
            FileService::Normal { deviation, every } => {
                (Law::Normal(Normal::new(files, deviation, 0.5)), every)
            }
        };
        let limit = if open_at_once == 0 { count } else { count.min(open_at_once as usize) };
        let mut service = Service {
            law,
            every: every.max(1),
            left: 0,
            open: VecDeque::with_capacity(limit),
            unopened: 0,
            count: count as FileIndex,
            limit,
            generation: 0,
            random: Random::for_purpose(seed, PURPOSE),
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

    /// Starts the same draws again.
    pub(crate) fn restart_draws(&mut self, seed: u64) {
        self.random = Random::for_purpose(seed, PURPOSE);
    }

    fn reopen(&mut self) {
        self.open.clear();
        self.open.extend(0..self.limit as FileIndex);
        self.unopened = self.limit as FileIndex;
        // Whose turn it is stands in front already, unless it is drawn.
        self.left = if self.is_drawn() { 0 } else { self.every };
    }

    /// The file of the next operation; `None` when all are done.
    #[inline]
    pub(crate) fn current(&mut self) -> Option<FileIndex> {
        if self.left == 0 {
            self.choose();
        }
        self.open.front().copied()
    }

    /// An operation went to the current file.
    #[inline]
    pub(crate) fn count(&mut self) {
        // `Sequential` never chooses, so its countdown may stay where it is.
        if !matches!(self.law, Law::Sequential) {
            self.left -= 1;
        }
    }

    /// The current file is done: another takes its place. False when it has to begin again instead.
    pub(crate) fn retire(&mut self) -> bool {
        if matches!(self.law, Law::Zipf(_) | Law::Pareto(_) | Law::Normal(_)) {
            return false;
        }
        self.open.pop_front();
        if self.unopened < self.count {
            self.open.push_front(self.unopened);
            self.unopened += 1;
            self.generation += 1;
        }
        self.left = if self.is_drawn() { 0 } else { self.every };
        true
    }

    /// Changes with the set of open files; never, when all may be open.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The open files, in no particular order.
    pub(crate) fn open(&self) -> impl Iterator<Item = FileIndex> + '_ {
        self.open.iter().copied()
    }

    fn is_limited(&self) -> bool {
        self.limit < self.count as usize
    }

    fn is_drawn(&self) -> bool {
        !matches!(self.law, Law::RoundRobin | Law::Sequential)
    }

    /// Brings the next file to the front.
    fn choose(&mut self) {
        if self.open.is_empty() {
            return;
        }
        self.left = self.every;
        let rank = match &self.law {
            Law::Sequential => return,
            Law::RoundRobin => return self.open.rotate_left(1),
            Law::Even => {
                let place = self.random.below(self.open.len() as u64) as usize;
                return self.open.swap(0, place);
            }
            Law::Zipf(zipf) => zipf.sample(&mut self.random),
            Law::Pareto(pareto) => pareto.sample(&mut self.random),
            Law::Normal(normal) => normal.sample(&mut self.random),
        };
        self.bring_forward(rank as FileIndex);
    }

    /// Makes this file the current one, at the cost of the one behind all others if it was not open.
    fn bring_forward(&mut self, file: FileIndex) {
        match self.open.iter().position(|open| *open == file) {
            Some(place) => self.open.swap(0, place),
            None => {
                self.open.pop_back();
                self.open.push_front(file);
                self.generation += 1;
            }
        }
    }
}
