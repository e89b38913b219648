// Preloaded into a binary (--require): notes for each write to a file whether it holds whole lines.
const fs = require('node:fs')
const { syncBuiltinESMExports } = require('node:module')

const { write } = fs
fs.write = (fd, bytes, at, length, position, callback) => {
  const whole = bytes[at + length - 1] === 0x0a
  fs.appendFileSync(process.env.WRITES_LOG, `${whole ? 'whole' : 'torn'} ${length}\n`)
  return write(fd, bytes, at, length, position, callback)
}
syncBuiltinESMExports()
