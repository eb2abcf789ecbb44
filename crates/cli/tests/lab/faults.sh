#!/bin/sh
# What may go wrong around a program whose memory is tiered, one engine after the other in one guest.
#
#   faults.sh ISOTHERM TARGET FOLDER [NAME...]
#
# Of each fault, FOLDER gets what the engine says (NAME.json), what the program says (NAME.out), and in
# NAME.facts the exit status of `isotherm run`, the pages that the kernel moved for it, and what else the
# fault is to be judged by. Ends with "done".
isotherm=$1 target=$2 folder=$3
shift 3
group=/sys/fs/cgroup/fault
moves=/sys/kernel/tracing/events/migrate/mm_migrate_pages/hist
node1=/sys/devices/system/node/node1
export ISOTHERM_LAB_STARTED=/run/fault-started

# Pages moved for the reason with this number (enum migrate_reason).
moved() {
    sed -n "s/.*reason: *$1 .*succeeded: *\([0-9]*\).*/\1/p" "${2:-$moves}" | grep . || echo 0
}

fact() { echo "$1 $2" >>"$folder/$name.facts"; }

# The program's cgroup: its memory starts on the slow node.
new_group() {
    mkdir $group
    echo 1 >$group/cpuset.mems
}

end_group() {
    until rmdir $group 2>/dev/null; do sleep 0.1; done
}

# From when its memory is there and $ready succeeds, the program may use these nodes and begins.
ready=true
release() {
    until [ -e $ISOTHERM_LAB_STARTED ] && $ready; do
        sleep 0.05
        [ ! -e /run/fault-over ] || return
    done
    echo "$1" >$group/cpuset.mems
    rm $ISOTHERM_LAB_STARTED
}

# engine OPTIONS... -- COMMAND...: LRU, which moves most of all policies, around a program in the cgroup; it
# may use the nodes $nodes.
nodes=0-1
engine() {
    rm -f /run/fault-over
    cp $moves /run/fault-moves
    release $nodes &
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    # shellcheck disable=SC2086,SC2016
    "$isotherm" run --policy lru --set lru.sampling_period=16 --quiet --summary "$folder/$name.json" $options -- \
        sh -c 'echo 0 >/sys/fs/cgroup/fault/cgroup.procs
            cp "$0" /run/fault-moves
            echo $$ >/run/fault-program
            exec "$@"' $moves "$@" >"$folder/$name.out" 2>"$folder/$name.err"
    fact status $?
    : >/run/fault-over
    fact moved $(($(moved 3) - $(moved 3 /run/fault-moves)))
}

# planted SIZE OPERATIONS OPTIONS...: the engine around the program with the planted hot pages.
planted() {
    size=$1 operations=$2
    shift 2
    engine --fast "${fast:-8M}" ${rate:+--rate $rate} -- \
        "$target" planted --size "$size" --hot 25% --operations "$operations" "$@"
}

# Waits until the engine has moved that many pages.
wait_for_moves() {
    until [ -e /run/fault-program ] && [ $(($(moved 3) - $(moved 3 /run/fault-moves))) -ge "$1" ]; do
        sleep 0.1
        [ ! -e /run/fault-over ] || return
    done
}

nothing() { planted 16M 1000000; }

# The engine may use more of the fast node than is left of it.
full() {
    mount -t ramfs ramfs /mnt
    echo 3 >/proc/sys/vm/drop_caches
    free=$(awk '$3 == "MemFree:" { print $4 }' /sys/devices/system/node/node0/meminfo)
    min=$(awk '$1 == "Node" { node = $2 } $1 == "min" && node == "0," { sum += $2 } END { print sum * 4 }' /proc/zoneinfo)
    dd if=/dev/zero of=/mnt/taken bs=64k count=$(((free - min - 1024) / 64)) 2>/dev/null
    fact left "$(awk '$3 == "MemFree:" { print $4 }' /sys/devices/system/node/node0/meminfo)"
    fast=96M
    planted 48M 2000000
    fast=
    rm /mnt/taken
    umount /mnt
}

hugetlb() {
    echo 8 >$node1/hugepages/hugepages-2048kB/nr_hugepages
    fact pages "$(cat $node1/hugepages/hugepages-2048kB/nr_hugepages)"
    planted 16M 1000000 --memory hugetlb
    echo 0 >$node1/hugepages/hugepages-2048kB/nr_hugepages
}

pinned() { planted 16M 1000000 --memory pinned; }

locked() { planted 16M 1000000 --memory locked; }

# Children that share all pages, which are only read.
forked() { planted 16M 1000000 --children 2 --read-only; }

# The same with pages that are written: they are no longer shared.
written() { planted 16M 1000000 --children 2; }

# Pages of a file in memory that another process maps.
shared() {
    env -u ISOTHERM_LAB_STARTED "$target" planted --memory file:/dev/shm/fault --size 16M --operations 1 --final-idle 1000 --read-only &
    other=$!
    sleep 1
    planted 16M 1000000 --memory file:/dev/shm/fault --read-only
    kill $other
    rm /dev/shm/fault
}

# Pages that the kernel has found equal to those of another process: the first half.
merged() {
    cd /sys/kernel/mm/ksm || return
    echo 20000 >pages_to_scan
    echo 10 >sleep_millisecs
    env -u ISOTHERM_LAB_STARTED "$target" planted --memory mergeable --size 8M --operations 1 --final-idle 1000 --read-only &
    other=$!
    ready=are_merged
    planted 16M 1000000 --memory mergeable --read-only
    ready=true
    kill $other
    fact shared "$(cat /run/fault-merged)"
    echo 2 >run
    cd /
}

# Begins when both have their memory: the kernel looks less often at pages that it found no equal for.
are_merged() {
    echo 1 >run
    cat pages_sharing >/run/fault-merged
    [ "$(cat /run/fault-merged)" -gt 2000 ]
}

# The cgroup's limit is little more than the program.
limited() {
    echo 17M >$group/memory.max
    planted 16M 1000000
    fact peak "$(cat $group/memory.peak)"
}

# It is less than the program.
killed_by_limit() {
    echo 12M >$group/memory.max
    planted 16M 1000000
    fact oom "$(sed -n 's/^oom_kill //p' $group/memory.events)"
}

# The program must stay on the fast node, of which the engine wants to give it less.
cpuset() {
    echo 0 >$group/cpuset.mems
    nodes=0 fast=4M
    planted 16M 1000000
    nodes=0-1 fast=
}

program_killed() {
    rm -f /run/fault-program
    (
        wait_for_moves 200
        kill -9 "$(cat /run/fault-program)"
    ) &
    rate=1M
    planted 16M 100000000
    rate=
}

engine_killed() {
    rm -f /run/fault-program
    (
        wait_for_moves 200
        program=$(cat /run/fault-program)
        kill -9 "$(sed -n 's/^PPid:\t//p' "/proc/$program/status")"
    ) &
    rate=1M
    planted 16M 3000000
    rate=
    program=$(cat /run/fault-program)
    fact lives "$([ -e "/proc/$program" ] && echo 1 || echo 0)"
    while [ -e "/proc/$program" ]; do sleep 0.1; done
    # A new engine finds everything as it should be.
    "$isotherm" run --policy lru --quiet -- true
    fact afterwards $?
}

# The slow node's memory goes away while the engine demotes to it. The program starts on the fast node: of a
# device that is emulated, code runs too slowly.
removed() {
    echo 0-1 >$group/cpuset.mems
    rm -f /run/fault-program
    before=$(moved 2)
    (
        wait_for_moves 1000
        for block in $node1/memory[0-9]*; do
            echo offline >"$block/state" 2>/dev/null && echo "${block##*/memory}"
        done >/run/fault-blocks
    ) &
    rate=4M
    planted 16M 16000000
    rate=
    fact offline "$(wc -l </run/fault-blocks)"
    fact removed $(($(moved 2) - before))
    while read -r block; do echo online >"/sys/devices/system/memory/memory$block/state"; done </run/fault-blocks
}

for name in "$@"; do
    rm -f "$folder/$name.facts"
    new_group
    start=$(cut -d' ' -f1 /proc/uptime)
    "$name"
    fact seconds "$(echo "$start $(cut -d' ' -f1 /proc/uptime)" | awk '{ print $2 - $1 }')"
    end_group
done
echo done
