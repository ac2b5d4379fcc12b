/**
 * `recovery.json` in a node's data folder: an operator has begun an epoch there, since a majority of the voters is lost for good
 * (`../log/quorum-loss.ts`). The next start takes it up, and the file goes when the log has it.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readBounded } from '../adapters/bounded-file.ts'
import { writeDurably } from '../adapters/durable-file.ts'
import { syncFolder } from '../adapters/sync-folder.ts'
import type { Logger } from 'pino'
import { StoreError } from '../base/errors.ts'
import { isNodeId, type NodeId } from '../base/ids.ts'

export const recoveryName = 'recovery.json'

const noteBytesMax = 65_536

export interface RecoveryNote {
  /** The store that it was written for: another one does not take it up. */
  readonly storeId: string
  readonly epoch: number
  /** The nodes that vote in it. */
  readonly voters: readonly NodeId[]
}

/** Rejects with the error of the system. */
export async function writeRecovery(folder: string, note: RecoveryNote): Promise<void> {
  const text = JSON.stringify({ ...note, at: new Date().toISOString() })
  await writeDurably(join(folder, recoveryName), `${text}\n`)
}

/** The note of the folder, as an option of a start. Rejects with `invalid` where there is one that cannot be understood. */
export async function findRecovery(
  folder: string,
  logger: Pick<Logger, 'warn'>,
): Promise<{ readonly recovery?: RecoveryNote }> {
  const path = join(folder, recoveryName)
  const bytes = await readBounded(path, noteBytesMax).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'none'
    throw error
  })
  if (bytes === 'none') return {}
  const recovery = bytes === undefined ? undefined : parseNote(Buffer.from(bytes).toString())
  if (recovery === undefined) {
    const text = `${path} is not as trilithon recover writes it: remove it, and run that command again`
    throw new StoreError('invalid', text)
  }
  logger.warn({ ...recovery }, 'an operator has begun this epoch')
  return { recovery }
}

export async function removeRecovery(folder: string): Promise<void> {
  await rm(join(folder, recoveryName), { force: true })
  await syncFolder(folder)
}

function parseNote(text: string): RecoveryNote | undefined {
  let found: unknown
  try {
    found = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof found !== 'object' || found === null) return undefined
  if (!('storeId' in found && 'epoch' in found && 'voters' in found)) return undefined
  const { storeId, epoch, voters } = found
  if (typeof storeId !== 'string' || !Array.isArray(voters) || voters.length === 0) return undefined
  if (typeof epoch !== 'number' || !Number.isSafeInteger(epoch) || epoch < 1) return undefined
  const nodes = voters.filter((one: unknown): one is NodeId => {
    return typeof one === 'string' && isNodeId(one)
  })
  return nodes.length === voters.length ? { storeId, epoch, voters: nodes } : undefined
}
