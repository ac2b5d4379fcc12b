/** The verdict on a transaction ⇄ a positional array; between nodes, and to clients. */
import { keyBytesMax, sessionCharsMax, transactionMutationsMax } from '../base/limits.ts'
import type { Packable } from '../base/pack.ts'
import type { Verdict } from '../group/outcome.ts'
import * as field from './fields.ts'

export function packVerdict(verdict: Verdict): Packable {
  switch (verdict.kind) {
    case 'committed':
      return [0, verdict.position, verdict.timestamp, verdict.attempt, verdict.sequences]
    case 'conflict':
      return [1, verdict.position, verdict.key, verdict.by?.session, verdict.by?.sequence]
    case 'expired':
      return [2]
    case 'overloaded':
      return [3]
    case 'moved':
      return [4, verdict.set, verdict.position]
  }
}

export function readVerdict(value: unknown): Verdict {
  const [kind, ...fields] = field.list(value, 'verdict')
  switch (kind) {
    case 0:
      return readCommitted(fields)
    case 1:
      return readConflict(fields)
    case 2:
    case 3:
      field.list(fields, 'verdict', 0)
      return { kind: kind === 2 ? 'expired' : 'overloaded' }
    case 4: {
      const [set, position] = field.list(fields, 'verdict', 2)
      return { kind: 'moved', set: field.setName(set), position: field.count(position, 'position') }
    }
    default:
      throw new field.MalformedError('verdict is of no known kind')
  }
}

function readCommitted(fields: readonly unknown[]): Verdict {
  const [position, timestamp, attempt, sequences] = field.list(fields, 'verdict', 4)
  const drawn = field.list(sequences, 'sequences')
  if (drawn.length > transactionMutationsMax) {
    throw new field.MalformedError('a verdict has too many sequences')
  }
  return {
    kind: 'committed',
    position: field.position(position),
    timestamp: field.count(timestamp, 'timestamp', 1),
    attempt: field.count(attempt, 'attempt'),
    sequences: drawn.map((one) => field.count(one, 'sequence')),
  }
}

/** Key and writer are both known, or neither is. */
function readConflict(fields: readonly unknown[]): Verdict {
  const [at, key, session, sequence] = field.list(fields, 'verdict', 4)
  const position = field.count(at, 'position')
  if (field.isAbsent(key) && field.isAbsent(session) && field.isAbsent(sequence)) {
    return { kind: 'conflict', position }
  }
  const by = {
    session: field.text(session, 'session', sessionCharsMax),
    sequence: field.count(sequence, 'sequence'),
  }
  return { kind: 'conflict', position, key: field.bytes(key, 'key', keyBytesMax), by }
}
