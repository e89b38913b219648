// Bundles bin/ and examples/ into dist/: each program is a few files instead of seventy, which takes a
// third off its start. Packages stay outside. Runs on plain Node, before anything is built.
import { chmodSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

// An installed package holds dist/ and no bundler.
if (existsSync(`${root}node_modules/esbuild`) && existsSync(`${root}src`)) {
  const { build } = await import('esbuild')
  const bundle = (file, out = file.replace(/\.ts$/, '')) =>
    build({
      absWorkingDir: root,
      entryPoints: [{ in: file, out }],
      outdir: 'dist',
      // What is imported later, and what several of those share: beside the thread that they start.
      chunkNames: `bin/${basename(file, '.ts')}-[name]-[hash]`,
      bundle: true,
      splitting: true,
      packages: 'external',
      format: 'esm',
      platform: 'node',
      target: 'node20.19',
      logLevel: 'warning',
    })
  rmSync(`${root}dist`, { recursive: true, force: true })
  const binaries = readdirSync(`${root}bin`)
  await Promise.all([
    ...binaries.map((name) => bundle(`bin/${name}`)),
    bundle('examples/demo.ts'),
    bundle('src/app/look-worker.ts', 'bin/look-worker'),
  ])
  for (const name of binaries) chmodSync(`${root}dist/bin/${basename(name, '.ts')}.js`, 0o755)
  writeFileSync(`${root}dist/.built`, '')
}
