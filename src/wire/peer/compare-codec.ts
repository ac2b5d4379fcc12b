/** The messages by which nodes compare their groups, without the number of their kind. */
import type { Packable } from '../../base/pack.ts'
import type { CompareMessage, ToldMark } from '../../replication/message.ts'
import * as field from '../fields.ts'

/** The sums of all buckets have no more bytes. */
const sumsBytesMax = 65_536
const hashBytesMax = 16
/** Fields of a group in a list. */
const markFields = 3

const kinds = ['sums-request', 'sums', 'marks-request', 'marks'] as const

export function isCompareKind(kind: string): kind is CompareMessage['kind'] {
  return kinds.some((one) => one === kind)
}

export function isCompare(message: { readonly kind: string }): message is CompareMessage {
  return isCompareKind(message.kind)
}

export function packCompare(message: CompareMessage): Packable[] {
  switch (message.kind) {
    case 'sums-request':
      return [message.asked]
    case 'sums':
      return [message.asked, message.sums]
    case 'marks-request':
    case 'marks':
      return [message.asked, message.marks.flat()]
  }
}

/** `fields`: as many as `packCompare` makes of such a message. */
export function readCompare(
  kind: CompareMessage['kind'],
  fields: readonly unknown[],
): CompareMessage {
  const asked = field.count(fields[0], 'asked')
  switch (kind) {
    case 'sums-request':
      return { kind, asked }
    case 'sums':
      return { kind, asked, sums: field.bytes(fields[1], 'sums', sumsBytesMax) }
    case 'marks-request':
    case 'marks':
      return { kind, asked, marks: readMarks(fields[1]) }
  }
}

function readMarks(value: unknown): readonly ToldMark[] {
  const flat = field.list(value, 'marks')
  if (flat.length % markFields !== 0) throw new field.MalformedError('a group has no position')
  return Array.from({ length: flat.length / markFields }, (_, at): ToldMark => {
    const [group, position, hash] = flat.slice(markFields * at, markFields * (at + 1))
    return [
      field.group(group),
      field.count(position, 'position'),
      field.bytes(hash, 'hash', hashBytesMax),
    ]
  })
}
