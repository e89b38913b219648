import type { Socket } from 'node:net'

/**
 * Ends a connection by a RST.
 *
 * One that is already ending is closed instead: libuv refuses to reset it (uv_tcp_close_reset,
 * EINVAL), and Node 20 then takes it for closed all the same and waits for it for ever, in a loop
 * that leaves no core idle, when the process ends.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy()
  else socket.resetAndDestroy()
}
