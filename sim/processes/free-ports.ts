/**
 * Ports of loopback that were free a moment ago, to be listened on a moment later. They lie below
 * the range from which systems pick ports for other programs. A port of that range would be the
 * next that another program gets.
 */
import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'

const lowest = 15_000
/** Linux draws from 32768 on, others from 49152 on. */
const drawnFrom = 32_768
const triesPerPort = 100

/** All different. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = new Map<number, Server>()
  try {
    for (let tries = count * triesPerPort; servers.size < count; tries--) {
      if (tries === 0) throw new Error(`no ${count} free ports from ${lowest} to ${drawnFrom - 1}`)
      const port = randomInt(lowest, drawnFrom)
      const server = await listenOn(port)
      if (server !== undefined) servers.set(port, server)
    }
    return [...servers.keys()]
  } finally {
    await Promise.all([...servers.values()].map(closed))
  }
}

/** Whether the port is free now. */
export async function isFree(port: number): Promise<boolean> {
  const server = await listenOn(port)
  if (server !== undefined) await closed(server)
  return server !== undefined
}

/** Undefined when another program listens there. */
function listenOn(port: number): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined)
      else reject(error)
    })
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
  })
}
