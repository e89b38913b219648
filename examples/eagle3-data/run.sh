#!/usr/bin/env bash
# Training data for an EAGLE-3 drafter, from a Parquet file of open-perfectblend's form to the file
# that SpecForge reads: the whole way on a small scale, against simulate-server, with the asking
# killed half-way and taken up again.
#
#   run.sh [PARQUET] [FOLDER]
#
# With OPENAI_BASE_URL set it asks that server instead; CLOCK_SPEED=1 is then right.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
parquet=${1:-$here/sample.parquet}
folder=${2:-$(mktemp -d)}
speed=${CLOCK_SPEED:-100}

if [ -z "${OPENAI_BASE_URL:-}" ]; then
  simulate-server -q --port 0 --speed "$speed" --mean-tokens 400 --fault 503:3% --fault cut:3% \
    > "$folder/url" &
  server=$!
  trap 'kill $server' EXIT
  until [ -s "$folder/url" ]; do sleep 0.1; done
  OPENAI_BASE_URL=$(cat "$folder/url")
  export OPENAI_BASE_URL
fi

# 1. Questions: the first user turn of each row, in an order that is the same on every machine.
extract-prompts "$parquet" --shuffle 7 --keep source > "$folder/questions.jsonl"

# 2. Answers. The first run is killed as a night may do it; the second goes on where it was.
ask=(fanout-complete "$folder/questions.jsonl" -o "$folder/raw_responses.jsonl" --resume -c 32
  --clock-speed "$speed" --failures "$folder/failures.jsonl" --stats "$folder/stats.json")
"${ask[@]}" &
running=$!
until [ "$(cat "$folder/raw_responses.jsonl" 2> /dev/null | wc -l)" -ge 40 ]; do sleep 0.05; done
kill -KILL $running
wait $running || true
"${ask[@]}"

# 3. Is the file right?
validate-jsonl -q --as responses --unique id "$folder/raw_responses.jsonl"

# 4. The trainer's file, without answers that the token limit cut, and a share for evaluation.
export-conversations --to specforge --only stop --split 95:5 --seed 7 \
  -o "$folder/specforge.{split}.jsonl" "$folder/raw_responses.jsonl"
wc -l "$folder"/questions.jsonl "$folder"/raw_responses.jsonl "$folder"/specforge.*.jsonl
