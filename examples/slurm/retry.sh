#!/bin/bash
# retry.sh SHARDS FILE.sbatch [SBATCH OPTION...]
# Submits the shards that have something left, of any number of shards.
set -euo pipefail
if ! [[ ${1:-} =~ ^[1-9][0-9]*$ ]] || [ $# -lt 2 ]; then
  echo 'usage: retry.sh SHARDS FILE.sbatch [SBATCH OPTION...], with a number of SHARDS from 1' >&2
  exit 2
fi
shards=$1
# 1 is a damaged line, which no task can answer: the others go on, and the exit code says so.
code=0
dedupe-completed -q --completed 'raw.*.jsonl' questions.jsonl > left.jsonl || code=$?
[ $code -le 1 ] || exit $code
only=
for ((shard = 0; shard < shards; shard++)); do
  records=$(dedupe-completed -q --shard "$shard/$shards" --completed /dev/null left.jsonl | wc -l)
  if [ "$records" -gt 0 ]; then only+=" $shard"; fi
done
if [ -z "$only" ]; then
  echo 'nothing is left'
  exit $code
fi
echo "left: $(wc -l < left.jsonl) records, in shards$only"
ONLY=$only exec "$(dirname "$0")/submit.sh" "$@"
