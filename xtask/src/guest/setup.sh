# The guest's devices, as `cargo x guest --help` lists them. Sourced by the script that runs in the guest.
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
modprobe configfs
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
# NVMe disks are found in any order, some time after their driver is loaded.
for wanted in $NVME_DISKS; do
    tries=300
    until [ -e /dev/nvme-$wanted ] || [ $tries = 0 ]; do
        for disk in /sys/block/nvme*; do
            read -r serial <$disk/device/serial && ln -sf ${disk##*/} /dev/nvme-$serial
        done
        [ -e /dev/nvme-$wanted ] || sleep 0.1
        tries=$((tries - 1))
    done
done
