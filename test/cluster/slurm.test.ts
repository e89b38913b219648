import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { examples, missing, newRun, type Run } from '../support/cluster.ts'
import { dice, newSeed } from '../support/dice.ts'
import type { Lifetime } from '../support/servers.ts'

const RECORDS = 2000
const SPEED = 100
/** More than MAX_ARRAY, so that submit.sh makes several arrays; then another number half-way. */
const SHARDS = 7
const SHARDS_LATER = 4
const MAX_ARRAY = 5
/** Kills, requeues and warnings, at most. */
const MOST_BLOWS = 18

const root = process.getuid?.() === 0 ? false : 'needs root: NOT TESTED'
const skip = missing('slurmctld', 'slurmd', 'munged', 'mungekey', 'sbatch', 'curl') || root

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

/** A Slurm of one node, this machine, that says it has sixteen cores. */
async function startSlurm(lifetime: Lifetime, { cwd, env }: Run): Promise<void> {
  const place = join(cwd, 'slurm')
  for (const folder of ['state', 'spool', 'munge'])
    mkdirSync(join(place, folder), { recursive: true })
  const host = hostname().split('.')[0]!
  const config = join(place, 'slurm.conf')
  const at = (name: string): string => join(place, name)
  writeFileSync(
    config,
    `ClusterName=test
SlurmctldHost=${host}(127.0.0.1)
SlurmctldPort=${await freePort()}
SlurmdPort=${await freePort()}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=${at('munge/socket')},cred_expire=4
StateSaveLocation=${at('state')}
SlurmdSpoolDir=${at('spool')}
SlurmctldPidFile=${at('slurmctld.pid')}
SlurmdPidFile=${at('slurmd.pid')}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobRequeue=1
MaxArraySize=${MAX_ARRAY}
MinJobAge=300
KillWait=2
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,default_queue_depth=1000
SlurmdParameters=config_overrides
NodeName=${host} NodeAddr=127.0.0.1 CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`,
  )
  env.SLURM_CONF = config
  execFileSync('mungekey', ['--create', `--keyfile=${at('munge/key')}`])
  const names = ['socket', 'pid-file', 'log-file', 'seed-file']
  const files = names.map((name) => `--${name}=${at(`munge/${name.replace('-file', '')}`)}`)
  const daemons: ChildProcess[] = []
  const start = (program: string, ...args: string[]): void => {
    const log = openSync(at(`${program}.out`), 'w')
    const child = spawn(program, args, { env, cwd: place, stdio: ['ignore', log, log] })
    daemons.push(child)
  }
  lifetime.after(async () => {
    for (const daemon of daemons.reverse()) {
      if (daemon.exitCode !== null) continue
      daemon.kill('SIGTERM')
      await once(daemon, 'exit')
    }
  })
  // The folders on the way to the socket may be anybody's: tests lie in the system's temporary one.
  start('munged', '--foreground', '--force', `--key-file=${at('munge/key')}`, ...files)
  await sleep(500)
  start('slurmctld', '-D', '-i')
  start('slurmd', '-D')
}

/** Answers in all files, whole lines. */
function answered(cwd: string): number {
  return readdirSync(cwd)
    .filter((name) => /^raw\.\d+\.jsonl$/.test(name))
    .reduce((sum, name) => sum + readFileSync(join(cwd, name), 'latin1').split('\n').length - 1, 0)
}

/** Slurm lets a requeued task wait for two minutes: the test does not. */
async function startRequeued(sh: Run['sh']): Promise<void> {
  const { text } = await sh('squeue', '-h', '-r', '-t', 'PD', '-o', '%i %r')
  for (const line of text.split('\n').filter((line) => line.endsWith('BeginTime'))) {
    await sh('scontrol', 'update', `JobId=${line.split(' ')[0]}`, 'StartTime=now')
  }
}

describe('a Slurm array', { skip, timeout: 240_000 }, () => {
  test('tasks killed, requeued, warned; another number of shards half-way; nothing lost', async (t) => {
    const seed = newSeed()
    t.diagnostic(`SEED=${seed}`)
    const random = dice(seed)
    const run = await newRun(t, RECORDS, SPEED)
    const { cwd, sh, server } = run
    await startSlurm(t, run)
    const script = (name: string): string => join(examples, 'slurm', name)
    copyFileSync(script('external.sbatch'), join(cwd, 'external.sbatch'))
    const ok = async (program: string, ...args: string[]): Promise<string> => {
      const { status, text } = await sh(program, ...args)
      assert.equal(status, 0, `${program} ${args.join(' ')}: ${text}`)
      return text
    }
    while (!/idle/.test((await sh('sinfo', '-h')).text)) await sleep(200)

    const submitted = await ok(script('submit.sh'), String(SHARDS), 'external.sbatch')
    assert.equal(submitted.match(/Submitted batch job/g)?.length, 2, submitted)
    const second = await sh(script('submit.sh'), '1', 'external.sbatch')
    assert.equal(second.status, 2, 'not while tasks run')

    const ways = [
      (id: string) => ['scancel', '--signal=KILL', '--full', id],
      (id: string) => ['scontrol', 'requeue', id],
      (id: string) => ['scancel', '--signal=USR1', '--batch', id],
    ]
    const done = [0, 0, 0]
    let shards = SHARDS
    for (;;) {
      await sleep(700 + random() * 800)
      const now = answered(cwd)
      if (shards === SHARDS && now > RECORDS / 2) {
        await ok('scancel', '-n', 'completions', '--signal=KILL', '--full')
        await ok('scancel', '-n', 'completions')
        while ((await sh('squeue', '-h')).text !== '') await sleep(200)
        shards = SHARDS_LATER
        t.diagnostic(`${now} answers with ${SHARDS} shards, now ${shards}`)
      }
      if ((await sh('squeue', '-h')).text === '') {
        const retried = await ok(script('retry.sh'), String(shards), 'external.sbatch')
        if (retried.includes('nothing')) break
        continue
      }
      await startRequeued(sh)
      const { text } = await sh('squeue', '-h', '-r', '-t', 'R', '-o', '%i')
      const running = text.trim().split('\n')
      const id = running[Math.floor(random() * running.length)]!
      if (id === '' || now > RECORDS * 0.8 || done[0]! + done[1]! + done[2]! >= MOST_BLOWS) continue
      const way = (done[0]! + done[1]! + done[2]!) % ways.length
      const [program, ...args] = ways[way]!(id)
      // The task may have ended since.
      if ((await sh(program!, ...args)).status === 0) done[way]!++
    }
    t.diagnostic(`${done[0]} killed, ${done[1]} requeued, ${done[2]} warned`)
    assert.ok(Math.min(...done) >= 1, `a seed that does not try all: ${done.join()}`)

    const raw = readdirSync(cwd).filter((name) => /^raw\..*\.jsonl$/.test(name))
    const proof = await ok(script('prove.sh'), 'questions.jsonl', 'merged.jsonl', ...raw)
    assert.match(proof, /^PROVED: 2000 keys/m)
    const merged = readFileSync(join(cwd, 'merged.jsonl'), 'utf8').trimEnd().split('\n')
    const ids = merged.map((line) => (JSON.parse(line) as { id: number }).id)
    assert.deepEqual(
      ids.sort((a, b) => a - b),
      Array.from({ length: RECORDS }, (_, at) => at + 1),
    )
    assert.match(await ok(script('status.sh')), /"answered":\d+.*answers on disk: 2000/s)
    // A kill costs at most the eight requests in flight of a task, all tasks when N was changed.
    const again = server.stats().requests.completed - RECORDS
    const kills = done[0]! + done[1]! + SHARDS
    t.diagnostic(`${again} answers paid for twice`)
    assert.ok(again <= kills * 8 + RECORDS * 0.05, `${again} answers beside those in the files`)
  })
})
