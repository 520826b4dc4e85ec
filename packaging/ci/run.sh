#!/bin/sh
# Runs fiord in a pipeline: a job file or a study, a comparison with a baseline, and what a build keeps of both.
#
# Invariant: what the environment gives is passed to fiord as arguments, each line one, and is never read as shell text.
#
#     FIORD_ARGUMENTS         what fiord is to run, an argument on each line: a job file and options, or quick, matrix, ...
#     FIORD_FAIL_IF           conditions with values that fail the build, one on each line: read.p99 > 2ms
#     FIORD_FAIL_IF_CHANGED   conditions with changes against the baseline, one on each line: read.p99 > +10%
#     FIORD_BASELINE          the report to compare with; made of this run if it is not there
#     FIORD_UNDECIDED         what a condition is that noise does not decide: tell (status 6, the default), pass or fail
#     FIORD_OUTPUT            directory of what is kept: result.json, page.html, compare.xml, summary.md [fiord-output]
#     FIORD                   the program [fiord]
#
# The status is that of fiord: 0, 6 if a condition cannot be decided, 8 if one failed, another if there was an error.
set -u

fiord=${FIORD:-fiord}
output=${FIORD_OUTPUT:-fiord-output}
undecided=${FIORD_UNDECIDED:-tell}
baseline=${FIORD_BASELINE:-}

if [ -z "${FIORD_ARGUMENTS:-}" ]; then
    echo "run.sh: FIORD_ARGUMENTS is empty: name a job file or a study in it, one argument on each line" >&2
    exit 2
fi
mkdir -p "$output" || exit 1
# What an earlier run left says nothing of this one.
rm -f "$output/result.json" "$output/page.html" "$output/compare.xml" "$output/summary.md"

# Runs the command line that follows --, with the lines of $2 as further arguments, each after $1 if that is not empty.
with_lines() {
    flag=$1 lines=$2
    shift 3
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        if [ -n "$flag" ]; then set -- "$@" "$flag"; fi
        set -- "$@" "$line"
    done <<END_OF_LINES
$lines
END_OF_LINES
    "$@"
}

measure() {
    case ${FIORD_ARGUMENTS%%"
"*} in
        quick | matrix | sweep | check | capacity | qualify) format=--json ;;
        *) format=--output-format=json ;;
    esac
    arguments="$FIORD_ARGUMENTS
--undecided=$undecided
$format"
    with_lines "" "$arguments" -- with_lines --fail-if "${FIORD_FAIL_IF:-}" -- "$fiord" >"$output/result.json"
}

compare() { "$fiord" compare "$baseline" "$output/result.json" "$@"; }

# The worse of two statuses: an error, then a condition that failed, then one that is not decided.
worse() {
    for status in "$1" "$2"; do
        case $status in 0 | 6 | 8) ;; *) echo "$status" && return ;; esac
    done
    if [ "$1" -gt "$2" ]; then echo "$1"; else echo "$2"; fi
}

summarize() {
    echo "## fiord: $verdict"
    echo
    if [ "$compared" = yes ]; then compare --markdown; else "$fiord" explain "$output/result.json" | sed 's/^/    /'; fi
}

measure
status=$?
compared=no
if [ -s "$output/result.json" ]; then
    "$fiord" report "$output/result.json" -o "$output/page.html" --force || status=$(worse "$status" 1)
    if [ -n "$baseline" ] && [ -e "$baseline" ]; then
        compared=yes
        with_lines --fail-if "${FIORD_FAIL_IF_CHANGED:-}" -- compare --undecided="$undecided" --junit >"$output/compare.xml"
        status=$(worse "$status" $?)
    elif [ -n "$baseline" ] && [ "$status" -eq 0 ]; then
        cp "$output/result.json" "$baseline" || status=1
    fi
fi
case $status in
    0) verdict=pass ;;
    6) verdict="cannot tell" ;;
    8) verdict=fail ;;
    *) verdict=error ;;
esac
if [ -s "$output/result.json" ]; then summarize >"$output/summary.md"; else echo "## fiord: $verdict" >"$output/summary.md"; fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$output/summary.md" >>"$GITHUB_STEP_SUMMARY"; fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then printf 'status=%s\nverdict=%s\n' "$status" "$verdict" >>"$GITHUB_OUTPUT"; fi
exit "$status"
