// Compiles src/kernel/ to WebAssembly, as text in src/core/kernel-code.ts, which is committed: a build
// needs no compiler of AssemblyScript. With --check it says whether that file is what comes out.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { main } from 'assemblyscript/asc'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = `${root}src/core/kernel-code.ts`

const OPTIONS = [
  '-O3',
  // Nothing is allocated, and nothing thrown.
  ...['--runtime', 'stub', '--noAssert', '--use', 'abort='],
  ...['--enable', 'simd', '--enable', 'threads'],
  // One page at least, all that there can be at most: each memory has its own size.
  ...['--importMemory', '--sharedMemory', '--noExportMemory'],
  ...['--initialMemory', '1', '--maximumMemory', '65536'],
  // Values of 128 bits pass between the files here alone.
  ...['--disableWarning', '112'],
]

let code
const { error, stderr } = await main(['index.ts', '--outFile', 'kernel.wasm', ...OPTIONS], {
  readFile: (name, folder) =>
    read(`${root}src/kernel/${folder === '.' ? '' : `${folder}/`}${name}`),
  writeFile: (_name, contents) => {
    code = contents
  },
  listFiles: () => [],
})
if (error) {
  console.error(stderr.toString())
  process.exit(1)
}

const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })
const kernel = new WebAssembly.Instance(new WebAssembly.Module(code), { env: { memory } })
const text = `/** Bytes that the kernel has for itself at the end of a memory. */
export const KERNEL_SCRATCH = ${kernel.exports.SCRATCH.value}

/** The WebAssembly that \`npm run build:kernel\` makes of src/kernel/, in base64. */
export const KERNEL_CODE =
  '${Buffer.from(code).toString('base64')}'
`
if (!process.argv.includes('--check')) writeFileSync(target, text)
else if (read(target) !== text) {
  console.error('src/core/kernel-code.ts is not what src/kernel/ gives: npm run build:kernel')
  process.exit(1)
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
