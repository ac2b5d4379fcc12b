/**
 * How the files that a process may have open are shared out. LevelDB that cannot open a file ends the
 * node, so that its files come first, and connections have what is left.
 */
import type { ConnectionLimits } from '../adapters/connections.ts'
import { StoreError } from '../base/errors.ts'

/**
 * The files that the process itself has open, and LevelDB besides its tables: logs, manifests, tables being
 * written.
 */
const ownFiles = 64
/** Tables, or segment files, that one store may have open; LevelDB's own default at most. */
const storeFilesMin = 64
const storeFilesMax = 1_000
const connectionsMin = 32
/** Where the system tells no bound. */
const unknownFiles = 8_192

export interface FilesAsked {
  /** Undefined: not known. */
  readonly openFilesMax: number | undefined
  /** Stores of LevelDB or of segment files. */
  readonly stores: number
  /** Other processes that this one keeps links with, each perhaps twice while one replaces another. */
  readonly others: number
  readonly wanted: ConnectionLimits
}

export interface FilesPlan {
  /** Tables of LevelDB, or segments. */
  readonly filesPerStore: number
  readonly connections: ConnectionLimits
  /** Set when `connections` are fewer than wanted: for the log. */
  readonly isLess: boolean
}

/** Throws, in words, where not even the least fits. */
export function planOpenFiles({ openFilesMax, stores, others, wanted }: FilesAsked): FilesPlan {
  const own = ownFiles + 2 * others
  const least = own + stores * storeFilesMin + connectionsMin
  const files = openFilesMax ?? Math.max(unknownFiles, least)
  if (files < least) {
    throw new StoreError(
      'invalid',
      `this process may have ${files} files open, and wants ${least} at least: raise the limit (ulimit -n 4096, or LimitNOFILE=4096 for systemd) and start it again`,
    )
  }
  const quarter = Math.floor((files - own) / 4)
  const filesPerStore = stores === 0 ? 0 : Math.min(storeFilesMax, Math.max(storeFilesMin, quarter))
  const connectionsMax = Math.min(wanted.connectionsMax, files - own - stores * filesPerStore)
  if (connectionsMax === wanted.connectionsMax) {
    return { filesPerStore, connections: wanted, isLess: false }
  }
  const connections = shrunk(wanted, connectionsMax)
  return { filesPerStore, connections, isLess: true }
}

/** The same shares of fewer connections, but a quarter for strangers at most. */
function shrunk(wanted: ConnectionLimits, connectionsMax: number): ConnectionLimits {
  const unprovenMax = Math.min(wanted.unprovenMax, Math.floor(connectionsMax / 4))
  const share = (count: number, of: number, now: number): number =>
    Math.max(1, Math.ceil((count * now) / of))
  return {
    connectionsMax,
    connectionsPerAddressMax: share(
      wanted.connectionsPerAddressMax,
      wanted.connectionsMax,
      connectionsMax,
    ),
    unprovenMax,
    unprovenPerAddressMax: share(wanted.unprovenPerAddressMax, wanted.unprovenMax, unprovenMax),
  }
}
