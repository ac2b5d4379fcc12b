/** Shared by the tests of snapshots between peers: groups, nodes, rows, and a turn of the loop. */
import { nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import type { SnapshotRow } from '../../src/replication/message.ts'
import { group } from '../log/log-fixture.ts'

export const a: GroupId = group('a')
export const b: GroupId = group('b')
export const c: GroupId = group('c')
export const peer: NodeId = nodeId('peer')
export const other: NodeId = nodeId('other')

export function row(key: string, bytes = 10): SnapshotRow {
  return { subspace: 1, key: Buffer.from(key), stamp: 1, payload: Buffer.alloc(bytes, key) }
}

/** Lets promises that are settled have their say. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
