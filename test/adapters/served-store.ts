/**
 * Opens copies of a damaged store and tells what they serve: a program of its own, since LevelDB ends the process
 * where a flipped bit breaks one of its assertions.
 *
 * One request a line of its input, a `ServedRequest` in JSON; one answer a line: `null`, the store was refused as
 * `corrupt`; else [its last commit, its rows by their keys, its rows by scans].
 */
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { StoreError } from '../../src/base/errors.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { DataStore } from '../../src/store/data-store.ts'

export interface ServedRequest {
  readonly path: string
  readonly checkTables: boolean
}

export const groups: readonly GroupId[] = ['a', 'b', 'c'].map((name) =>
  groupOfBytes(Buffer.from(name)),
)
export const keys: readonly string[] = Array.from({ length: 60 }, (_, i) => `row ${i}`)

export function openData(store: Awaited<ReturnType<typeof openLevelStore>>): Promise<DataStore> {
  return DataStore.open(store, { clock: systemClock, trace: silentTrace, limits: defaultLimits })
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

export function textOf(rows: ReadonlyMap<string, string>): string {
  return [...rows]
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join('\n')
}

async function served({ path, checkTables }: ServedRequest): Promise<string[] | null> {
  const store = await openLevelStore(path, { checkTables }).catch(refusal)
  if (store === null) return null
  try {
    const data = await openData(store)
    const read = new Map<string, string>()
    const scanned = new Map<string, string>()
    for (const group of groups) {
      for (const key of keys) {
        const row = data.get(group, Buffer.from(key))
        if (row !== undefined) read.set(`${group}/${key}`, hexOf(row.value))
      }
      for (const { key, value } of await data.scan(group, {})) {
        scanned.set(`${group}/${Buffer.from(key).toString()}`, hexOf(value))
      }
    }
    const last = Math.max(...groups.map((group) => data.applied(group).position))
    return [String(last), textOf(read), textOf(scanned)]
  } catch (error) {
    return refusal(error)
  } finally {
    await store.close()
  }
}

/** Any other error ends the program, and with it the test. */
function refusal(error: unknown): null {
  if (error instanceof StoreError && error.code === 'corrupt') return null
  throw error
}

async function main(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const request: ServedRequest = JSON.parse(line)
    process.stdout.write(`${JSON.stringify(await served(request))}\n`)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
