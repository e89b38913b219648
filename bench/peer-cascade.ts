/**
 * The story's script on the OpenAI Node SDK, its clock scaled:
 * peer-cascade.ts BASE_URL QUESTIONS ANSWERS CONCURRENCY TIMEOUT_S RETRIES SPEED
 *
 * A total timeout, and retries as the SDK makes them (0.5 s doubling to 8 s, less up to a quarter).
 * They are made here because the SDK's own cannot be scaled; fetch's limit of 300 s of the wall,
 * which would come first in life, does not show.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import OpenAI from 'openai'

const [baseURL = '', questions = '', answers = '', ...numbers] = process.argv.slice(2)
const [concurrency = 1, timeout = 1, retries = 0, speed = 1] = numbers.map(Number)
const FIRST_PAUSE = 500
const LONGEST_PAUSE = 8000
const JITTER = 0.25

const client = new OpenAI({
  baseURL,
  apiKey: 'none',
  maxRetries: 0,
  timeout: (1000 * timeout) / speed,
})

async function ask(prompt: string): Promise<number | undefined> {
  for (let attempt = 0; attempt <= retries; attempt++) {
    if (attempt > 0) {
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1))
      await sleep((pause * (1 - JITTER * Math.random())) / speed)
    }
    try {
      const completion = await client.chat.completions.create({
        model: 'simulated',
        messages: [{ role: 'user', content: prompt }],
      })
      return completion.usage?.completion_tokens
    } catch (error) {
      if (!(error instanceof OpenAI.APIConnectionError)) throw error
    }
  }
  return undefined
}

const lines = readFileSync(questions, 'utf8').trimEnd().split('\n')
const records = lines.map((line) => JSON.parse(line) as { id: number; prompt: string })
const out = openSync(answers, 'w')
let next = 0
const worker = async (): Promise<void> => {
  for (let record = records[next++]; record !== undefined; record = records[next++]) {
    const tokens = await ask(record.prompt)
    if (tokens === undefined) continue
    const usage = { completion_tokens: tokens }
    writeSync(out, `${JSON.stringify({ id: record.id, usage })}\n`)
  }
}
await Promise.all(Array.from({ length: concurrency }, worker))
closeSync(out)
