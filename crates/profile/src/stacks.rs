//! Samples of stacks, from the text of `perf script`: merged for a flame graph, and by layer of the kernel.
//!
//! Invariant: every sample counts once.

use std::collections::BTreeMap;

use crate::split::KernelShares;

/// Samples of the jobs' threads by stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// How often each stack was seen; from the outermost function to the innermost.
    pub counts: BTreeMap<Vec<String>, u64>,
}

/// A layer of the kernel, by what its functions are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// Sleeping and waking.
    Scheduler,
    FileSystem,
    Block,
}

/// Beginnings of the names of functions that belong to a layer, without leading underscores.
const LAYERS: [(Layer, &[&str]); 3] = [
    (Layer::Scheduler, &["schedule", "finish_task_switch", "try_to_wake_up", "io_schedule", "wake_up_"]),
    (
        Layer::Block,
        &[
            "blk_",
            "bio_",
            "submit_bio",
            "virtio_queue",
            "virtblk_",
            "virtqueue_",
            "vp_notify",
            "nvme_",
            "scsi_",
            "sd_",
            "loop_",
            "dm_",
            "md_",
            "raid",
            "dd_",
            "bfq_",
            "kyber_",
            "elv_",
            "sbitmap_",
            "wbt_",
            "rq_qos_",
            "ioc_",
            "null_",
            "mq_",
            "ata_",
            "ahci_",
            "get_request",
            "dma_map",
            "dma_unmap",
            "iommu_",
        ],
    ),
    (
        Layer::FileSystem,
        &[
            "ext4_",
            "xfs_",
            "btrfs_",
            "f2fs_",
            "iomap_",
            "jbd2_",
            "filemap_",
            "generic_",
            "folio_",
            "pagecache_",
            "page_cache_",
            "copy_",
            "rep_movs",
            "fault_in_",
            "balance_dirty_pages",
            "do_writepages",
            "writeback_",
            "wb_",
            "mpage_",
            "block_",
            "mark_buffer",
            "shmem_",
            "xas_",
            "lru_",
            "workingset_",
            "read_pages",
            "force_page_cache",
            "nfs_",
            "fuse_",
            "ovl_",
            "file_",
            "touch_atime",
            "vfs_fsync",
            "do_fsync",
            "sync_",
            "dio_",
            "do_direct_IO",
            "blkdev_",
            "alloc_pages",
            "get_page_from_freelist",
            "mem_cgroup_",
            "buffered_",
            "simple_write",
        ],
    ),
];

/// The layer of a function; `None` if it belongs to none, as what all of them call.
fn layer(function: &str) -> Option<Layer> {
    let name = function.trim_start_matches('_');
    LAYERS
        .iter()
        .find(|(_, names)| names.iter().any(|known| name.starts_with(known)))
        .map(|(layer, _)| *layer)
}

/// The class of a function's colour in pictures, if it belongs to a layer.
pub(crate) fn kind(function: &str) -> Option<&'static str> {
    match layer(function)? {
        Layer::Scheduler => Some("f-wait"),
        Layer::FileSystem => Some("f-file"),
        Layer::Block => Some("f-block"),
    }
}

/// The outermost functions of the kernel's part of a stack.
const ENTRIES: [&str; 5] = ["entry_SYSCALL", "asm_", "ret_from_fork", "el0_", "system_call"];

/// A name for functions without a symbol, which fiord's own are once it is stripped.
const UNKNOWN: &str = "[unknown]";

impl Stacks {
    /// Of the text of `perf script -F comm,tid,time,event,ip,sym`: the samples of these threads, or of all if there are none.
    /// Each begins with a line `NAME TID TIME: EVENT:`, followed by a line for each function, the innermost first.
    pub fn parse(text: &str, threads: &[u32]) -> Stacks {
        let mut stacks = Stacks::default();
        let mut stack: Option<Vec<String>> = None;
        for line in text.lines().chain([""]) {
            if line.trim().is_empty() {
                let ended = stack.take().filter(|stack| !stack.is_empty());
                ended.into_iter().for_each(|stack| stacks.add(stack));
            } else if line.starts_with(char::is_whitespace) {
                if let Some(stack) = &mut stack {
                    stack.insert(0, function(line));
                }
            } else {
                let ended = stack.take().filter(|stack| !stack.is_empty());
                ended.into_iter().for_each(|stack| stacks.add(stack));
                stack =
                    thread(line).filter(|id| threads.is_empty() || threads.contains(id)).map(|_| Vec::new());
            }
        }
        stacks
    }

    fn add(&mut self, stack: Vec<String>) {
        *self.counts.entry(stack).or_default() += 1;
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.counts.values().sum()
    }

    /// With the samples of another run.
    #[must_use]
    pub fn plus(mut self, other: &Stacks) -> Stacks {
        for (stack, count) in &other.counts {
            *self.counts.entry(stack.clone()).or_default() += count;
        }
        self
    }

    /// How the time in the kernel is divided; `None` if too few samples are of it to say.
    pub fn kernel_shares(&self) -> Option<KernelShares> {
        const SAMPLES_MIN: u64 = 20;
        let (mut all, mut file_system, mut block_code) = (0, 0, 0);
        for (stack, count) in &self.counts {
            if !stack.first().is_some_and(|outermost| is_kernel(outermost)) {
                continue;
            }
            all += count;
            match stack.iter().rev().find_map(|function| layer(function)) {
                Some(Layer::FileSystem) => file_system += count,
                Some(Layer::Block) => block_code += count,
                Some(Layer::Scheduler) | None => {}
            }
        }
        let share = |count: u64| count as f64 / all as f64;
        (all >= SAMPLES_MIN).then(|| KernelShares {
            system_call: share(all - file_system - block_code),
            file_system: share(file_system),
            block_code: share(block_code),
        })
    }
}

/// Whether a stack that begins with this function is the kernel's.
fn is_kernel(outermost: &str) -> bool {
    ENTRIES.iter().any(|entry| outermost.starts_with(entry))
}

/// The name in `ffffffff816b9096 ksys_write`, without the offset.
fn function(line: &str) -> String {
    let name = line.trim_start().split_once(' ').map_or("", |(_, name)| name.trim());
    let name = name.rsplit_once("+0x").map_or(name, |(name, _)| name);
    if name.is_empty() { UNKNOWN.to_string() } else { name.to_string() }
}

/// The thread in `fiord 28724 15131.638530: cpu-clock:`; the name may contain blanks.
fn thread(line: &str) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let time = words.iter().position(|word| word.ends_with(':') && word.contains('.'))?;
    words.get(time.checked_sub(1)?)?.rsplit('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
fiord 28724 15131.638530: cpu-clock: 
\tffffffff817b6ff4 ext4_fill_raw_inode
\tffffffff816b8caf vfs_write
\tffffffff821ecc51 do_syscall_64
\tffffffff81000130 entry_SYSCALL_64_after_hwframe

job 1 of 2 28725 15131.647338:          1 cpu-clock: 
\tffffffff81b94ccc iowrite16+0x4
\tffffffff81d743df virtio_queue_rq
\tffffffff817666be iomap_dio_rw
\tffffffff81000130 entry_SYSCALL_64_after_hwframe

other 9 15131.7: cpu-clock: 
\t55d3 main
fiord 28724 15131.8: cpu-clock: 
\t          55d35 fiord_worker::hot::sync::run
";

    #[test]
    fn stacks_are_from_the_outside_in_and_of_the_threads_asked_for() {
        let stacks = Stacks::parse(SCRIPT, &[28724, 28725]);
        let shown: Vec<String> =
            stacks.counts.iter().map(|(stack, count)| format!("{} {count}", stack.join(";"))).collect();
        assert_eq!(
            shown,
            [
                "entry_SYSCALL_64_after_hwframe;do_syscall_64;vfs_write;ext4_fill_raw_inode 1",
                "entry_SYSCALL_64_after_hwframe;iomap_dio_rw;virtio_queue_rq;iowrite16 1",
                "fiord_worker::hot::sync::run 1",
            ]
        );
        assert_eq!(Stacks::parse(SCRIPT, &[]).samples(), 4);
        assert_eq!(stacks.clone().plus(&stacks).samples(), 6);
        assert_eq!(stacks.kernel_shares(), None, "too few");
    }

    #[test]
    fn the_innermost_function_of_a_layer_decides() {
        let mut stacks = Stacks::default();
        let mut add = |stack: &str, count| {
            stacks.counts.insert(stack.split(';').map(str::to_string).collect(), count);
        };
        add("entry_SYSCALL_64;vfs_write;ext4_file_write_iter;iomap_dio_rw;submit_bio;blk_mq_x;memset", 30);
        add("entry_SYSCALL_64;vfs_write;ext4_file_write_iter;generic_perform_write;memcpy", 50);
        add("entry_SYSCALL_64;vfs_write;ext4_file_write_iter;io_schedule;__schedule", 10);
        add("entry_SYSCALL_64;fdget", 10);
        add("fiord_worker::run", 900);
        let shares = stacks.kernel_shares().unwrap();
        assert_eq!(shares, KernelShares { system_call: 0.2, file_system: 0.5, block_code: 0.3 });
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_a_panic_and_no_sample_is_lost(lines in proptest::collection::vec("[ \t]?[a-z0-9 .:]{0,20}", 0..30)) {
            let stacks = Stacks::parse(&lines.join("\n"), &[]);
            proptest::prop_assert!(stacks.samples() <= lines.len() as u64);
            stacks.kernel_shares();
        }
    }
}
