//! How fio parses values, according to `fio --debug=parse --parse-only`, and round trips.
//!
//! Invariant: the numbers here are from fio's own output, not computed.

use fiord_errno::Errno;

use proptest::prelude::*;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::*;
use crate::table::{Lookup, find_job_option};

/// Parses under the default rules; the error as text.
fn parsed<T: Value>(text: &str) -> Result<T, String> {
    T::parse(text, &mut Reading::default())
}

/// The warnings about an accepted value.
fn notes<T: Value>(text: &str) -> Vec<String> {
    let mut reading = Reading::default();
    T::parse(text, &mut reading).expect("accepted");
    reading.notes.into_iter().map(|note| note.sentence).collect()
}

fn bytes(text: &str) -> u64 {
    parsed::<Bytes>(text).expect(text).0
}

#[test]
fn sizes_are_read_as_fio_reads_them() {
    let cases: [(&str, u64); 28] = [
        ("4", 4),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4KB", 4096),
        ("4ki", 4096),
        ("4KiB", 4000),
        ("4mib", 4_000_000),
        ("4m", 4 << 20),
        ("4g", 4 << 30),
        ("4t", 4 << 40),
        ("4p", 4 << 50),
        ("4e", 4),
        ("4b", 4),
        ("4ms", 4 << 20),
        ("1.5k", 1),
        ("4 k", 4),
        (" 4", 4),
        ("4 ", 4),
        ("4kx", 4096),
        ("4kk", 4096),
        ("4byte", 4),
        ("4kbyte", 4096),
        ("0x10", 16),
        ("0x10k", 16 * 1024),
        ("0X1F", 31),
        ("0xfg", 15 << 30),
        ("010", 10),
    ];
    for (text, expected) in cases {
        assert_eq!(bytes(text), expected, "{text:?}");
    }
}

#[test]
fn surprising_sizes_cause_warnings() {
    for text in ["4KiB", "1.5k", "4 k", "4kx", "4e", "4k,8k"] {
        assert_eq!(notes::<Bytes>(text).len(), 1, "{text:?}");
    }
    for text in ["4", "4k", "4kb", "4B", "0x10", " 4 ", "(4 * 1k)"] {
        assert_eq!(notes::<Bytes>(text), Vec::<String>::new(), "{text:?}");
    }
}

#[test]
fn a_unit_of_1024_that_is_decimal_is_told_from_other_surprises() {
    let is_decimal = |text: &str| {
        let mut reading = Reading::default();
        Bytes::parse(text, &mut reading).expect(text);
        reading.notes.iter().map(|note| note.is_decimal_unit).collect::<Vec<_>>()
    };
    assert_eq!((is_decimal("4KiB"), is_decimal("1GiB")), (vec![true], vec![true]));
    assert_eq!((is_decimal("4kx"), is_decimal("4KB")), (vec![false], vec![]));
}

#[test]
fn kb_base_swaps_the_suffixes() {
    let mut reading = Reading { kb_base: KbBase::Decimal, ..Reading::default() };
    let mut read = |text: &str| Bytes::parse(text, &mut reading).expect(text).0;
    assert_eq!([read("4k"), read("4kb"), read("4ki"), read("4kib")], [4000, 4000, 4000, 4096]);
    assert_eq!(reading.notes, []);
}

#[test]
fn sizes_that_are_none_are_refused() {
    for text in
        ["", "abc", "k", "-1", "4%", "4z", "99999999999999999999", ",4k", "(4", "(4/0)", "()", "(9^999)"]
    {
        assert!(parsed::<Bytes>(text).is_err(), "{text:?}");
    }
}

#[test]
fn expressions_are_evaluated() {
    let cases: [(&str, u64); 10] = [
        ("(4*1024)", 4096),
        ("(4 * 1k + 1)", 4097),
        ("(2^10)", 1024),
        ("(2 ^ 3 ^ 2)", 512),
        ("(7 / 2)", 3),
        ("(7 % 4)", 3),
        ("(10 - 2 - 3)", 5),
        ("(-(2 - 5))", 3),
        ("(0x10 * 2)", 32),
        ("(1.5 * 1m)", 1_572_864),
    ];
    for (text, expected) in cases {
        assert_eq!(bytes(text), expected, "{text:?}");
    }
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(parsed::<Bytes>(&deep).is_err());
}

#[test]
fn ranges_of_numbers_are_enforced() {
    let mut reading = Reading { range: Some(0..=100), ..Reading::default() };
    assert_eq!(u32::parse("100", &mut reading), Ok(100));
    assert_eq!(u32::parse("101", &mut reading), Err("101 is above 100".to_string()));
    let mut reading = Reading { range: Some(-20..=19), ..Reading::default() };
    assert_eq!(i32::parse("-20", &mut reading), Ok(-20));
    assert_eq!(i32::parse("-21", &mut reading), Err("-21 is below -20".to_string()));
    assert_eq!(parsed::<u32>("4294967296"), Err("4294967296 is above 4294967295".to_string()));
    assert_eq!(parsed::<u32>("-1"), Err("-1 is negative".to_string()));
    assert_eq!(parsed::<u32>("7,8"), Ok(7));
}

#[test]
fn booleans_and_flags() {
    for (text, expected) in
        [("0", false), ("1", true), ("01", true), ("0x1", true), ("1x", true), ("1k", true)]
    {
        assert_eq!(parsed::<bool>(text), Ok(expected), "{text:?}");
    }
    for text in ["2", "-1", "true", "yes", "x", ""] {
        assert!(parsed::<bool>(text).is_err(), "{text:?}");
    }
    for (text, expected) in [("0", false), ("1", true), ("2", true), ("8", true)] {
        assert_eq!(parsed::<Flag>(text), Ok(Flag(expected)), "{text:?}");
    }
    assert!(parsed::<Flag>("true").is_err());
    assert_eq!(Flag::bare(), Some(Flag(true)));
}

#[test]
fn times_are_read_as_fio_reads_them() {
    let cases: [(&str, u64); 46] = [
        ("10", 10_000_000),
        ("10s", 10_000_000),
        ("10S", 10_000_000),
        ("10 s", 10_000_000),
        // Anything but a letter after the number leaves the option's own unit, whatever follows.
        ("30*1", 30_000_000),
        ("2*m", 2_000_000),
        ("90 ms", 90_000_000),
        ("9.5m", 9_000_000),
        ("9/m", 9_000_000),
        ("9_m", 9_000_000),
        ("9%", 9_000_000),
        ("9=m", 9_000_000),
        ("9;m", 9_000_000),
        ("9*60s", 9_000_000),
        (" 9m", 9_000_000),
        ("9:m", 9_000_000),
        ("9,m", 9_000_000),
        ("2:3m", 2_000_000),
        // The unit stands behind all digits and signs.
        ("9+m", 540_000_000),
        ("9-m", 540_000_000),
        ("2-3m", 120_000_000),
        ("+9m", 540_000_000),
        ("9m,", 540_000_000),
        // Letters that are not a unit are microseconds, but for those that begin with "ms".
        ("9mx", 9),
        ("9e", 9),
        ("9d1h", 9),
        ("9m:", 9),
        ("2m-3m", 2),
        ("0x10", 16),
        ("0x10s", 16),
        ("9msx", 9_000),
        ("9MSECS", 9_000),
        ("1-2", 1_000_000),
        ("10m", 600_000_000),
        ("10M", 600_000_000),
        ("10h", 36_000_000_000),
        ("1d", 86_400_000_000),
        ("500ms", 500_000),
        ("500msec", 500_000),
        ("500us", 500),
        ("500usec", 500),
        ("1.5", 1_000_000),
        ("10min", 10),
        ("1m30s", 1),
        ("10x", 10),
        ("(10 * 1s)", 10_000_000),
    ];
    for (text, expected) in cases {
        assert_eq!(parsed::<Seconds>(text), Ok(Seconds { us: expected }), "{text:?}");
    }
    // fio 3.33 reads "10sec" as 10 us; its manual gives "sec" as a spelling of "s".
    assert_eq!(parsed::<Seconds>("10sec"), Ok(Seconds { us: 10_000_000 }));
    assert_eq!(parsed::<Micros>("10"), Ok(Micros { us: 10 }));
    assert_eq!(parsed::<Micros>("10k"), Ok(Micros { us: 10 }));
    assert_eq!(parsed::<Micros>("10ms"), Ok(Micros { us: 10_000 }));
    assert_eq!(notes::<Seconds>("10min").len(), 1);
    assert!(parsed::<Seconds>("-1").is_err());
    assert!(parsed::<Seconds>("soon").is_err());
}

#[test]
fn start_delays_may_be_ranges() {
    let delay = |low_us, high_us| Ok(StartDelay { low_us, high_us });
    assert_eq!(parsed("5"), delay(5_000_000, 5_000_000));
    assert_eq!(parsed("5-10"), delay(5_000_000, 10_000_000));
    // The first unit is "s:500ms" to fio.
    assert_eq!(parsed("10s:500ms"), delay(10, 500_000));
    assert_eq!(parsed("10s,500ms"), delay(500_000, 10_000_000));
    assert_eq!(parsed("1-2-3"), delay(1_000_000, 3_000_000));
    assert_eq!(parsed("1-3-2"), delay(1_000_000, 2_000_000));
    assert_eq!(parsed("5-10m"), delay(300_000_000, 600_000_000));
    assert_eq!(parsed("5m-10"), delay(5, 10_000_000));
    assert_eq!(parsed("1-2,3"), delay(1_000_000, 3_000_000));
    assert_eq!(parsed(",2"), delay(2_000_000, 2_000_000));
    assert!(parsed::<StartDelay>(",").is_err());
    // One unit for both, or the first would have another one when it is read again.
    round_trip(StartDelay { low_us: 1_000_000, high_us: 5_000_000 });
    round_trip(StartDelay { low_us: 0, high_us: 5_500_000 });
}

#[test]
fn a_value_without_a_comma_counts_for_the_directions_after_it() {
    let read = |before: &str, text: &str| {
        let before = parsed::<PerDirection<Bytes>>(before).expect(before);
        let after = PerDirection::parse_onto(Some(&before), text, &mut Reading::default()).expect(text);
        [after.read, after.write, after.trim].map(|bytes| bytes.map_or(0, |bytes| bytes.0))
    };
    // As fio prints them: bs=(R), (W), (T).
    assert_eq!(read("4096", "2k"), [2048, 2048, 2048]);
    assert_eq!(read("4096", "2k,"), [2048, 4096, 4096]);
    assert_eq!(read("4096", "4k,8k"), [4096, 8192, 8192]);
    assert_eq!(read("4096", ",8k"), [4096, 8192, 8192]);
    assert_eq!(read("4096", ",2k,"), [4096, 2048, 4096]);
    assert_eq!(read("4096", ",,8k"), [4096, 4096, 8192]);
    assert_eq!(read("4096", "2k,,8k"), [2048, 4096, 8192]);
    assert_eq!(read("4k,8k", ",16k"), [4096, 16384, 16384]);
    assert_eq!(read("4096", "4k:8k"), [4096, 8192, 8192]);
    assert_eq!(read("4096", "4k-8k"), [4096, 8192, 8192]);
    assert_eq!(read("4096", "2k,4k,8k,16k"), [2048, 4096, 8192]);
    for nothing in [",,", ",,,4k"] {
        assert!(parsed::<PerDirection<Bytes>>(nothing).is_err(), "{nothing}");
    }
}

#[test]
fn amounts_may_be_percentages_and_zones() {
    assert_eq!(parsed("1g"), Ok(Size::Bytes(1 << 30)));
    assert_eq!(parsed("50%"), Ok(Size::Percent(50)));
    assert_eq!(parsed("100%%"), Ok(Size::Percent(100)));
    assert_eq!(parsed("810z"), Ok(Size::Zones(810)));
    assert_eq!(parsed("7Z"), Ok(Size::Bytes(7)));
    // Of a list the last one counts.
    for list in ["1m,64k", "1m:64k", "1m-64k", ",64k", ",,64k", "64k,"] {
        assert_eq!(parsed(list), Ok(Size::Bytes(65_536)), "{list}");
    }
    for text in ["101%", "-5", "1gz", "x", ","] {
        assert!(parsed::<Size>(text).is_err() || text == "1gz", "{text:?}");
    }
}

// divergence: `filesize=64k-1k-2k`
#[test]
fn ranges_are_put_in_order() {
    let sizes = |low_bytes, high_bytes| Ok(SizeRange { low_bytes, high_bytes });
    assert_eq!(parsed("1k-1m"), sizes(1024, 1 << 20));
    assert_eq!(parsed("1m:1k"), sizes(1024, 1 << 20));
    assert_eq!(parsed("1k"), sizes(1024, 1024));
    assert_eq!(parsed("1k-"), sizes(1024, 1024));
    // The first and the last of several.
    assert_eq!(parsed("1k-2k-64k"), sizes(1024, 65_536));
    assert_eq!(parsed("1k-64k-2k"), sizes(1024, 2048));
    assert_eq!(parsed("64k-1k-2k"), sizes(2048, 65_536));
    assert_eq!(parsed("16-8k/8M-512M"), sizes(16, 512 << 20));
    assert_eq!(parsed("1k-2k,32k-64k"), sizes(1024, 65_536));
    let blocks = |low_bytes, high_bytes| Ok(BlockRange { low_bytes, high_bytes });
    assert_eq!(parsed("8k-4k"), blocks(4096, 8192));
    assert_eq!(parsed("512-2048"), blocks(512, 2048));
    assert_eq!(parsed("1k-2k-4k"), blocks(1024, 2048));
    assert!(parsed::<BlockRange>("4k").is_err());
    assert!(parsed::<BlockRange>("4k-").is_err());
}

#[test]
fn splits_share_what_is_left() {
    let split = |text: &str| {
        let entries = parsed::<BlockSplit>(text).expect(text).entries;
        entries.iter().map(|entry| (entry.bytes, entry.percent)).collect::<Vec<_>>()
    };
    assert_eq!(split("4k/50:8k/50"), [(4096, Some(50)), (8192, Some(50))]);
    assert_eq!(split("4k/50:8k/30:64k/"), [(4096, Some(50)), (8192, Some(30)), (65536, None)]);
    assert_eq!(split("4k"), [(4096, None)]);
    assert_eq!(split("4k/0:8k/100"), [(4096, None), (8192, Some(100))]);
    for text in ["4k/60:8k/60", "x/50", "4k/101", ":", "0/50", "4k/x"] {
        assert!(parsed::<BlockSplit>(text).is_err(), "{text:?}");
    }
}

#[test]
fn modes_take_a_number() {
    let mode = |kind, ios_per_offset, skip_bytes| Ok(RwMode { kind, ios_per_offset, skip_bytes });
    assert_eq!(parsed("randread"), mode(RwKind::RandRead, 1, 0));
    assert_eq!(parsed("randread:8"), mode(RwKind::RandRead, 8, 0));
    assert_eq!(parsed("write:4k"), mode(RwKind::Write, 1, 4096));
    assert_eq!(parsed("read:-4k"), mode(RwKind::Read, 1, -4096));
    assert_eq!(parsed("readwrite"), mode(RwKind::ReadWrite, 1, 0));
    assert_eq!(parsed("read:x"), mode(RwKind::Read, 1, 0));
    let mut reading = Reading::default();
    RwMode::parse("randraed", &mut reading).expect_err("a typo");
    assert_eq!(reading.suggestion, Some("randread"));
    assert!(parsed::<RwMode>("READ").is_err());
}

#[test]
fn words_end_at_a_separator() {
    assert_eq!(parsed("1"), Ok(SyncMode::Sync));
    assert_eq!(parsed("0"), Ok(Fallocate::None));
    assert_eq!(parsed("2"), Ok(UnifiedRwReporting::Both));
    assert_eq!(parsed("md5:1"), Ok(Verify::Md5));
    assert!(parsed::<SyncMode>("1x").is_err());
    assert!(parsed::<Fallocate>("nonex").is_err());
    assert!(parsed::<ExitWhat>("0").is_err());
}

#[test]
fn file_services_check_their_parameters() {
    assert_eq!(parsed("roundrobin:4"), Ok(FileService::RoundRobin { ios: 4 }));
    assert_eq!(parsed("sequential"), Ok(FileService::Sequential { ios: None }));
    assert_eq!(parsed("zipf:1.2"), Ok(FileService::Skewed(Skew::Zipf { theta: 1.2, center: None })));
    assert_eq!(
        parsed("pareto:0.20:0"),
        Ok(FileService::Skewed(Skew::Pareto { power: 0.2, center: Some(0.0) }))
    );
    assert_eq!(
        parsed("gauss:5"),
        Ok(FileService::Skewed(Skew::Normal { deviation_percent: 5.0, center: None }))
    );
    let wrong = [
        "zipf:",
        "zipf:x",
        "zipf:1",
        "zipf:inf",
        "zipf:1.1:8",
        "pareto:1",
        "pareto:0",
        "gauss:-1",
        "gauss:101",
        "x",
    ];
    for text in wrong {
        assert!(parsed::<FileService>(text).is_err(), "{text:?}");
    }
}

#[test]
fn lists_of_fractions() {
    assert_eq!(parsed("99:99.9:99.99"), Ok(FloatList(vec![99.0, 99.9, 99.99])));
    assert_eq!(parsed("50:a"), Ok(FloatList(vec![50.0])));
    assert_eq!(parsed("50x"), Ok(FloatList(vec![50.0])));
    let long: Vec<String> = (1..=21).map(|number| number.to_string()).collect();
    assert_eq!(parsed::<FloatList>(&long.join(":")).expect("shortened").0.len(), 20);
    let mut reading = Reading { range: Some(0..=100), ..Reading::default() };
    assert!(FloatList::parse("101", &mut reading).is_err());
    assert!(parsed::<FloatList>("a").is_err());
    let too_large = "4".repeat(400);
    assert!(parsed::<FloatList>(&too_large).is_err());
    assert_eq!(parsed(&format!("1:{too_large}")), Ok(FloatList(vec![1.0])));
}

#[test]
fn lists_of_numbers_keep_their_order() {
    assert_eq!(parsed("3:0:3"), Ok(ColonList(vec![3, 0, 3])));
    assert_eq!(ColonList(vec![3, 0, 3]).print(), "3:0:3");
    for wrong in ["", "0:", "0:x", "0,1", "0-1", "-1", "65536"] {
        assert!(parsed::<ColonList>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn cpus_and_nodes() {
    assert_eq!(parsed("0,5,8-10"), Ok(NumberSet(vec![0, 5, 8, 9, 10])));
    assert_eq!(parsed("3-1"), Ok(NumberSet(vec![1, 2, 3])));
    assert_eq!(NumberSet(vec![0, 1, 2, 5]).print(), "0-2,5");
    assert_eq!(parsed("all"), Ok(NumaNodes::All));
    assert_eq!(parsed("bind:0-1"), Ok(NumaPolicy::Bind(NumaNodes::List(NumberSet(vec![0, 1])))));
    assert_eq!(parsed("prefer:1"), Ok(NumaPolicy::Prefer(1)));
    for text in ["", "x", "0-", "-1", "0-4000000000"] {
        assert!(parsed::<NumberSet>(text).is_err(), "{text:?}");
    }
    let why = |text: &str| parsed::<NumberSet>(text).unwrap_err().to_string();
    assert!(why("4000000000").contains("is not between 0 and"), "{}", why("4000000000"));
    assert!(why("4000000000x").contains("is not a number"), "{}", why("4000000000x"));
    assert!(parsed::<NumaPolicy>("bind").is_err());
}

#[test]
fn patterns_become_the_bytes_fio_writes() {
    let filled = |text: &str| match parsed::<BufferPattern>(text).expect(text).0.as_slice() {
        [PatternPart::Bytes(bytes)] => bytes.clone(),
        other => panic!("{text:?} is {other:?}"),
    };
    assert_eq!(filled("0xdeadbeef"), [0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(filled("0xabcde"), [0x0a, 0xbc, 0xde]);
    assert_eq!(filled("\"ab\"0x12"), [b'a', b'b', 0x12]);
    assert_eq!(filled("\"a\\x41\""), *b"a\\x41");
    assert_eq!(filled("12"), [12]);
    assert_eq!(filled("0"), [0]);
    assert_eq!(filled("256"), [0, 1]);
    assert_eq!(filled("65536"), [0, 0, 1]);
    assert_eq!(filled("-12"), [0xf4, 0xff, 0xff, 0xff]);
    assert_eq!(filled("1 2"), [1, 2]);
    assert_eq!(filled("\"abcd\"-120xdeadface"), *b"abcd\xf4\xff\xff\xff\xde\xad\xfa\xce");
    assert_eq!(filled("120x4"), [12, 4]);
    assert_eq!(filled("00x41"), [0, 0x41]);
    assert_eq!(filled("0x410x42"), [0x41, 0x42]);
    let parts = parsed::<BufferPattern>("0xff'data'\"a\"").expect("mixed").0;
    assert_eq!(parts[1], PatternPart::File("data".into()));
    for text in
        ["0x", "\"abcd", "abcd", "%o", "''", "\"\"", "1.5", "4294967296", "-0xff", "-120x", "", "%x", "'a"]
    {
        assert!(parsed::<BufferPattern>(text).is_err(), "{text:?}");
    }
    assert_eq!(parsed("%o"), Ok(VerifyPattern(vec![PatternPart::Offset])));
}

#[test]
fn memory_and_ranges_to_sync() {
    let memory = |kind, file: Option<&str>| Ok(Memory { kind, file: file.map(PathBuf::from) });
    assert_eq!(parsed("mmaphuge:/mnt/x"), memory(MemoryKind::MmapHuge, Some("/mnt/x")));
    assert_eq!(parsed("shm"), memory(MemoryKind::Shm, None));
    assert!(parsed::<Memory>("mallocx").is_err());
    let sync = SyncFileRange { wait_before: true, write: true, wait_after: false, every_writes: 8 };
    assert_eq!(parsed("wait_before,write:8"), Ok(sync));
    assert!(parsed::<SyncFileRange>("x:4").is_err());
}

#[test]
fn errors_by_name_and_number() {
    let errors = parsed::<IgnoreErrors>("EAGAIN,ENOSPC:122").expect("a list");
    assert_eq!(errors.read, [Errno::EAGAIN]);
    assert_eq!(errors.write, [Errno::ENOSPC, Errno::EDQUOT]);
    assert_eq!(errors.verify, []);
    assert_eq!(errors.print(), "EAGAIN,ENOSPC:EDQUOT");
    assert!(parsed::<IgnoreErrors>("EXYZ").is_err());
}

#[test]
fn engines_and_formats() {
    assert_eq!(parsed("linuxaio"), Ok(EngineName::Libaio));
    assert_eq!(parsed("external:/x"), Ok(EngineName::External));
    assert!(parsed::<EngineName>("psyncx").is_err());
    assert_eq!(parsed("json,normal"), Ok(OutputFormats(vec![OutputFormat::Json, OutputFormat::Normal])));
    assert!(parsed::<OutputFormats>("json,foo").is_err());
}

/// Asserts `parse(print(value)) == value`.
fn round_trip<T: Value>(value: T) {
    let text = value.print();
    let read = match text.is_empty() {
        true => T::unset().ok_or_else(|| "no value".to_string()),
        false => parsed::<T>(&text),
    };
    assert_eq!(read, Ok(value), "printed as {text:?}");
}

fn block_split() -> impl Strategy<Value = BlockSplit> {
    let entry = (1..u64::MAX, proptest::option::of(1_u8..=25));
    proptest::collection::vec(entry, 1..=4).prop_map(|entries| BlockSplit {
        entries: entries.into_iter().map(|(bytes, percent)| SplitEntry { bytes, percent }).collect(),
    })
}

fn pattern() -> impl Strategy<Value = Vec<PatternPart>> {
    let file = "[a-z/. ]{1,8}".prop_map(|name| PatternPart::File(name.into()));
    let bytes = proptest::collection::vec(any::<u8>(), 1..9).prop_map(PatternPart::Bytes);
    // Bytes do not follow bytes: they would be one part.
    proptest::collection::vec((bytes, file), 1..4)
        .prop_map(|pairs| pairs.into_iter().flat_map(|(bytes, file)| [bytes, file]).collect())
}

#[test]
fn kinds_of_memory_round_trip() {
    for Choice { word, .. } in Memory::CHOICES {
        let memory: Memory = parsed(word).unwrap();
        assert_eq!(memory.print(), *word);
    }
    round_trip(parsed::<Memory>("mmap:/dev/shm/a:b").unwrap());
}

proptest! {
    #[test]
    fn numbers_round_trip(bytes: u64, small: u32, signed: i32, flag: bool) {
        round_trip(Bytes(bytes));
        round_trip(bytes);
        round_trip(small);
        round_trip(signed);
        round_trip(flag);
        round_trip(Flag(flag));
        round_trip(Switch(flag));
    }

    #[test]
    fn times_round_trip(us in 0..u64::MAX / 2, more in 0..u64::MAX / 2, seconds in 0..1_000_000_u64) {
        round_trip(Micros { us });
        round_trip(Seconds { us: seconds * 1_000_000 });
        round_trip(StartDelay { low_us: us, high_us: us + more });
    }

    #[test]
    fn sizes_round_trip(bytes: u64, more: u64, percent in 0_u8..=100) {
        let (low_bytes, high_bytes) = (bytes.min(more), bytes.max(more));
        round_trip(Size::Bytes(bytes));
        round_trip(Size::Percent(percent));
        round_trip(Size::Zones(more));
        round_trip(SizeRange { low_bytes, high_bytes });
        round_trip(BlockRange { low_bytes, high_bytes });
    }

    #[test]
    fn directions_round_trip(read: Option<u64>, write: Option<u64>, trim: Option<u64>) {
        let each = [read, write, trim].map(|bytes| bytes.map(Bytes));
        let [read, write, trim] = each;
        round_trip(PerDirection { read, write, trim });
    }

    #[test]
    fn splits_round_trip(read in block_split(), write in block_split()) {
        round_trip(read.clone());
        round_trip(PerDirection { read: Some(read), write: Some(write), trim: None });
    }

    #[test]
    fn patterns_round_trip(parts in pattern()) {
        round_trip(BufferPattern(parts.clone()));
        round_trip(VerifyPattern(parts));
    }

    #[test]
    fn sets_round_trip(mut cpus in proptest::collection::vec(0_u32..65_536, 1..40)) {
        cpus.sort_unstable();
        cpus.dedup();
        round_trip(NumberSet(cpus.clone()));
        round_trip(NumaPolicy::Interleave(NumaNodes::List(NumberSet(cpus))));
    }

    #[test]
    fn fractions_round_trip(numbers in proptest::collection::vec(0.0..100.0_f64, 1..=20), theta in 1.01..5.0_f64) {
        round_trip(FloatList(numbers));
        round_trip(FileService::Skewed(Skew::Zipf { theta, center: Some(theta / 5.0) }));
    }

    #[test]
    fn modes_round_trip(ios_per_offset in 1_u32.., skip_bytes: i64, every_writes: u32) {
        round_trip(RwMode { kind: RwKind::RandWrite, ios_per_offset, skip_bytes: 0 });
        round_trip(RwMode { kind: RwKind::Write, ios_per_offset: 1, skip_bytes });
        round_trip(SyncFileRange { wait_before: true, write: false, wait_after: true, every_writes });
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,24}|[-0-9a-fkmgtpxz%.,:/()+*^ ]{0,24}") {
        for spec in crate::table::job_specs().chain(crate::table::engine_specs()) {
            let _ = spec.check(Some(OsStr::new(&text)));
        }
    }

    /// A path or free text is taken whatever its bytes; everything else says that it is not UTF-8.
    #[test]
    fn bytes_are_for_paths_and_free_text(mut bytes in proptest::collection::vec(any::<u8>(), 0..8)) {
        bytes.push(0xff);
        let value = OsString::from_vec(bytes);
        let mut reading = Reading::default();
        prop_assert_eq!(Text::parse_bytes(&value, &mut reading), Ok(Text(value.clone())));
        let optional = OptionalText::parse_bytes(&value, &mut reading);
        prop_assert_eq!(optional, Ok(OptionalText(Some(value.clone()))));
        for (name, takes) in [("filename", true), ("bs", false), ("rw", false), ("ioengine", false)] {
            let Lookup::Found(spec) = find_job_option(name, false, &[]) else { panic!("{name}") };
            let checked = spec.check(Some(&value));
            prop_assert_eq!(checked.is_ok(), takes, "{}: {:?}", name, checked);
        }
        let file = PathBuf::from(&value);
        let mapped = [b"mmap:", value.as_bytes()].concat();
        let memory = Memory::parse_bytes(OsStr::from_bytes(&mapped), &mut reading);
        prop_assert_eq!(memory, Ok(Memory { kind: MemoryKind::Mmap, file: Some(file) }));
    }
}
