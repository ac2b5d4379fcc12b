/** The kind of journal that a folder holds. Neither kind opens a folder of the other. */
import { readdir } from 'node:fs/promises'
import { StoreError } from '../base/errors.ts'
import { segmentEnding } from '../ports/segments.ts'

export type JournalKind = 'leveldb' | 'files'

const namesOfKind: Readonly<Record<JournalKind, string>> = {
  leveldb: 'LevelDB',
  files: 'segment files',
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
  const message = `the folder ${path} holds a journal of ${namesOfKind[found]}, and ${namesOfKind[wanted]} were to be opened there; set the kind that it holds, or stop the node and run: trilithon store convert ${path} --to ${wanted}`
  throw new StoreError('invalid', message)
}
