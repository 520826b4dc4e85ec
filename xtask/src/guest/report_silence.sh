# Waits until nothing was printed for $SILENCE_S seconds, and then says in the file `tasks` what each task waits for. The file
# `answered` shows that this is complete; without it the guest itself has stopped.
report_silence() {
    size=0 silent_s=0
    while [ $silent_s -lt $SILENCE_S ]; do
        sleep 5
        size_before=$size size=$(stat -c %s $1/stdout)
        if [ $size = $size_before ]; then silent_s=$((silent_s + 5)); else silent_s=0; fi
    done
    for task in /proc/[0-9]*/task/[0-9]*; do
        # Of the kernel's own threads, those that wait and cannot be interrupted.
        [ -e ${task%/task/*}/exe ] || grep -qs '^State:.D' $task/status || continue
        echo "$task: $(tr '\0' ' ' <${task%/task/*}/cmdline)"
        grep -E '^(Name|State)' $task/status
        cat $task/stack
    done >$1/tasks 2>&1
    dmesg | tail -n 40 >>$1/tasks
    touch $1/answered
}
