/**
 * The rows in the journals of a store, in memory: they are no longer than a write buffer or two. Of a damaged journal as
 * much as can be made out is taken, under whatever checksums: the owner of the rows has checksums of its own.
 */
import { join } from 'node:path'
import { compareBytes } from '../base/bytes.ts'
import { decodeBatch } from './level-batch.ts'
import { readJournal, salvageJournal, type Fragment } from './level-journal.ts'
import type { Source } from './level-merge.ts'
import type { KeyVersion, OnDamage, ViewRange } from './level-table-view.ts'
import { Pace, PacedFile } from './paced-file.ts'

const nothing = new Uint8Array()

/** `names`: the newest first. */
export async function readJournals(
  path: string,
  names: readonly string[],
  onDamage: OnDamage,
): Promise<Source> {
  const versions: KeyVersion[] = []
  const pace = new Pace({})
  for (const name of names.toReversed()) {
    const file = await PacedFile.open(join(path, name), pace)
    if (file === undefined) continue
    try {
      const complain = (offset: number, what: string): void =>
        onDamage(`${name} at byte ${offset}: ${what}`)
      await readVersions(file, { versions, isNewest: name === names[0], complain })
    } finally {
      await file.close()
    }
  }
  versions.sort((one, other) => compareBytes(one.key, other.key) || one.sequence - other.sequence)
  const [first, last] = [versions[0]?.key ?? nothing, versions.at(-1)?.key ?? nothing]
  return { first, last, versions: (range) => walk(versions, range) }
}

interface Taking {
  readonly versions: KeyVersion[]
  readonly isNewest: boolean
  readonly complain: (offset: number, what: string) => void
}

async function readVersions(
  file: PacedFile,
  { versions, isNewest, complain }: Taking,
): Promise<void> {
  const records: Uint8Array[] = []
  let pieces: Uint8Array[] = []
  const { damage } = await readJournal(file, ({ bytes, isFirst, isLast }: Fragment) => {
    if (isFirst) pieces = []
    pieces.push(Uint8Array.from(bytes))
    if (isLast) records.push(Buffer.concat(pieces))
  })
  if (damage !== undefined) {
    complain(damage.offset, damage.what)
    records.length = 0
    await salvageJournal(file, isNewest, (bytes) => {
      if (bytes !== undefined) records.push(bytes)
    })
  }
  for (const record of records) {
    const { sequence, puts } = decodeBatch(record)
    for (const [place, { key, value }] of puts.entries()) {
      versions.push({ key, sequence: sequence + place, value })
    }
  }
}

function* walk(
  versions: readonly KeyVersion[],
  { gte, lt, reverse }: ViewRange,
): Generator<KeyVersion, undefined> {
  if (reverse === true) {
    for (let at = firstFrom(versions, lt, versions.length) - 1; at >= 0; at--) {
      const version = versions[at]
      if (version !== undefined) yield version
    }
    return undefined
  }
  for (let at = firstFrom(versions, gte, 0); at < versions.length; at++) {
    const version = versions[at]
    if (version !== undefined) yield version
  }
  return undefined
}

/** The first that is `key` or behind it; `otherwise`: there is no bound. */
function firstFrom(
  versions: readonly KeyVersion[],
  key: Uint8Array | undefined,
  otherwise: number,
): number {
  if (key === undefined) return otherwise
  let [low, high] = [0, versions.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const version = versions[middle]
    if (version !== undefined && compareBytes(version.key, key) < 0) low = middle + 1
    else high = middle
  }
  return low
}
