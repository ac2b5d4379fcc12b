/** A node as a long run sees it from outside: its folder, its memory, and its own status. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readMemory, type NodePlace } from '../processes.ts'

export interface NodeLook {
  readonly node: string
  /** Bytes that the disk has taken for files. */
  readonly logBytes: number
  readonly dataBytes: number
  /** Of the process, in bytes; 0: it does not run. */
  readonly memory: number
  /** The log begins with this flush. Absent: the node did not answer. */
  readonly firstFlush?: number
  readonly lackingGroups?: number
  readonly snapshotsTaken?: number
}

const blockBytes = 512

/** `pid`: absent while the node is down. */
export async function lookAt(
  place: NodePlace,
  folder: string,
  pid: number | undefined,
): Promise<NodeLook> {
  const [logBytes, dataBytes] = await Promise.all([
    bytesOnDisk(join(folder, 'log')),
    bytesOnDisk(join(folder, 'data')),
  ])
  const looked = { node: place.id, logBytes, dataBytes }
  if (pid === undefined) return { ...looked, memory: 0 }
  const { own } = await readMemory(pid)
  return { ...looked, memory: own, ...(await readStatus(place)) }
}

/** Files come and go while they are listed. */
async function bytesOnDisk(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  const sizes = await Promise.all(
    names.map(async (name) => {
      const found = await stat(join(folder, name)).catch(() => undefined)
      return found?.isFile() === true ? found.blocks * blockBytes : 0
    }),
  )
  return sizes.reduce((sum, one) => sum + one, 0)
}

export type Told = Pick<NodeLook, 'firstFlush' | 'lackingGroups' | 'snapshotsTaken'>

/** The node's own status; nothing, where it does not answer. */
export async function readStatus({ url }: NodePlace): Promise<Told> {
  const text = await fetch(`${url}/status`, { signal: AbortSignal.timeout(5_000) })
    .then((answer) => answer.text())
    .catch(() => '')
  const number = (name: string): number | undefined => {
    const digits = new RegExp(`"${name}":(\\d+)`).exec(text)?.[1]
    return digits === undefined ? undefined : Number(digits)
  }
  const [firstFlush, lackingGroups] = [number('firstFlush'), number('lackingGroups')]
  const snapshotsTaken = number('taken')
  return {
    ...(firstFlush !== undefined && { firstFlush }),
    ...(lackingGroups !== undefined && { lackingGroups }),
    ...(snapshotsTaken !== undefined && { snapshotsTaken }),
  }
}
