/** The settings that a node runs with, once its configuration has been found good. */
import type { ClusterId, NodeId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Listen, LogLevel, NodeAddress } from './values.ts'
import type { ListenerSettings } from './listener-settings.ts'
import type { JournalKind } from '../adapters/journal-kind.ts'

/** Of `bufferCopies`. */
export const bufferCopiesDefault = 1
/** Of `logStore`. */
export const logStoreDefault: JournalKind = 'leveldb'

export interface NodeConfig {
  readonly cluster: ClusterId
  readonly node: NodeId
  readonly listen: Listen
  /** Absolute. */
  readonly data: string
  readonly nodes: readonly NodeAddress[]
  /** Where clients reach this node: scheme, host and port. Absent: where its peers do. */
  readonly advertisedUrl?: string
  readonly secretFile: string | undefined
  /** Of what nodes prove to one another with. Absent: see `../node/peer-secret.ts`. */
  readonly peerSecretFile?: string | undefined
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly insecure: boolean
  readonly logLevel: LogLevel
  /** How `log/` is kept; absent: the default. */
  readonly logStore?: JournalKind
  readonly drainTimeoutMs: number
  /** Other replica sets that each take a copy of a cell whose own set is silent; 0: none. */
  readonly bufferCopies: number
  /** The seat of an empty data folder that takes the place of another store of this node; absent: it is the node's first. */
  readonly seat?: number
  /**
   * Where the log must not be used, the node asks the others that an empty store takes the place of its own. Absent: it does not,
   * and ends.
   */
  readonly healLog?: boolean
  readonly limits: Limits
  /** Absent: the defaults. */
  readonly listener?: ListenerSettings
  /** Bodies of the HTTP requests at work, together; absent: the default. */
  readonly requestBytesMax?: number
}
