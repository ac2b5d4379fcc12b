/**
 * The stores of a node that does not run, opened so that nothing in its folder changes. The readers of this folder know
 * the log by the port of journals, whichever files keep it.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { journalKindOf } from '../adapters/journal-kind.ts'
import { viewLevelStore, type LevelView } from '../adapters/level-view.ts'
import { OrderedJournal } from '../journal/ordered-journal.ts'
import type { CheckPace } from '../ports/storage.ts'
import type { StoreName } from './finding.ts'
import { viewSegments, type LogView } from './segment-view.ts'

export interface StoppedNode {
  readonly log: LogView['log']
  /** Undefined: the folder has no `data/`; the next start makes it out of the log. */
  readonly data: LevelView | undefined
  /** False: of this store no row can be read at all. */
  readonly isReadable: Readonly<Record<StoreName, boolean>>
  /** Names of the folders in which starts have put aside what was damaged. */
  readonly asides: readonly string[]
  /** Bytes of the files of each store. */
  readonly fileBytes: Readonly<Record<StoreName, number>>
  /** Reads every file of both stores, and tells of each that is damaged. */
  checkFiles(store: StoreName, pace: CheckPace): Promise<void>
  close(): Promise<void>
}

/** `onDamage`: of a file, then and whenever a read meets it; often the same twice. */
export async function openStoppedNode(
  path: string,
  onDamage: (store: StoreName, what: string) => void,
): Promise<StoppedNode> {
  const [logPath, dataPath] = [join(path, 'log'), join(path, 'data')]
  const log = await viewLog(logPath, (what) => onDamage('log', what))
  const names = await readdir(path)
  const hasData = names.includes('data')
  const data = hasData
    ? await viewLevelStore(dataPath, (what) => onDamage('data', what))
    : undefined
  const views = { log, data }
  return {
    log: log.log,
    data,
    asides: names.filter((name) => /^(?:log|data)\.damaged$/.test(name)),
    isReadable: { log: log.isReadable, data: data?.isReadable === true },
    fileBytes: {
      log: await sumFileBytes(logPath),
      data: hasData ? await sumFileBytes(dataPath) : 0,
    },
    checkFiles: async (store, pace) => views[store]?.checkFiles(pace),
    close: async () => {
      await log.close()
      await data?.close()
    },
  }
}

/** Of either kind. `onDamage`: as `openStoppedNode` has it. */
export async function viewLog(path: string, onDamage: (what: string) => void): Promise<LogView> {
  if ((await journalKindOf(path)) === 'files') return viewSegments(path, onDamage)
  const view = await viewLevelStore(path, onDamage)
  return {
    log: new OrderedJournal(view),
    isReadable: view.isReadable,
    checkFiles: (pace) => view.checkFiles(pace),
    close: () => view.close(),
  }
}

/** Of a store's own files; a folder in it holds second names of some of them. */
async function sumFileBytes(path: string): Promise<number> {
  let bytes = 0
  for (const name of await readdir(path)) {
    const found = await stat(join(path, name)).catch(() => undefined)
    if (found?.isFile() === true) bytes += found.size
  }
  return bytes
}
