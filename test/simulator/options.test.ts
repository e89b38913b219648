import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OptionError, resolveOptions, type SimulatorOptions } from '../../src/simulator/options.ts'
import { SERVER_PROFILES } from '../../src/simulator/profiles.ts'
import { startSimulator } from '../../src/simulator/server.ts'

describe('options', () => {
  const wrong: SimulatorOptions[] = [
    { speed: 0 },
    { speed: -1 },
    { speed: Number.NaN },
    { peakTokensPerSecond: 0 },
    { peakTokensPerSecond: Number.POSITIVE_INFINITY },
    { prefillTokensPerSecond: -5 },
    { prefillChunk: 0 },
    { halfBatch: -1 },
    { maxNumSeqs: 1.5 },
    { kvCacheTokens: -1 },
    { meanTokens: 0 },
    { maxTokens: 0 },
    { maxModelLen: 0 },
    { lengthSigma: -1 },
    { reasoningShare: 1.1 },
    { keepAliveMs: -1 },
    { sseKeepAliveMs: -1 },
    { port: 65_536 },
    { seed: -1 },
    { faultSeed: 0.5 },
    { model: '' },
    { profile: 'nope' },
    { profile: 'toString' },
    { profile: '' },
    { reasoningField: 'thoughts' as 'both' },
  ]
  for (const options of wrong) {
    const [[name, value]] = Object.entries(options) as [[string, unknown]]
    it(`refuses ${name} ${String(value)}, and says so`, () => {
      assert.throws(
        () => resolveOptions(options),
        (error) => error instanceof OptionError && error.message.startsWith(`${name} must be `),
      )
    })
  }

  it('takes undefined for not given', () => {
    assert.equal(resolveOptions({ speed: undefined }).speed, 1)
  })

  it('takes from a profile what is not given', () => {
    for (const [profile, { options }] of Object.entries(SERVER_PROFILES)) {
      const { maxNumSeqs, seed, ...settings } = resolveOptions({ profile, maxNumSeqs: 7 })
      assert.deepEqual([maxNumSeqs, seed], [7, 0])
      for (const [name, value] of Object.entries(options)) {
        if (name !== 'maxNumSeqs') assert.equal(settings[name as 'halfBatch'], value)
      }
    }
  })

  it('reports them, and a port in use, before it starts', async () => {
    await assert.rejects(startSimulator({ speed: 0 }), OptionError)
    await assert.rejects(startSimulator({ faults: ['503'] }), /fault '503'/)
    await assert.rejects(startSimulator({ outages: ['soon'] }), /outage 'soon'/)
    const first = await startSimulator()
    await assert.rejects(startSimulator({ port: first.port }), /EADDRINUSE/)
    await first.close()
  })
})
