import type { Context } from '../cli/command.ts'
import { optionName } from '../cli/option.ts'
import { hasShardPlaceholder, type Shard, shardOfTask, withShard } from '../core/shard.ts'
import { usageError } from '../core/tool-error.ts'

/** What the options of sharding become. */
export interface ShardChoice {
  shard: Shard | 'auto' | undefined
  shards: number | undefined
}

/**
 * The shard of this run, undefined where it does all records, and the names of what it writes with
 * the shard's number in them.
 *
 * @param names the names by the option's name in code
 * @throws ToolError `usage` where the scheduler does not tell the shard, and for names that all
 *   tasks would share while another name has its {shard}
 */
export function resolveShard<Names extends Record<string, string | undefined>>(
  context: Context,
  { shard, shards }: ShardChoice,
  names: Names,
): { shard: Shard | undefined; names: Names } {
  if (shards !== undefined && shard !== 'auto') {
    throw usageError('--shards N is for --shard auto; --shard K/N says both')
  }
  const given = Object.entries(names).filter(([, name]) => name !== undefined)
  const own = given.find(([, name]) => hasShardPlaceholder(name))
  if (shard === undefined) {
    if (own !== undefined) throw usageError(`{shard} in ${optionName(own[0])} needs --shard`)
    return { shard, names }
  }
  const shared = given.find(([, name]) => !hasShardPlaceholder(name) && !isShareable(name!))
  if (own !== undefined && shared !== undefined) {
    throw usageError(
      `${optionName(own[0])} has a file for each shard: put {shard} into ${optionName(shared[0])} too`,
    )
  }
  const which = shard === 'auto' ? shardOfTask(context.env, shards) : shard
  if (shard === 'auto' && which.count === 1) {
    context.report.warning('--shard auto is shard 0 of 1 here: this task does all records')
  }
  const filled = Object.entries(names).map(([option, name]) => [option, withShard(name, which)])
  return { shard: which, names: Object.fromEntries(filled) as Names }
}

/** Says that a shard came to its end without work. */
export function noteIdle(context: Context, shard: Shard | undefined, why: string): void {
  if (shard === undefined) return
  context.report.note(`shard ${shard.index} of ${shard.count}: nothing to do, ${why}`)
}

/** Standard error and devices take the lines of as many tasks as there are. */
function isShareable(name: string): boolean {
  return name === '-' || name.startsWith('/dev/')
}
