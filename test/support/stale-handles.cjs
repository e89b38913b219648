// Preloaded into a binary (--require): the first opening, the second reading and the first writing of
// each file named in STALE_FILES fail as they do where the server of a mount has lost the handle.
const fs = require('node:fs')
const { syncBuiltinESMExports } = require('node:module')

const names = process.env.STALE_FILES.split(':')
const opened = new Map()
const calls = new Map()
const stale = () => Object.assign(new Error('ESTALE: stale file handle'), { code: 'ESTALE' })
const isTurn = (what, file, turn) => {
  const key = `${what} ${file}`
  const count = (calls.get(key) ?? 0) + 1
  calls.set(key, count)
  if (count === turn) fs.appendFileSync(process.env.STALE_LOG, `${key}\n`)
  return count === turn
}
const { open, openSync, read, write, close, closeSync } = fs
fs.open = (file, flags, ...rest) => {
  const callback = rest.at(-1)
  if (names.includes(file) && isTurn('open', file, 1)) return callback(stale())
  return open(file, flags, ...rest.slice(0, -1), (error, fd) => {
    if (!error && names.includes(file)) opened.set(fd, file)
    callback(error, fd)
  })
}
fs.openSync = (file, ...rest) => {
  if (names.includes(file) && isTurn('open', file, 1)) throw stale()
  const fd = openSync(file, ...rest)
  if (names.includes(file)) opened.set(fd, file)
  return fd
}
fs.read = (fd, ...rest) => {
  const file = opened.get(fd)
  if (file !== undefined && isTurn('read', file, 2)) return rest.at(-1)(stale())
  return read(fd, ...rest)
}
fs.write = (fd, ...rest) => {
  const file = opened.get(fd)
  if (file !== undefined && isTurn('write', file, 1)) return rest.at(-1)(stale())
  return write(fd, ...rest)
}
fs.close = (fd, ...rest) => {
  opened.delete(fd)
  return close(fd, ...rest)
}
fs.closeSync = (fd) => {
  opened.delete(fd)
  return closeSync(fd)
}
syncBuiltinESMExports()
