#!/bin/busybox sh
# The only program of the machine: fiord on the disk that was written outside, and in memory. What comes back is on the other disk.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
cd /tmp
checked() {
    "$@" >>printed
    echo "$*" >>checks
}
job() {
    checked fiord "$@" --bs=4k --size=1m --verify=crc32c --eta=never
}
smoke() {
    fiord --cpuclock-test | tee clock
    grep 'cs: Pass!' clock
    # An emulator of programs refuses the instructions.
    checked tests persistent::tests::all_bytes
    job --name=read --filename=/dev/nvme0n1 --ioengine=psync --rw=randread
    for engine in io_uring libaio psync mmap; do
        job --name=$engine --filename=/dev/nvme0n1 --ioengine=$engine --offset=2m --rw=randwrite
        job --name=$engine --filename=f --ioengine=$engine --rw=randwrite
    done
    job --name=queued --filename=/dev/nvme0n1 --ioengine=io_uring --direct=1 --iodepth=4 --offset=1m --rw=randwrite \
        --do_verify=0 --output-format=json --output=report.json
    fiord quick --time=1s --size=8m --undecided=pass --json . >quick.json
}
(set -e; smoke)
status=$?
[ $status = 0 ] || tail -n 20 printed
echo $status >status
tar cf /dev/nvme1n1 status checks *.json
sync
poweroff -f
