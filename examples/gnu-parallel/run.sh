#!/bin/bash
# run.sh SHARDS [PARALLEL OPTION...]: one client for each shard, over local slots (-j 4) or ssh hosts
# that share this folder (--sshloginfile hosts --workdir .). A client that ends early is started again
# by the same command with --resume-failed. $URL and $MODEL name the server and its model.
set -euo pipefail
if ! [[ ${1:-} =~ ^[1-9][0-9]*$ ]]; then
  echo 'usage: run.sh SHARDS [PARALLEL OPTION...], with a number of SHARDS from 1' >&2
  exit 2
fi
shards=$1
shift
export URL MODEL FANOUT_OPTIONS=${FANOUT_OPTIONS:-}
parallel --joblog jobs.log --env URL --env MODEL --env FANOUT_OPTIONS "$@" \
  fanout-complete questions.jsonl --shard "{}/$shards" --url '"$URL"' --model '"$MODEL"' \
  -o "'raw.{shard}.jsonl'" --resume --take-lock --completed "'raw.*.jsonl'" \
  --failures "'failures.{shard}.jsonl'" --stats "'stats.{shard}.json'" '$FANOUT_OPTIONS' \
  ::: $(seq 0 $((shards - 1)))
