#!/bin/sh
# Weighted interleaving and the kernel's weights in one guest, which has two nodes.
#
#   interleaving.sh ISOTHERM TARGET
#
# Prints a line for each fact: its name and value.
isotherm=$1 target=$2
folder=/sys/kernel/mm/mempolicy/weighted_interleave

weights() { echo "$1" "$(cat $folder/node0 $folder/node1 | paste -sd:)"; }

run() {
    "$isotherm" run --policy weighted-interleave --set weighted-interleave.tier_0=3 \
        --set weighted-interleave.tier_1=1 -- "$target" planted --size 4M "$@" >/dev/null
}

# Somebody's own, so that the kernel's default restores nothing.
echo 7 >$folder/node0
echo 5 >$folder/node1
run --operations 100000
echo "status $?"
weights ended

run --seconds 600 --report /tmp/report &
while ! [ -s /tmp/report ]; do sleep 0.1; done
weights running
# The shell's child is isotherm, which passes the signal on and then ends itself.
kill -TERM "$(pgrep -o -x isotherm)"
wait $!
echo "signal $?"
weights stopped
