#!/bin/bash
# status.sh: the sums over the --stats of the tasks that have ended, of each shard its last start, and
# the answers in all files, of all starts. Remove stats.*.json when the number of shards changes.
set -euo pipefail
node -e '
  const sums = {}
  const add = (into, counts) => {
    for (const [name, value] of Object.entries(counts)) {
      if (name === "endpoints" || name.endsWith("_ms")) continue
      if (typeof value === "number") into[name] = (into[name] ?? 0) + value
      else add((into[name] ??= {}), value)
    }
  }
  for (const file of process.argv.slice(1)) {
    add(sums, JSON.parse(require("node:fs").readFileSync(file, "utf8")))
  }
  console.log(JSON.stringify({ tasks: process.argv.length - 1, ...sums }))
' $(ls stats.*.json 2> /dev/null)
echo "answers on disk: $(ls raw.*.jsonl | grep -v '\.removed\.jsonl$' | xargs cat | wc -l)"
squeue -h -u "$(id -un)" -n completions -o %T 2> /dev/null | sort | uniq -c
