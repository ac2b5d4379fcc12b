/** Data folders of real nodes, which ran for a moment: one is made, and each test damages a copy of it. */
import { createHash, randomUUID } from 'node:crypto'
import { cp, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { JournalKind } from '../../src/adapters/journal-kind.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { connect } from '../../src/client/connect.ts'
import type { Client } from '../../src/client/client.ts'
import { mainSet } from '../../src/config/values.ts'
import { Daemon } from '../../src/node/daemon.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'

/** Runs a node alone on the folder, has `work` done, and stops it in order. */
export async function runNode(
  folder: string,
  work: (client: Client) => Promise<void>,
  logStore: JournalKind = 'leveldb',
): Promise<void> {
  const node = nodeId('a')
  // Many small batches: the journal of data/ has more than its last record.
  const limits = { ...defaultLimits, checkpointMs: 1 }
  const daemon = await Daemon.start({
    config: {
      ...{ cluster: clusterId('test'), node, data: folder, limits },
      listen: { host: '127.0.0.1', port: 0 },
      nodes: [{ id: node, url: 'http://127.0.0.1:1', set: mainSet }],
      ...{ secretFile: undefined, tls: undefined, insecure: false, logLevel: 'error', logStore },
      ...{ drainTimeoutMs: 5_000, bufferCopies: 0 },
    },
    files: { secret: undefined, tls: undefined },
    logger: pino({ level: 'silent' }),
    version: '0',
    gateway: () => () => Promise.resolve(new Response()),
    portFlag: '--port',
  })
  try {
    const client = await connect({ endpoints: [daemon.url] })
    await work(client)
    await client.close()
  } finally {
    await daemon.stop()
  }
}

/** The rows that `makeFolderOfRuns` writes again and again. */
export const rowKey = '7b8cde22-8396-45e4-978c-76dd7311daa0'

/** A folder of a node that ran three times: rows of the first two runs are in tables, the others in journals. */
export async function makeFolderOfRuns(logStore: JournalKind = 'leveldb'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-inspect-'))
  for (let run = 0; run < 3; run++) {
    await runNode(
      folder,
      async (client) => {
        const cells = client.cells('trips')
        for (let at = 0; at < 20; at++) {
          const refKey = 20 * run + at
          await cells.put({ rowKey, column: 'BASE', refKey, body: { city: 'Berlin', run, at } })
          const other = { rowKey: randomUUID(), column: 'BASE', refKey: 0 }
          await cells.put({ ...other, body: { note: 'x'.repeat(50 * at) } })
        }
      },
      logStore,
    )
  }
  return folder
}

export async function copyFolder(folder: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'trilithon-inspect-'))
  await cp(folder, copy, { recursive: true, preserveTimestamps: true })
  return copy
}

export function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true })
}

/** Changes a store as a program would that has its checksums right. */
export async function changed(
  path: string,
  change: (store: OrderedStore) => Promise<void>,
): Promise<void> {
  const store = await openLevelStore(path)
  try {
    await change(store)
  } finally {
    await store.close()
  }
}

/** Each file with its bytes and times. */
export async function snapshotFiles(folder: string): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>()
  const names = await readdir(folder, { recursive: true })
  for (const name of names.toSorted()) {
    const found = await stat(join(folder, name))
    const bytes = found.isFile() ? digestOf(await readFile(join(folder, name))) : ''
    files.set(name, `${found.mtimeMs} ${found.ctimeMs} ${found.size} ${bytes}`)
  }
  return files
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
