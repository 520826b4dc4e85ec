# The guest's devices, as `cargo x guest --help` lists them. Sourced by the script that runs in the guest.
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
modprobe configfs
# The guest's udev may have loaded the driver without the parameter.
[ ! -e /sys/module/nvme ] || modprobe -r nvme
modprobe nvme poll_queues=1
modprobe null_blk nr_devices=0
modprobe -a sd_mod sg dm-mod
mount -t configfs none /sys/kernel/config
modprobe scsi_debug dev_size_mb=64 lbpu=1 lbpws=1 delay=0
disk=/sys/kernel/config/nullb/nullb0
mkdir $disk
echo 64 >$disk/size
echo 1 >$disk/memory_backed
echo 1 >$disk/zoned
echo 4 >$disk/zone_size
echo 2 >$disk/zone_nr_conv
echo 1 >$disk/power
# Persistent memory: /dev/pmem0 for a file system mounted with dax, and /dev/dax1.0, which is mapped.
modprobe -a nfit nd_pmem device_dax dax_pmem
nd=/sys/bus/nd
memory() {
    seed=$(cat $nd/devices/region$1/$2_seed)
    echo namespace$1.0 >$nd/drivers/nd_pmem/unbind
    cat /proc/sys/kernel/random/uuid >$nd/devices/$seed/uuid
    echo ram >$nd/devices/$seed/mode
    echo 2097152 >$nd/devices/$seed/align
    echo namespace$1.0 >$nd/devices/$seed/namespace
    echo $seed >$nd/drivers/$3/bind
}
memory 0 pfn nd_pmem
memory 1 dax dax_pmem
# NVMe disks are found in any order, some time after their driver is loaded.
for wanted in $NVME_DISKS; do
    tries=300
    until [ -e /dev/nvme-$wanted ] || [ $tries = 0 ]; do
        for disk in /sys/block/nvme*; do
            # The kernel hides each path to a disk that could have several.
            [ "$(cat $disk/hidden)" = 0 ] || continue
            read -r serial <$disk/device/serial && ln -sf ${disk##*/} /dev/nvme-$serial
        done
        [ -e /dev/nvme-$wanted ] || sleep 0.1
        tries=$((tries - 1))
    done
done
