/** Reads the fields of trace events, which are plain data of unknown shape until looked at. */
import { isNodeId } from '../../src/base/ids.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import { present } from '../../src/base/assert.ts'
import type { TraceEvent } from '../../src/ports/trace.ts'

export function readText(event: TraceEvent, field: string): string {
  const value = event[field]
  return present(typeof value === 'string' ? value : undefined, 'trace: a text is missing')
}

export function readNumber(event: TraceEvent, field: string): number {
  const value = event[field]
  return present(typeof value === 'number' ? value : undefined, 'trace: a number is missing')
}

export function readBytes(event: TraceEvent, field: string): Uint8Array {
  const value = event[field]
  return present(value instanceof Uint8Array ? value : undefined, 'trace: bytes are missing')
}

export function readBallot(event: TraceEvent, field: string): Ballot {
  return present(asBallot(event[field]), 'trace: a ballot is missing')
}

/** The value as a ballot, if it is one. */
export function asBallot(value: unknown): Ballot | undefined {
  if (!isRecord(value)) return undefined
  const { epoch, round, node, incarnation } = value
  if (typeof epoch !== 'number' || typeof round !== 'number') return undefined
  if (typeof incarnation !== 'number') return undefined
  if (typeof node !== 'string' || !isNodeId(node)) return undefined
  return { epoch, round, node, incarnation }
}

/** A committed verdict's position and attempt; of any other verdict, undefined. */
export function readCommit(
  event: TraceEvent,
): { readonly position: number; readonly attempt: number } | undefined {
  const { verdict } = event
  if (!isRecord(verdict) || verdict['kind'] !== 'committed') return undefined
  const { position, attempt } = verdict
  if (typeof position !== 'number' || typeof attempt !== 'number') return undefined
  return { position, attempt }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
