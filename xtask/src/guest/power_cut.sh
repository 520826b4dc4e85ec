# Writes to both disks, with syncs, until the power is cut: when both have confirmed 20 syncs.
for disk in honest lying; do
    {
        "$FIORD" crash-test run /dev/nvme-$disk --overwrite --size 2M --per-sync 8 \
            --journal $FIORD_SHARED/$disk.journal
        touch $FIORD_SHARED/ended
    } &
done
until grep -qsx 'synced 20' $FIORD_SHARED/honest.journal && grep -qsx 'synced 20' $FIORD_SHARED/lying.journal; do
    [ ! -e $FIORD_SHARED/ended ] || exit 1
    sleep 0.1
done
touch $FIORD_SHARED/cut
wait
