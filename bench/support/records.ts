import { seededRandom } from './random.ts'

/** Different bodies in a file of large records: more than a branch predictor remembers. */
const BODIES = 256
/** Bytes of content and of reasoning together, on average; the rest of a record is about 500. */
const MEAN_TEXT = 4800

const WORDS: Record<string, readonly string[]> = {
  english:
    'the answer of this question is found by counting each step that we have taken so far and then dividing it into parts which are easy to see “quoted” — however, we should check whether it holds for n ≥ 2'.split(
      ' ',
    ),
  code: 'const value = list.map((item) => item.id); "key": if (x < 10 && y > 2) { return null } \\d+ \t// done'.split(
    / (?! )/,
  ),
  russian:
    'ответ на этот вопрос находится если посчитать каждый шаг который мы сделали и разделить его на части'.split(
      ' ',
    ),
  chinese:
    '这个问题的答案 可以通过计算 每一步 得到，然后 分成几个部分。 我们 还需要 检查 结果 是否正确'.split(
      ' ',
    ),
}
/** Languages by how often they come. */
const MIX = ['english', 'english', 'english', 'english', 'english', 'code', 'russian', 'chinese']

/** Makes answers as fanout-complete writes them, about 5.6 kB each, a number as id. */
export function largeRecords(seed: number): (id: number) => string {
  const random = seededRandom(seed)
  const bodies = Array.from({ length: BODIES }, (_, index) => answerBody(index, random))
  return (id) => `{"id":${id},${bodies[(id * 101) % BODIES]}\n`
}

/** Bytes of a short record, its newline included. */
export const SHORT_RECORD = 46

/** Makes records of {@link SHORT_RECORD} bytes, up to nine million. */
export function shortRecord(id: number): string {
  return `{"id":${1_000_000 + id},"prompt":"What is ${10_000 + (id % 90_000)}+2345?"}\n`
}

/** Makes questions of about `length` bytes. */
export function questions(length: number, seed: number): (id: number) => string {
  const random = seededRandom(seed)
  const texts = Array.from({ length: BODIES }, () => JSON.stringify(prose(random, length - 50)))
  return (id) => `{"id":${id},"prompt":${texts[id % BODIES]},"category":"math"}\n`
}

/** ShareGPT conversations of a question and an answer, about 520 bytes a line. */
export function conversations(seed: number): (id: number) => string {
  const random = seededRandom(seed)
  const turns = Array.from({ length: BODIES }, () => [
    { from: 'human', value: prose(random, 90) },
    { from: 'gpt', value: prose(random, 310) },
  ])
  const texts = turns.map((turn) => JSON.stringify(turn))
  return (id) => `{"id":"identity_${id}","conversations":${texts[id % BODIES]}}\n`
}

function answerBody(index: number, random: () => number): string {
  // Lengths as answers have them: many short ones, some very long.
  const length = -Math.log((index + 0.5) / BODIES) * MEAN_TEXT
  const answer = {
    status: 'success',
    conversations: [
      { role: 'user', content: prose(random, 120) },
      {
        role: 'assistant',
        content: prose(random, length * 0.35),
        reasoning_content: prose(random, length * 0.65),
      },
    ],
    finish_reason: 'stop',
    model: 'deepseek-ai/DeepSeek-V3.1',
    usage: { prompt_tokens: 29, completion_tokens: Math.round(length / 4), total_tokens: 1292 },
    attempts: 1,
    timing: { started_at: '2026-11-29T02:14:07.318Z', first_token_ms: 41, total_ms: 20_231 },
    request_hash: '9f86d081884c7d65',
    input: { category: 'math', source: 'open-perfectblend', score: -0.125e-3, tags: [] },
  }
  return JSON.stringify(answer).slice(1)
}

/** Text of about so many UTF-8 bytes, with line breaks and quotes as chat answers have them. */
function prose(random: () => number, bytes: number): string {
  const words = WORDS[MIX[Math.floor(random() * MIX.length)]!]!
  const parts: string[] = []
  for (let length = 0; length < bytes; ) {
    const word = words[Math.floor(random() * words.length)]!
    const dice = random()
    const end = dice < 0.05 ? '.\n' : dice < 0.06 ? '\n\n' : dice < 0.07 ? ' "so" ' : ' '
    parts.push(word, end)
    length += Buffer.byteLength(word) + end.length
  }
  return parts.join('')
}
