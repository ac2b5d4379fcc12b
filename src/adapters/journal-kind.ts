/** The kind of journal that a folder holds. Neither kind opens a folder of the other. */
import { readdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StoreError } from '../base/errors.ts'
import { segmentEnding } from '../ports/segments.ts'

export const journalKinds = ['leveldb', 'files'] as const

export type JournalKind = (typeof journalKinds)[number]

const namesOfKind: Readonly<Record<JournalKind, string>> = {
  leveldb: 'LevelDB',
  files: 'segment files',
}

/** As a sentence calls it. */
export function nameKind(kind: JournalKind): string {
  return namesOfKind[kind]
}

/** `empty`: nothing of either kind is there, or no such folder. */
export async function journalKindOf(path: string): Promise<JournalKind | 'empty'> {
  const names = await readdir(path).catch((): string[] => [])
  // A folder of LevelDB that was made before any other file was is one, too.
  if (names.some((name) => /^(?:CURRENT|MANIFEST-\d+|\d+\.(?:ldb|sst|log))$/.test(name)))
    return 'leveldb'
  return names.some((name) => name.endsWith(segmentEnding)) ? 'files' : 'empty'
}

/** Rejects with `invalid` where the folder holds the other kind. */
export async function refuseOtherKind(path: string, wanted: JournalKind): Promise<void> {
  const found = await journalKindOf(path)
  if (found === 'empty' || found === wanted) return
  const [there, asked] = [namesOfKind[found], namesOfKind[wanted]]
  const message = `the folder ${path} holds a log in ${there}, and log_store asks for ${asked}; set log_store: ${found}, or stop the node and run: trilithon store convert ${dirname(path)} --to ${wanted}`
  throw new StoreError('invalid', message)
}
