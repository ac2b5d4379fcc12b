/** The messages about where a log ends, without the number of their kind. */
import type { Packable } from '../../base/pack.ts'
import type {
  DirectoryRequest,
  Directory,
  DurableMark,
  Reach,
  ReachRequest,
} from '../../replication/message.ts'
import * as field from '../fields.ts'

export type LogEndMessage = DurableMark | DirectoryRequest | Directory | ReachRequest | Reach

const kinds: ReadonlySet<string> = new Set<LogEndMessage['kind']>([
  ...(['durable-mark', 'directory-request', 'directory'] as const),
  ...(['reach-request', 'reach'] as const),
])

export function isLogEnd(message: { readonly kind: string }): message is LogEndMessage {
  return isLogEndKind(message.kind)
}

export function isLogEndKind(kind: string): kind is LogEndMessage['kind'] {
  return kinds.has(kind)
}

export function packLogEnd(message: LogEndMessage): Packable[] {
  switch (message.kind) {
    case 'durable-mark':
      return [message.through]
    case 'reach-request':
      return [message.asked]
    case 'reach':
      return [message.through, message.asked, message.epoch]
    case 'directory-request':
      return [message.through, message.asked, message.after]
    case 'directory': {
      const { through, asked, after, next, groups } = message
      return [through, asked, after, next, groups.flat()]
    }
  }
}

/** `fields`: as many as `packLogEnd` makes of such a message. */
export function readLogEnd(kind: LogEndMessage['kind'], fields: readonly unknown[]): LogEndMessage {
  if (kind === 'reach-request') return { kind, asked: field.count(fields[0], 'asked') }
  const through = field.count(fields[0], 'through')
  if (kind === 'durable-mark') return { kind, through }
  const asked = field.count(fields[1], 'asked')
  if (kind === 'reach') return { kind, through, asked, epoch: field.count(fields[2], 'epoch') }
  const after = field.isAbsent(fields[2]) ? {} : { after: field.group(fields[2]) }
  if (kind === 'directory-request') return { kind, through, asked, ...after }
  const next = field.isAbsent(fields[3]) ? {} : { next: field.group(fields[3]) }
  return { kind, through, asked, ...after, ...next, groups: readGroups(fields[4]) }
}

function readGroups(value: unknown): Directory['groups'] {
  const flat = field.list(value, 'groups')
  if (flat.length % 2 !== 0) throw new field.MalformedError('a group has no position')
  return Array.from({ length: flat.length / 2 }, (_, at) => [
    field.group(flat[2 * at]),
    field.position(flat[2 * at + 1]),
  ])
}
