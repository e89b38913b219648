import { murmur128 } from './hash.ts'
import type { Bytes } from './json-string.ts'
import { usageError } from './tool-error.ts'

/** One of the parts that a run is cut into: the records whose key hashes to `index` of `count`. */
export interface Shard {
  /** From 0. */
  index: number
  count: number
}

/** Above this many shards 32 bits of hash would no longer give even ones. */
const MOST_SHARDS = 1_000_000

/** What the placeholder of output names stands for: the shard's index. */
const PLACEHOLDER = '{shard}'

/** What `--shard auto` looks for, each a scheduler's number of the task. */
const SLURM = 'SLURM_ARRAY_TASK_ID'
const KUBERNETES = 'JOB_COMPLETION_INDEX'
const PARALLEL = 'PARALLEL_SEQ'
const STEP = 'SLURM_ARRAY_TASK_STEP'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads `K/N`, K from 0.
 *
 * @returns undefined where it is no such pair, or K is not below N
 */
export function parseShard(text: string): Shard | undefined {
  const [, index, count] = /^(\d{1,7})\/(\d{1,7})$/.exec(text) ?? []
  if (index === undefined) return undefined
  const shard = { index: Number(index), count: Number(count) }
  return isShard(shard) ? shard : undefined
}

/**
 * The shard of a task, from the variables of the scheduler that started it. A Slurm array may start
 * anywhere and step by anything; with `shards` its task's number is K as it stands, as the index of
 * a Kubernetes job is. GNU parallel's job number counts from 1. Its PARALLEL_JOBSLOT is not looked
 * at: a slot is given to one job after the other.
 *
 * @param shards the number of shards (`--shards`), where the scheduler does not tell it
 * @throws ToolError `usage` where no scheduler, or more than one, or none of these shards is named
 */
export function shardOfTask(env: Environment, shards: number | undefined): Shard {
  const set = [SLURM, KUBERNETES, PARALLEL].filter((name) => env[name] !== undefined)
  const [name] = set
  if (name === undefined) {
    throw usageError(
      `--shard auto finds no scheduler: none of ${SLURM}, ${KUBERNETES} and ${PARALLEL} is set; ` +
        'give --shard K/N',
    )
  }
  if (set.length > 1) {
    throw usageError(
      `--shard auto cannot tell which counts: ${set.join(' and ')} are set; give --shard K/N`,
    )
  }
  const index = wholeNumber(env, name)
  if (name === SLURM && shards === undefined) return shardOfArray(env, index)
  if (shards === undefined) {
    throw usageError(`--shard auto with ${name} needs the number of shards: --shards N`)
  }
  const shard = { index: name === PARALLEL ? index - 1 : index, count: shards }
  if (isShard(shard)) return shard
  const range = name === PARALLEL ? `1 to ${shards}` : `0 to ${shards - 1}`
  throw usageError(`${name} is ${index}: with --shards ${shards} it must be ${range}`)
}

/** The place of a task in its array: a list such as 3,17,21 is none that N could be told from. */
function shardOfArray(env: Environment, id: number): Shard {
  const first = wholeNumber(env, 'SLURM_ARRAY_TASK_MIN')
  const last = wholeNumber(env, 'SLURM_ARRAY_TASK_MAX')
  const count = wholeNumber(env, 'SLURM_ARRAY_TASK_COUNT')
  const step = env.SLURM_ARRAY_TASK_STEP === undefined ? 1 : wholeNumber(env, STEP)
  const shard = { index: (id - first) / step, count }
  if (step > 0 && (last - first) / step === count - 1 && isShard(shard)) return shard
  throw usageError(
    `the array of ${SLURM}=${id} is no even range (${count} tasks from ${first} to ${last} by ` +
      `${step}): give the number of shards with --shards N, or --shard K/N`,
  )
}

function wholeNumber(env: Environment, name: string): number {
  const text = env[name]
  if (text !== undefined && /^\d{1,10}$/.test(text)) return Number(text)
  const what = text === undefined ? 'not set' : text === '' ? 'empty' : `'${text}'`
  throw usageError(`--shard auto needs a whole number in ${name}, which is ${what}`)
}

function isShard({ index, count }: Shard): boolean {
  return Number.isInteger(index) && index >= 0 && index < count && count <= MOST_SHARDS
}

const hash = new Int32Array(4)

/**
 * Which shard a key belongs to: the first 32-bit word of MurmurHash3 x86_128, seed 0, of the key's
 * text in UTF-8, modulo the number of shards: the same on every machine, forever, since files are
 * named after it. In Python `(mmh3.hash128(key, 0, x64arch=False) & 0xffffffff) % count`.
 *
 * | key | word | of 8 | of 1000 |
 * |---|---|---|---|
 * | (empty) | 0 | 0 | 0 |
 * | `1` | 3774018811 | 3 | 811 |
 * | `chats.json:17` | 1313552405 | 5 | 405 |
 * | `größe` | 394440692 | 4 | 692 |
 */
export function shardOfText(text: string, count: number): number {
  const bytes = Buffer.from(text)
  return shardOfBytes({ bytes, start: 0, end: bytes.length }, count)
}

/** The same of a text in UTF-8. */
export function shardOfBytes({ bytes, start, end }: Bytes, count: number): number {
  murmur128(bytes, start, end, 0, hash)
  return shardOfFingerprint(hash, count)
}

/** The same of a key whose fingerprint is there ({@link KeyRule.fingerprint}). */
export function shardOfFingerprint(fingerprint: Int32Array, count: number, from = 0): number {
  return (fingerprint[from]! >>> 0) % count
}

/**
 * Whether a key is of the shard, or of any where there are none.
 *
 * @param from where the words of its fingerprint begin
 */
export function isInShard(shard: Shard | undefined, fingerprint: Int32Array, from = 0): boolean {
  return shard === undefined || shardOfFingerprint(fingerprint, shard.count, from) === shard.index
}

/** Whether the placeholder is in a name. */
export function hasShardPlaceholder(name: string | undefined): boolean {
  return name?.includes(PLACEHOLDER) === true
}

/** A name with the shard's index for its placeholder. */
export function withShard<Name extends string | undefined>(name: Name, shard: Shard): Name {
  return name?.replaceAll(PLACEHOLDER, String(shard.index)) as Name
}
