/** Groups that leave their set ⇄ positional arrays: the pages in which the next set asks for them. */
import { packBits, readBits } from '../../base/bits.ts'
import { bucketCount, entryBytesMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import type { AfterRow, MovedPage } from '../../group/moving-port.ts'
import type {
  AdmitGroup,
  ExportGroup,
  LocateGroup,
  MoveGroup,
  OpenBuckets,
} from '../../txn/group-operation.ts'
import * as field from '../fields.ts'
import { packRow, readRow, readRowKey, readSubspace } from '../stored-row.ts'

const hashBytesMax = 64

export function packExport({ group, after }: ExportGroup): Packable[] {
  return [group, after && [after.subspace, after.key]]
}

export function packOpenBuckets({ group, from, term, buckets }: OpenBuckets): Packable[] {
  return [group, from, term, packBits(buckets, bucketCount)]
}

type Moving = ExportGroup | MoveGroup | AdmitGroup | LocateGroup | OpenBuckets

/** The requests but for those that are passed on. */
export function readMoving(kind: Moving['kind'], fields: readonly unknown[]): Moving {
  switch (kind) {
    case 'export-group':
      return readExport(fields)
    case 'move-group': {
      const [group, to, isTrial] = field.list(fields, kind, 3)
      const move = { kind, group: field.group(group), to: field.setName(to) }
      return field.flag(isTrial, 'a trial') ? { ...move, isTrial: true } : move
    }
    case 'admit-group': {
      const [group, from] = field.list(fields, kind, 2)
      return { kind, group: field.group(group), from: field.setName(from) }
    }
    case 'locate-group': {
      const [group] = field.list(fields, kind, 1)
      return { kind, group: field.group(group) }
    }
    case 'open-buckets':
      return readOpenBuckets(fields)
  }
}

function readExport(fields: readonly unknown[]): ExportGroup {
  const [group, after] = field.list(fields, 'export-group', 2)
  const asked = { kind: 'export-group', group: field.group(group) } as const
  return field.isAbsent(after) ? asked : { ...asked, after: readAfter(after) }
}

function readOpenBuckets(fields: readonly unknown[]): OpenBuckets {
  const [group, from, term, bits] = field.list(fields, 'open-buckets', 4)
  const buckets = readBits(field.bytes(bits, 'buckets', bucketCount), bucketCount) ?? []
  if (buckets.length === 0) throw new field.MalformedError('no buckets are to be opened')
  const of = { group: field.group(group), from: field.setName(from) }
  return { kind: 'open-buckets', ...of, term: field.count(term, 'term', 1), buckets }
}

function readAfter(value: unknown): AfterRow {
  const [subspace, key] = field.list(value, 'row', 2)
  return { subspace: readSubspace(subspace), key: readRowKey(key) }
}

export function packMovedPage({ position, rows, end }: MovedPage): Packable[] {
  return [position, rows.map(packRow), end && [end.state, end.hash]]
}

export function readMovedPage(fields: readonly unknown[]): MovedPage {
  const [at, rows, end] = field.list(fields, 'export-group', 3)
  const position = field.position(at)
  const page = { position, rows: field.list(rows, 'rows').map(readRow) }
  if (field.isAbsent(end)) return page
  const [state, hash] = field.list(end, 'end', 2)
  const record = field.bytes(state, 'state', entryBytesMax)
  if (field.isAbsent(hash)) return { ...page, end: { state: record } }
  return { ...page, end: { state: record, hash: field.bytes(hash, 'hash', hashBytesMax) } }
}
