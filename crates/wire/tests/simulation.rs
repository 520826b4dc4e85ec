//! Both state machines over a made-up network and clock: delays, clocks that differ, connections that end, agents that
//! freeze, fail or are told to stop.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use std::collections::{BTreeMap, VecDeque};

use fiord_fleet::Fate;
use fiord_stats::Random;
use fiord_wire::agent::{AgentAction, AgentEvent, LOG_BYTES_MAX, Outbox};
use fiord_wire::message::{PROTOCOL, Progress};
use fiord_wire::{
    Agent, Controller, ControllerAction, ControllerSettings, Hello, Inbox, Log, LogPiece, Logs, Message,
    PREFACE, Prepare, Told,
};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;

/// What is wrong with a host.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// It never answers.
    Unreachable,
    /// Its connection ends at this time.
    Cut(i64),
    /// It does nothing from the first time to the second.
    Frozen(i64, i64),
    /// It cannot plan.
    Refuses,
    /// Its run fails.
    Fails,
    /// The first copy of its report is damaged.
    Damages,
}

struct Simulated {
    agent: Agent,
    fault: Fault,
    /// How far its clock is ahead.
    ahead_ns: i64,
    layout_ns: i64,
    run_ns: i64,
    /// What its run does next, and when (of the world's time).
    next: Option<(i64, Step)>,
    is_cut: bool,
    has_left: bool,
    spooled: bool,
    is_stopped: bool,
    released_ns: Option<i64>,
    /// Whether its jobs write logs.
    writes_logs: bool,
    /// Its jobs are over; logs may be left to send.
    has_ended: bool,
    /// What waits of its logs.
    outbox: Outbox,
    /// How many pieces of its log it has written.
    pieces: u32,
    /// The pieces that have come to the controller, and are written there.
    come: Vec<u32>,
    written: usize,
    /// The most pieces that have come and were not written.
    waiting_max: usize,
}

/// A piece of a log: 16 of them are what a host may have sent that is not written.
const PIECE_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug)]
enum Step {
    Planned,
    Ready,
    Release,
    End,
}

/// What is on its way: to an agent, or (`true`) to the controller; `None` is the end of the connection.
type Letter = (usize, bool, Option<Message>);

struct World {
    now_ns: i64,
    random: Random,
    hosts: Vec<Simulated>,
    controller: Controller,
    letters: BTreeMap<(i64, u64), Letter>,
    count: u64,
    /// Nothing overtakes on one connection.
    arrives_ns: BTreeMap<(usize, bool), i64>,
    is_done: bool,
    /// What time moves by.
    step_ns: i64,
    /// The least that the report of a host has.
    report_bytes: usize,
}

fn hello() -> Hello {
    Hello { protocol: PROTOCOL, ..Hello::default() }
}

impl World {
    fn new(seed: u64, hosts: usize, allow_missing: usize, is_one_by_one: bool) -> World {
        let mut random = Random::new(seed);
        let settings = ControllerSettings {
            allow_missing,
            connect_ns: 10 * SECOND,
            is_one_by_one,
            ..ControllerSettings::default()
        };
        let controller = Controller::new(hello(), vec![Prepare::default(); hosts], settings, 0);
        let mut world = World {
            now_ns: 0,
            hosts: Vec::new(),
            controller,
            letters: BTreeMap::new(),
            count: 0,
            arrives_ns: BTreeMap::new(),
            is_done: false,
            random: Random::new(seed ^ 1),
            step_ns: MS,
            report_bytes: 1,
        };
        for number in 0..hosts {
            let ahead_ns = random.below(1000 * SECOND as u64) as i64;
            let (agent, first) = Agent::new(ahead_ns as u64, hello());
            world.hosts.push(Simulated {
                agent,
                fault: Fault::None,
                ahead_ns,
                layout_ns: random.below(3 * SECOND as u64) as i64,
                run_ns: 2 * SECOND + random.below(SECOND as u64) as i64,
                next: None,
                is_cut: false,
                has_left: false,
                spooled: false,
                is_stopped: false,
                released_ns: None,
                writes_logs: false,
                has_ended: false,
                outbox: Outbox::default(),
                pieces: 0,
                come: Vec::new(),
                written: 0,
                waiting_max: 0,
            });
            world.act(number, vec![first]);
            world.controller.connecting(number, 0);
        }
        world
    }

    /// Something is wrong with half of the hosts, from some time before `until_ns` on. Some do nothing then until `thaw_ns`.
    fn break_hosts(&mut self, random: &mut Random, some_refuse: bool, [until_ns, thaw_ns]: [i64; 2]) {
        for host in &mut self.hosts {
            let at_ns = random.below(until_ns as u64) as i64;
            host.fault = match random.below(14) {
                0 => Fault::Unreachable,
                1 => Fault::Cut(at_ns),
                2 => Fault::Frozen(at_ns, at_ns + 20 * SECOND),
                3 => Fault::Frozen(at_ns, thaw_ns),
                4 if some_refuse => Fault::Refuses,
                5 => Fault::Fails,
                6 => Fault::Damages,
                _ => Fault::None,
            };
        }
    }

    /// The report of a host: its number, as often as it takes.
    fn report_of(&self, number: usize) -> Vec<u8> {
        let number = number.to_string();
        number.repeat(self.report_bytes.div_ceil(number.len())).into_bytes()
    }

    fn send(&mut self, letter: Letter) {
        let way = (letter.0, letter.1);
        let delay_ns = 10_000 + self.random.below(5 * MS as u64) as i64;
        let earliest_ns = self.arrives_ns.get(&way).copied().unwrap_or(0);
        let at_ns = (self.now_ns + delay_ns).max(earliest_ns);
        self.arrives_ns.insert(way, at_ns);
        self.count += 1;
        self.letters.insert((at_ns, self.count), letter);
    }

    fn act(&mut self, number: usize, actions: Vec<AgentAction>) {
        let now_ns = self.now_ns;
        for action in actions {
            let host = &mut self.hosts[number];
            match action {
                AgentAction::Send(message) => {
                    let is_heard = !host.is_cut && host.fault != Fault::Unreachable;
                    let message = match message {
                        Message::Report(_) if host.fault == Fault::Damages => {
                            host.fault = Fault::None;
                            Message::Report(vec![9])
                        }
                        message => message,
                    };
                    if is_heard {
                        self.send((number, true, Some(message)));
                    }
                }
                AgentAction::Credit(bytes) => host.outbox.credit(bytes),
                AgentAction::EndLog(log) => host.outbox.end_logs(Some(log)),
                // Nobody looks.
                AgentAction::Watch(_) => {}
                AgentAction::EndLogs => host.outbox.end_logs(None),
                AgentAction::Plan(_, beside) => {
                    assert!(beside.takes_logs && beside.keeps_states);
                    host.next = Some((now_ns + MS, Step::Planned));
                }
                AgentAction::Run => host.next = Some((now_ns + host.layout_ns, Step::Ready)),
                AgentAction::Start(_, at_ns) => {
                    let at_ns = (at_ns as i64 - host.ahead_ns).max(now_ns);
                    host.next = Some((at_ns, Step::Release));
                }
                AgentAction::Stop => {
                    host.is_stopped = true;
                    host.next = Some((now_ns + MS, Step::End));
                }
                // It has no trigger.
                AgentAction::Fire | AgentAction::Command(_) => {}
                AgentAction::Spool(_) => host.spooled = true,
                AgentAction::Leave => {
                    host.has_left = true;
                    if !host.is_cut {
                        self.send((number, true, None));
                    }
                }
            }
        }
    }

    fn step(&mut self, number: usize, step: Step) {
        let report = self.report_of(number);
        let (now_ns, host) = (self.now_ns, &mut self.hosts[number]);
        host.next = None;
        let there_ns = now_ns + host.ahead_ns;
        host.has_ended |= matches!(step, Step::End);
        if host.has_ended && !host.outbox.has_sent_logs() {
            // The report comes after the logs.
            host.next = Some((now_ns + MS, Step::End));
            return self.send_pieces(number);
        }
        let event = match step {
            Step::Planned if host.fault == Fault::Refuses => {
                AgentEvent::Planned(Err(vec![Told { text: "j.fio:1:1: no".to_string(), is_unsafe: false }]))
            }
            Step::Planned => {
                let logs = Logs { list: vec![Log::default()], ..Logs::default() };
                let told = host.agent.on(AgentEvent::Tell(Message::Logs(Box::new(logs))), there_ns as u64);
                self.act(number, told);
                AgentEvent::Planned(Ok(Box::default()))
            }
            Step::Ready => AgentEvent::Tell(Message::Ready(0)),
            Step::Release => {
                host.released_ns = Some(now_ns);
                host.next = Some((now_ns + host.run_ns, Step::End));
                AgentEvent::Tell(Message::Started((0, there_ns)))
            }
            Step::End => {
                let failed = host.fault == Fault::Fails;
                let status = if host.is_stopped { 143 } else { u8::from(failed) };
                let cause = failed.then(|| "it failed".to_string());
                AgentEvent::Ended { report, status, cause }
            }
        };
        let actions = self.hosts[number].agent.on(event, there_ns as u64);
        self.act(number, actions);
    }

    fn control(&mut self, actions: Vec<ControllerAction>) {
        for action in actions {
            match action {
                ControllerAction::Send(number, message) => self.send((number, false, Some(message))),
                ControllerAction::Close(number) => self.send((number, false, None)),
                ControllerAction::Show(..) | ControllerAction::Keep(..) => {}
                ControllerAction::Logs(_, logs) => assert_eq!(logs.list.len(), 1),
                ControllerAction::Write(number, piece) => {
                    let host = &mut self.hosts[number];
                    let bytes = piece.bytes.iter().take(4).copied().collect::<Vec<u8>>();
                    host.come.push(u32::from_le_bytes(bytes.try_into().unwrap()));
                    host.waiting_max = host.waiting_max.max(host.come.len() - host.written);
                }
                ControllerAction::Done => {
                    assert!(!self.is_done, "done once");
                    self.is_done = true;
                }
            }
        }
    }

    /// A host's job writes to its log, as far as there is room, and sends what it may.
    fn log(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let is_running = matches!(host.next, Some((_, Step::End))) && !host.has_ended;
        let is_at_work = host.writes_logs && is_running;
        while is_at_work && host.outbox.has_room() {
            let mut bytes = vec![0; PIECE_BYTES];
            bytes[..4].copy_from_slice(&host.pieces.to_le_bytes());
            if !host.outbox.push_piece(LogPiece { log: 0, bytes, is_last: false }) {
                break;
            }
            host.pieces += 1;
        }
        self.send_pieces(number);
    }

    fn send_pieces(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        if host.outbox.bytes().is_empty() {
            return;
        }
        let mut inbox = Inbox::default();
        inbox.push(&PREFACE);
        loop {
            let bytes = host.outbox.bytes().to_vec();
            if bytes.is_empty() {
                break;
            }
            host.outbox.wrote(bytes.len());
            inbox.push(&bytes);
        }
        let is_heard = !host.is_cut && host.fault != Fault::Unreachable;
        while let Some((kind, payload)) = inbox.message().unwrap() {
            let message = Message::read(kind, &payload).unwrap();
            if is_heard {
                self.send((number, true, message));
            }
        }
    }

    /// The controller's disk writes one piece of each host.
    fn write(&mut self) {
        for number in 0..self.hosts.len() {
            let host = &mut self.hosts[number];
            if host.written < host.come.len() {
                host.written += 1;
                let actions = self.controller.wrote(number, PIECE_BYTES as u64);
                self.control(actions);
            }
        }
    }

    fn deliver(&mut self, (number, to_controller, message): Letter) {
        let now_ns = self.now_ns;
        if to_controller {
            let actions = match message {
                Some(message) => self.controller.message(number, message, now_ns),
                None => self.controller.closed(number, "the connection ended", now_ns),
            };
            return self.control(actions);
        }
        let host = &mut self.hosts[number];
        if host.is_cut || host.has_left {
            return;
        }
        let event = message.map_or(AgentEvent::Closed, AgentEvent::Message);
        let actions = host.agent.on(event, (now_ns + host.ahead_ns) as u64);
        self.act(number, actions);
    }

    fn is_frozen(&self, number: usize) -> bool {
        matches!(self.hosts[number].fault, Fault::Frozen(from, to) if (from..to).contains(&self.now_ns))
    }

    /// The next moment at which something happens, a tenth of a second later at the latest.
    fn next_ns(&self) -> i64 {
        let tick_ns = (self.now_ns / (100 * MS) + 1) * 100 * MS;
        let letter_ns = self.letters.first_key_value().map_or(tick_ns, |((at_ns, _), _)| *at_ns);
        let moves = |(number, host): (usize, &Simulated)| {
            host.next.filter(|_| !self.is_frozen(number) && !host.has_left)
        };
        let steps = self.hosts.iter().enumerate().filter_map(moves).map(|(at_ns, _)| at_ns);
        let next_ns = steps.chain([letter_ns]).min().unwrap_or(tick_ns).max(self.now_ns + 1);
        ((next_ns + self.step_ns - 1) / self.step_ns * self.step_ns).min(tick_ns)
    }

    /// Lets time pass until something happens.
    fn pass(&mut self, held: &mut VecDeque<Letter>) {
        self.now_ns = self.next_ns();
        for number in 0..self.hosts.len() {
            if let Fault::Cut(at_ns) = self.hosts[number].fault
                && self.now_ns >= at_ns
                && !std::mem::replace(&mut self.hosts[number].is_cut, true)
            {
                self.send((number, true, None));
                let host = &mut self.hosts[number];
                let actions = host.agent.on(AgentEvent::Closed, (self.now_ns + host.ahead_ns) as u64);
                self.act(number, actions);
            }
        }
        let later = self.letters.split_off(&(self.now_ns + 1, 0));
        let due = std::mem::replace(&mut self.letters, later);
        let waited: Vec<Letter> = held.drain(..).collect();
        for letter in waited.into_iter().chain(due.into_values()) {
            if !letter.1 && self.is_frozen(letter.0) { held.push_back(letter) } else { self.deliver(letter) }
        }
        for number in (0..self.hosts.len()).filter(|number| !self.is_frozen(*number)).collect::<Vec<_>>() {
            if let Some((_, step)) = self.hosts[number].next.filter(|(at_ns, _)| *at_ns <= self.now_ns) {
                self.step(number, step);
            }
        }
        if self.now_ns % (100 * MS) == 0 {
            let actions = self.controller.tick(self.now_ns);
            self.control(actions);
            self.write();
            for number in (0..self.hosts.len()).filter(|number| !self.is_frozen(*number)).collect::<Vec<_>>()
            {
                self.log(number);
                let host = &mut self.hosts[number];
                let there_ns = (self.now_ns + host.ahead_ns) as u64;
                let mut actions = host.agent.on(AgentEvent::Tick, there_ns);
                if self.now_ns % SECOND == 0 {
                    let progress = AgentEvent::Tell(Message::Progress(Progress::default()));
                    actions.extend(host.agent.on(progress, there_ns));
                }
                self.act(number, actions);
            }
        }
    }

    /// Lets time pass until all hosts have their fates and have left.
    fn run(&mut self, stop_ns: Option<i64>) {
        let mut held = VecDeque::new();
        let mut stop_ns = stop_ns;
        while self.now_ns < 400 * SECOND {
            if stop_ns.take_if(|stop_ns| *stop_ns <= self.now_ns).is_some() {
                let actions = self.controller.stop(self.now_ns);
                self.control(actions);
            }
            self.pass(&mut held);
            let gone = |host: &Simulated| host.has_left;
            if self.is_done && self.hosts.iter().all(gone) {
                return;
            }
        }
    }

    fn fates(&self) -> Vec<&'static str> {
        self.controller.remotes().iter().map(|remote| remote.fate().map_or("none", Fate::word)).collect()
    }
}

#[test]
fn hosts_with_clocks_of_their_own_start_within_the_error_of_these() {
    for seed in 0..20 {
        let mut world = World::new(seed, 8, 0, false);
        world.run(None);
        assert_eq!(world.fates(), ["complete"; 8], "seed {seed}");
        let released: Vec<i64> = world.hosts.iter().filter_map(|host| host.released_ns).collect();
        let skew_ns = released.iter().max().unwrap() - released.iter().min().unwrap();
        // The world's time moves by milliseconds, and a way takes up to five.
        assert!(skew_ns <= 7 * MS, "seed {seed}: {skew_ns}");
        for (remote, host) in world.controller.remotes().iter().zip(&world.hosts) {
            let started_ns = remote.stages()[0].started_ns.unwrap();
            let error_ns = remote.clock().unwrap().error_ns as i64;
            assert!((started_ns - host.released_ns.unwrap()).abs() <= error_ns + 3 * MS, "seed {seed}");
            assert!(!host.spooled);
        }
    }
}

#[test]
fn every_host_has_one_fate_whatever_happens() {
    for seed in 0..60 {
        let mut random = Random::new(seed + 1000);
        let allow_missing = random.below(9) as usize;
        let mut world = World::new(seed, 8, allow_missing, seed % 7 == 0);
        world.hosts.iter_mut().for_each(|host| host.writes_logs = seed % 10 == 0);
        world.break_hosts(&mut random, seed % 5 == 0, [8, 390].map(|seconds| seconds * SECOND));
        let stop_ns = (seed % 3 == 0).then(|| random.below(12_000) as i64 * MS);
        world.run(stop_ns);
        assert_one_fate_each(&world, seed);
        let is_too_few = world.fates().iter().filter(|fate| **fate == "missing").count() > allow_missing;
        if is_too_few && stop_ns.is_none() {
            assert!(
                world
                    .hosts
                    .iter()
                    .all(|host| host.released_ns.is_none() || world.controller.first_start_ns().is_some())
            );
        }
    }
}

/// Each host has a fate, its report if that says so, and no load.
fn assert_one_fate_each(world: &World, seed: u64) {
    assert!(
        world.is_done,
        "seed {seed}: {:?} at {}",
        &world.fates()[..99.min(world.hosts.len())],
        world.now_ns
    );
    for (number, (remote, host)) in world.controller.remotes().iter().zip(&world.hosts).enumerate() {
        assert!(remote.fate().is_some(), "seed {seed}, host {number}");
        let is_whole = remote.report() == world.report_of(number);
        let has_report = matches!(remote.fate(), Some(Fate::Complete | Fate::Failed { .. } | Fate::Stopped));
        assert_eq!(has_report, is_whole, "seed {seed}, host {number}: {:?}", remote.fate());
        assert!(host.has_left, "seed {seed}, host {number}: no load is left: {:?}", host.fault);
    }
}

/// On one processor, since one thread plays all of them, in less time than passes there; and in less than 1 GiB.
#[test]
fn ten_thousand_hosts_have_one_fate_each() {
    const HOSTS: usize = 10_000;
    let seed = 42;
    let mut world = World::new(seed, HOSTS, HOSTS, false);
    (world.step_ns, world.report_bytes) = (100 * MS, 16 << 10);
    world.break_hosts(&mut Random::new(seed), false, [3, 10].map(|seconds| seconds * SECOND));
    // What was frozen for 20 s has kept the others from starting; these are lost while they run.
    world.hosts.iter_mut().step_by(10).for_each(|host| host.fault = Fault::Cut(25 * SECOND));
    world.run(None);
    assert_one_fate_each(&world, seed);
    let count = |word: &str| world.fates().iter().filter(|fate| **fate == word).count();
    let counts = ["complete", "failed", "lost", "missing"].map(count);
    assert!(
        counts.iter().sum::<usize>() == HOSTS && counts.iter().all(|count| *count > 500),
        "{counts:?} at {}",
        world.now_ns
    );
    let read = |file: &str, key: &str| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/thread-self/{file}")).unwrap();
        let words = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        words.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (peak_kib, worked_ns) = (read("status", "VmHWM:"), read("schedstat", ""));
    assert!(peak_kib < 1 << 20 && (worked_ns as i64) < world.now_ns, "{peak_kib} KiB, {worked_ns} ns");
}

#[test]
fn logs_come_whole_and_in_order_however_slow_the_disk_is() {
    for seed in 0..6 {
        let mut world = World::new(seed, 4, 0, seed % 2 == 0);
        let fault =
            [Fault::None, Fault::Cut(4 * SECOND), Fault::Frozen(3 * SECOND, 20 * SECOND)][seed as usize % 3];
        world.hosts[1].fault = fault;
        world.hosts.iter_mut().for_each(|host| host.writes_logs = true);
        world.run((seed == 3).then_some(5 * SECOND));
        assert!(world.is_done, "seed {seed}");
        for (number, (remote, host)) in world.controller.remotes().iter().zip(&world.hosts).enumerate() {
            let is_whole = host.come.len() == host.pieces as usize;
            let in_order = (0..host.come.len() as u32).collect::<Vec<u32>>();
            assert_eq!(host.come, in_order, "seed {seed}, host {number}");
            let is_lost = matches!(remote.fate(), Some(Fate::Lost { .. } | Fate::Missing { .. }));
            assert!(is_lost || is_whole, "seed {seed}, host {number}: {:?}", remote.fate());
            assert!(host.waiting_max * PIECE_BYTES <= 1 << 20, "seed {seed}: {}", host.waiting_max);
            // More than may wait at either end: the job has waited for the disk.
            let passed = host.pieces as usize * PIECE_BYTES;
            assert!(is_lost || passed > LOG_BYTES_MAX + (1 << 20), "seed {seed}, host {number}: {passed}");
        }
    }
}

#[test]
fn a_host_that_sends_more_of_its_logs_than_it_may_is_lost() {
    for wrong in [
        LogPiece { log: 0, bytes: vec![0; (1 << 20) + 1], is_last: false },
        LogPiece { log: 1, bytes: vec![0; 4], is_last: false },
    ] {
        let mut world = World::new(1, 2, 0, false);
        while !matches!(world.hosts[0].next, Some((_, Step::Release))) {
            world.pass(&mut VecDeque::new());
        }
        let actions = world.controller.message(0, Message::Piece(wrong), world.now_ns);
        assert!(!actions.iter().any(|action| matches!(action, ControllerAction::Write(..))));
        assert_eq!(world.fates()[0], "lost");
    }
}

#[test]
fn a_missing_host_ends_the_run_before_it_starts_unless_it_is_allowed() {
    for (allow_missing, expected) in [(0, ["missing"; 3]), (1, ["complete", "missing", "complete"])] {
        let mut world = World::new(5, 3, allow_missing, false);
        world.hosts[1].fault = Fault::Unreachable;
        world.run(None);
        assert_eq!(world.fates(), expected);
    }
}

#[test]
fn a_host_that_freezes_before_the_start_does_not_hold_the_others_forever() {
    let mut world = World::new(7, 3, 0, false);
    (world.hosts[1].layout_ns, world.hosts[1].fault) = (2 * SECOND, Fault::Frozen(SECOND, 390 * SECOND));
    world.run(None);
    assert_eq!(world.fates(), ["complete", "lost", "complete"]);
    let started_ns = world.hosts[0].released_ns.unwrap();
    assert!((60..90).contains(&(started_ns / SECOND)), "{started_ns}");
}

#[test]
fn one_after_another_no_two_run_at_once() {
    let mut world = World::new(3, 4, 0, true);
    world.run(None);
    assert_eq!(world.fates(), ["complete"; 4]);
    let mut ends_ns = 0;
    for host in &world.hosts {
        assert!(host.released_ns.unwrap() > ends_ns);
        ends_ns = host.released_ns.unwrap() + host.run_ns;
    }
}
