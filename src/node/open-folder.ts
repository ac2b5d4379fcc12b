/** Opens the stores of a node's data folder, as its configuration has them. */
import type { Logger } from 'pino'
import { openLevelStore } from '../adapters/level-storage.ts'
import { logStoreDefault, type NodeConfig } from '../config/node-config.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import { DataStore } from '../store/data-store.ts'
import { votingSpans } from '../store/row-format.ts'
import { openDataFolder, type DataFolder } from './data-folder.ts'
import type { FilesPlan } from './open-files-plan.ts'
import { openLog } from './open-log.ts'

/**
 * Rows come under random keys, so that every table is merged into all others, and smaller ones more
 * often: at half of this a node that overwrites rows among a million needs a tenth more CPU for a
 * commit; twice of this saves nothing more.
 */
const dataBufferBytes = 32 * 1024 * 1024

export interface FolderParts {
  readonly config: NodeConfig
  readonly logger: Pick<Logger, 'info'>
  readonly clock: Clock
  readonly trace: Trace
}

/** Rejects as `openDataFolder` does. */
export function openFolder(
  { config, logger, clock, trace }: FolderParts,
  { filesPerStore: openTablesMax }: Pick<FilesPlan, 'filesPerStore'>,
): Promise<DataFolder> {
  const { logStore: logKind = logStoreDefault } = config
  return openDataFolder(config.data, {
    logKind,
    openLog: (path) => openLog(path, logKind, openTablesMax),
    // Uncompressed blocks are read where the system has them, and need no cache.
    open: (path, readsAll) => {
      if (readsAll) logger.info('the run before ended soon after its start: reading all of data/')
      return openLevelStore(path, {
        ...{ compresses: false, writeBufferBytes: dataBufferBytes, openTablesMax },
        // The rest is scrubbed once the node serves: it may be hundreds of GB.
        ...{ checkedSpans: votingSpans, readsAll },
      })
    },
    probeData: (data) => DataStore.open(data, { clock, trace, limits: config.limits }),
  })
}
