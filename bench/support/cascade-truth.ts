import { expectedAnswer } from '../../src/simulator/answer.ts'
import { resolveOptions } from '../../src/simulator/options.ts'
import { Scheduler } from '../../src/simulator/scheduler.ts'
import { questions } from './records.ts'

const QUESTION = 800
const SEED = 11

/** The server of the benchmark. */
export const PROFILE = 'story'

/** A question and how long its answer is. */
export interface Question {
  id: number
  prompt: string
  promptTokens: number
  tokens: number
}

/** Questions whose answers are known, since the server draws them from the prompt. */
export function cascadeQuestions(count: number): Question[] {
  const line = questions(QUESTION, SEED)
  return Array.from({ length: count }, (_, id) => {
    const { prompt: text } = JSON.parse(line(id)) as { prompt: string }
    const prompt = `Question ${id}. ${text}`
    const { usage } = expectedAnswer(
      { messages: [{ role: 'user', content: prompt }] },
      { profile: PROFILE },
    )
    return { id, prompt, promptTokens: usage.prompt_tokens, tokens: usage.completion_tokens }
  })
}

/**
 * What the same questions take on virtual time, at a concurrency and without any timeout: what a
 * run on a scaled clock is held against.
 *
 * @returns seconds of server time
 */
export function twin(list: readonly Question[], concurrency: number): number {
  let toSend = concurrency
  const scheduler = new Scheduler(resolveOptions({ profile: PROFILE }), {
    finished: () => toSend++,
  })
  let next = 0
  let now = 0
  for (;;) {
    for (; toSend > 0 && next < list.length; toSend--) {
      const { promptTokens, tokens } = list[next++]!
      scheduler.add({ promptTokens, outputTokens: tokens }, now)
    }
    if (scheduler.nextStepAt === undefined) return now / 1000
    now = scheduler.nextStepAt
    scheduler.advance(now)
  }
}
