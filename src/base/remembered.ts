/** A node's memory of another one's store: it stands in logs, and handshakes carry it. */
import { isNodeId, type NodeId } from './ids.ts'

export interface RememberedStore {
  readonly node: NodeId
  /** The store that it votes with. */
  readonly storeId: string
  /** How far its log had come. */
  readonly durableFlush: number
  readonly incarnation: number
  /** Drawn when it started: tells two runs of one incarnation apart. */
  readonly run: number
}

export type RememberedRow = readonly [string, string, number, number, number]

export function encodeRemembered(one: RememberedStore): RememberedRow {
  return [one.node, one.storeId, one.durableFlush, one.incarnation, one.run]
}

/** The rows as they are packed; undefined when one of them is something else. */
export function decodeRemembered(rows: readonly unknown[]): readonly RememberedStore[] | undefined {
  const found: RememberedStore[] = []
  for (const row of rows) {
    if (!Array.isArray(row)) return undefined
    const [node, storeId, durableFlush, incarnation, run]: unknown[] = row
    if (typeof node !== 'string' || !isNodeId(node) || typeof storeId !== 'string') return undefined
    if (!isCount(durableFlush) || !isCount(incarnation) || !isCount(run)) return undefined
    found.push({ node, storeId, durableFlush, incarnation, run })
  }
  return found
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
