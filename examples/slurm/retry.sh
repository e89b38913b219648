#!/bin/bash
# retry.sh SHARDS FILE.sbatch [SBATCH OPTION...]
# Submits the shards that have something left, of any number of shards.
set -euo pipefail
shards=$1
dedupe-completed -q --completed 'raw.*.jsonl' questions.jsonl > left.jsonl || [ $? = 1 ]
only=
for ((shard = 0; shard < shards; shard++)); do
  records=$(dedupe-completed -q --shard "$shard/$shards" --completed /dev/null left.jsonl | wc -l)
  if [ "$records" -gt 0 ]; then only+=" $shard"; fi
done
if [ -z "$only" ]; then
  echo 'nothing is left'
  exit 0
fi
echo "left: $(wc -l < left.jsonl) records, in shards$only"
ONLY=$only exec "$(dirname "$0")/submit.sh" "$@"
