/** The bytes of the row that says who votes in a replica set (`change.ts`). */
import { firstVersion, isVersion, ownVersions, type Versions } from '../base/cluster-version.ts'
import { isNodeId, isStoreId, type NodeId } from '../base/ids.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import { readNodes } from '../log/own-epochs.ts'
import type { Change, ChangeKind, ChangePhase, SeatedStore, SetRow } from './change.ts'

const rowFormat = 1
/** With read-only members. A build of before does not know who takes part then, and says so. */
const readersFormat = 2
/** With a cluster version above the first one, and with all that stands in the format before. Builds of the first version refuse it. */
const versionFormat = 3
/** The cluster version whose builds know that format. */
const versionFormatSince = 2
const kinds: readonly string[] = [
  ...(['replace', 'add', 'remove', 'renew', 'recover'] as const),
  ...(['add-reader', 'promote', 'demote'] as const),
] satisfies ChangeKind[]
const phases: readonly string[] = [
  ...(['copying', 'sealing', 'done', 'given-up'] as const),
] satisfies ChangePhase[]

export function encodeRow(row: SetRow): Uint8Array {
  const { epoch, voters = [], before = [], urls, stores, readers, lastSeat, change } = row
  const packedChange = change && [
    ...[change.number, change.kind, change.phase, change.node, change.seat],
    ...[change.store, change.sinceMicros],
  ]
  const nodes = [[...voters], [...before], [...urls].map((one) => [...one])]
  const fields = [epoch, packStores(stores), lastSeat, packedChange, ...nodes]
  if (row.version !== undefined && row.version > firstVersion) {
    return pack([versionFormat, ...fields, packStores(readers), row.version])
  }
  if (readers.size === 0) return pack([rowFormat, ...fields])
  return pack([readersFormat, ...fields, packStores(readers)])
}

function packStores(stores: SetRow['stores']): Packable[] {
  return [...stores].map(([node, { store, seat }]) => [node, store, seat])
}

/** Undefined for bytes that are not such a row. `supports`: of the build that reads it, or that a node acts as. */
export function decodeRow(bytes: Uint8Array, supports: Versions = ownVersions): SetRow | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields)) return undefined
  const [format, epoch, , lastSeat, packed]: unknown[] = fields
  if (!isReadable(format, supports)) return undefined
  if (!isCount(epoch) || epoch < 1 || !isCount(lastSeat)) return undefined
  const seated = readSeatedStores(fields)
  const names = readNames(fields)
  if (seated === undefined || names === undefined) return undefined
  const row = { epoch, lastSeat, ...seated, ...names }
  if (packed === undefined || packed === null) return row
  const change = readChange(packed)
  return change && { ...row, change }
}

function isReadable(format: unknown, { max }: Versions): boolean {
  if (format === versionFormat) return max >= versionFormatSince
  return format === rowFormat || format === readersFormat
}

function readSeatedStores(
  fields: readonly unknown[],
): Pick<SetRow, 'stores' | 'readers'> | undefined {
  const stores = readStores(fields[2])
  const readers = readStores(fields[0] === rowFormat ? [] : fields[8])
  return stores && readers && { stores, readers }
}

function readNames(
  fields: readonly unknown[],
): Pick<SetRow, 'voters' | 'before' | 'urls' | 'version'> | undefined {
  const [voters, before, urls] = [readNodes(fields[5]), readNodes(fields[6]), readUrls(fields[7])]
  const versions = readVersion(fields)
  if (voters === undefined || before === undefined || urls === undefined) return undefined
  return (
    versions && {
      ...{ urls, ...versions },
      ...(voters.length > 0 && { voters }),
      ...(before.length > 0 && { before }),
    }
  )
}

function readVersion([format, ...fields]: readonly unknown[]): Pick<SetRow, 'version'> | undefined {
  if (format !== versionFormat) return {}
  const version = fields[8]
  // The first one has no name in the row.
  return isVersion(version) && version > firstVersion ? { version } : undefined
}

function readUrls(list: unknown): SetRow['urls'] | undefined {
  if (!Array.isArray(list)) return undefined
  const urls = new Map<NodeId, string>()
  for (const one of list) {
    const [node, url]: unknown[] = Array.isArray(one) ? one : []
    if (typeof node !== 'string' || !isNodeId(node) || typeof url !== 'string') return undefined
    urls.set(node, url)
  }
  return urls
}

function readStores(list: unknown): SetRow['stores'] | undefined {
  if (!Array.isArray(list)) return undefined
  const stores = new Map<NodeId, SeatedStore>()
  for (const one of list) {
    const [node, store, seat]: unknown[] = Array.isArray(one) ? one : []
    if (typeof node !== 'string' || !isNodeId(node)) return undefined
    if (typeof store !== 'string' || !isStoreId(store) || !isCount(seat)) return undefined
    stores.set(node, { store, seat })
  }
  return stores
}

function readChange(packed: unknown): Change | undefined {
  if (!Array.isArray(packed)) return undefined
  const [number, kind, phase, node, seat, store, sinceMicros]: unknown[] = packed
  if (!isCount(number) || !isPhase(phase) || !isCount(sinceMicros)) return undefined
  if (!isKind(kind)) return undefined
  if (kind === 'renew' || kind === 'recover') return { number, kind, phase, sinceMicros }
  if (typeof node !== 'string' || !isNodeId(node)) return undefined
  if (kind === 'remove' || kind === 'demote') return { number, kind, phase, node, sinceMicros }
  return readSeated({ number, kind, phase, node, sinceMicros }, seat, store)
}

function readSeated(change: Change, seat: unknown, store: unknown): Change | undefined {
  if (!isCount(seat)) return undefined
  const common = { ...change, seat }
  if (store === undefined || store === null) return common
  return typeof store === 'string' && isStoreId(store) ? { ...common, store } : undefined
}

function isKind(value: unknown): value is ChangeKind {
  return typeof value === 'string' && kinds.includes(value)
}

function isPhase(value: unknown): value is ChangePhase {
  return typeof value === 'string' && phases.includes(value)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
