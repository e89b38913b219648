import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { isAlive } from '../../src/files/process-alive.ts'

test('a process is alive until it ends', async () => {
  assert.equal(isAlive(process.pid), true)
  const child = spawn('sleep', ['30'])
  const pid = child.pid!
  assert.equal(isAlive(pid), true)
  child.kill('SIGKILL')
  await new Promise((resolve) => child.once('exit', resolve))
  assert.equal(isAlive(pid), false)
})

test('one that has ended is dead, also while its parent has not asked after it', {
  skip: existsSync('/proc/self/stat') ? false : 'no /proc here: NOT TESTED',
}, async () => {
  // sleep never waits for the child that it took over from the shell.
  const parent = spawn('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 30'])
  try {
    const pid = await new Promise<number>((resolve) => {
      parent.stdout.once('data', (data: Buffer) => resolve(Number(data.toString())))
    })
    const state = (): string => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]![0]!
    while (state() !== 'Z') await new Promise((resolve) => setTimeout(resolve, 10))
    assert.equal(process.kill(pid, 0), true, 'its number is still taken')
    assert.equal(isAlive(pid), false)
  } finally {
    parent.kill('SIGKILL')
  }
})
