#!/bin/bash
# prove.sh QUESTIONS MERGED RAW...
# Shows with the toolkit's own stages that each key of QUESTIONS is answered exactly once over all RAW
# files, and writes them as one file. KEY=custom_id for answers to batch lines. With MODEL (and
# FANOUT_OPTIONS, as the run had them) also that each answer is to this very request; else keys count.
set -euo pipefail
if [ $# -lt 3 ]; then
  echo 'usage: prove.sh QUESTIONS MERGED RAW...' >&2
  exit 2
fi
questions=$1
merged=$2
key=${KEY:-id}
shift 2
# What repair-truncated took out lies beside a file and is no answer.
files=()
for file in "$@"; do [[ $file == *.removed.jsonl ]] || files+=("$file"); done

fail() {
  echo "prove.sh: NOT PROVED: $1" >&2
  rm -f "$merged.part" "$merged.left" "$merged.extra"
  exit 1
}
# 1. Whole lines, each with a key, and no key twice.
validate-jsonl --require "$key" --unique "$key" "${files[@]}" > "$merged.part" ||
  fail 'lines are damaged, or a key is answered twice (see above)'
# 2. No key of the questions is without its answer.
dedupe-completed -q --completed "$merged.part" "$questions" > "$merged.left" ||
  fail 'the questions have damaged lines, or a key for different ones (see above)'
[ -s "$merged.left" ] && fail "$(wc -l < "$merged.left") questions have no answer"
# 3. No answer is to another key: now the questions are the file of what is there.
dedupe-completed -q --completed "$questions" "$merged.part" > "$merged.extra" ||
  fail 'questions have no key of their own: give them one with extract-prompts'
[ -s "$merged.extra" ] && fail "$(wc -l < "$merged.extra") answers are to no question"
# 4. The answers are to these requests, by their request_hash; no server is asked for what is answered.
what='by key alone (MODEL is not set)'
if [ -n "${MODEL:-}" ]; then
  fanout-complete -q --model "$MODEL" --url http://127.0.0.1:9/v1 --completed "$merged.part" \
    ${FANOUT_OPTIONS:-} "$questions" || fail 'there are answers to other requests (see above)'
  what="to these requests of $MODEL"
fi
rm "$merged.left" "$merged.extra"
mv "$merged.part" "$merged"
echo "PROVED: $(wc -l < "$merged") keys, each answered exactly once, are in $merged"
echo "compared: $what"
