#!/bin/bash
# submit.sh SHARDS FILE.sbatch [SBATCH OPTION...]
# Submits one task for each shard, in as many arrays as the cluster's MaxArraySize asks for. ONLY, a
# list such as "3 17 21", submits these shards alone.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo 'usage: submit.sh SHARDS FILE.sbatch [SBATCH OPTION...]' >&2
  exit 2
fi
[[ $1 =~ ^[1-9][0-9]*$ ]] || { echo "submit.sh: SHARDS is a number from 1, not '$1'" >&2; exit 2; }
shards=$1
file=$2
shift 2
# --take-lock is right only while no task of the run is alive.
if [ -n "$(squeue -h -u "$(id -un)" -n completions -o %i)" ]; then
  echo 'submit.sh: tasks of completions are in the queue: wait for them, or scancel -n completions' >&2
  exit 2
fi
# The largest index of an array is one less than MaxArraySize.
max=$(scontrol show config | awk '$1 == "MaxArraySize" { print $3 }')
for ((offset = 0; offset < shards; offset += max)); do
  tasks=
  for shard in ${ONLY:-$(seq 0 $((shards - 1)))}; do
    if ((shard >= offset && shard < offset + max)); then tasks+=,$((shard - offset)); fi
  done
  [ -z "$tasks" ] && continue
  SHARDS=$shards OFFSET=$offset sbatch --array="${tasks#,}" --export=ALL "$@" "$file"
done
