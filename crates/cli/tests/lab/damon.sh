#!/bin/sh
# DAMON as the engine's source, and other users of it, in one guest.
#
#   damon.sh ISOTHERM TARGET
#
# Prints a line for each fact: its name and value.
isotherm=$1 target=$2
admin=/sys/kernel/mm/damon/admin/kdamonds

run() { "$isotherm" run --policy lru --source damon --shadow --fast 1:4 "$@"; }

# A program that has no processor time is not scanned.
planted() { run -- "$target" planted --size 16M --seconds "$1"; }

number_of_kdamonds() { echo "$1 $(cat $admin/nr_kdamonds)"; }

# An eighth of the memory, which lies together, takes nearly all accesses.
run --quiet --summary /tmp/summary.json -- "$target" planted --size 32M --hot 12.5% --layout contiguous --share 99% \
    --seconds 20 2>&1 >/dev/null | sed 's/^/alone /'
tr -d '\n' </tmp/summary.json | sed 's/^/summary /'
echo
number_of_kdamonds left_alone

# Nobody asks for it, but by this machine's figures it is worth most: the others cost more or find less.
mkdir -p /var/lib/isotherm
cat >/var/lib/isotherm/sources.json <<END
{"memory_bytes": 16777216, "sources": [
    {"name": "virtual-pmu", "cost": 0.5, "found": 1.0},
    {"name": "hint-faults", "cost": 0.02, "found": 0.5},
    {"name": "damon", "cost": 0.004, "found": 0.9}]}
END
"$isotherm" run --policy lru --shadow --fast 1:4 --summary /tmp/summary.json -- "$target" planted --size 16M \
    --seconds 2 2>&1 >/dev/null | sed 's/^/by_figures /'
tr -d '\n' </tmp/summary.json | sed 's/^/chosen /'
echo
rm /var/lib/isotherm/sources.json

# Another stops the engine's.
(
    sleep 3
    cat $admin/0/state
    echo off >$admin/0/state
    cat $admin/0/state
) | sed 's/^/observed /' &
planted 30 >/dev/null 2>/tmp/said
echo "taken_status $?"
sed 's/^/taken /' /tmp/said
wait

# Another's runs.
sleep 1000 &
other=$!
echo 1 >$admin/nr_kdamonds
echo 1 >$admin/0/contexts/nr_contexts
echo vaddr >$admin/0/contexts/0/operations
echo 1 >$admin/0/contexts/0/targets/nr_targets
echo $other >$admin/0/contexts/0/targets/0/pid_target
echo on >$admin/0/state
planted 1 >/dev/null 2>/tmp/said
echo "refused_status $?"
sed 's/^/refused /' /tmp/said
echo "others $(cat $admin/0/state)"
kill $other
