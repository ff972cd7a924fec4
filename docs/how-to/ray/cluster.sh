#!/bin/sh
# A Ray cluster of machines that reach each other, each with Bakeoff and its extra `ray` installed:
#
#   ray get-auth-token --generate           once; put what it prints into RAY_AUTH_TOKEN on every machine
#   sh cluster.sh head                      on the first machine
#   sh cluster.sh join HEAD_ADDRESS         on each of the others
#   sh cluster.sh run agents run --agent claude --jobs 64        on the first machine, once the others have joined
#
# `head` and `join` run until they are ended with Ctrl-C. The variable PORT sets another port than 6379.
set -eu
export RAY_USAGE_STATS_ENABLED=0
export RAY_AUTH_MODE="${RAY_AUTH_MODE:-token}" # without it, whoever reaches the ports can run anything
port=${PORT:-6379}
what=${1:?write head, join or run}
shift
case $what in
head) exec ray start --head --port "$port" --include-dashboard=false --disable-usage-stats --block ;;
join) exec ray start --address "${1:?write the address of the first machine}:$port" --disable-usage-stats --block ;;
run) exec bakeoff "$@" --executor ray --ray-address "127.0.0.1:$port" ;;
*) echo "write head, join or run, not $what" >&2 && exit 2 ;;
esac
