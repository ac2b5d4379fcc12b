/**
 * Whose a data folder is, in a file beside `log/`: a damaged log cannot tell it. The note is written once a peer has had a
 * link with the store. So a folder that was emptied by hand has none: its peers refuse its store.
 */
import { join } from 'node:path'
import { readBounded } from '../adapters/bounded-file.ts'
import { writeDurably } from '../adapters/durable-file.ts'
import { isClusterId, isNodeId, type ClusterId, type NodeId } from '../base/ids.ts'

export const identityName = 'store.json'
/** More than any such note has. */
const noteBytesMax = 65_536

export interface FolderIdentity {
  readonly cluster: ClusterId
  readonly node: NodeId
  /** The last store whose link a peer has taken. */
  readonly storeId: string
}

/** Undefined where no note can be read. */
export async function readIdentity(folder: string): Promise<FolderIdentity | undefined> {
  try {
    const bytes = await readBounded(join(folder, identityName), noteBytesMax)
    const found: unknown = JSON.parse(bytes?.toString() ?? '')
    if (typeof found !== 'object' || found === null) return undefined
    if (!('cluster' in found) || !('node' in found) || !('storeId' in found)) return undefined
    const { cluster, node, storeId } = found
    if (typeof cluster !== 'string' || !isClusterId(cluster)) return undefined
    if (typeof node !== 'string' || !isNodeId(node)) return undefined
    if (typeof storeId !== 'string') return undefined
    return { cluster, node, storeId }
  } catch {
    // There is none, or half of one: the folder proves nothing.
    return undefined
  }
}

/** Resolves when the note is durable. Rejects with the error of the system. */
export async function writeIdentity(folder: string, identity: FolderIdentity): Promise<void> {
  await writeDurably(join(folder, identityName), `${JSON.stringify(identity)}\n`)
}
