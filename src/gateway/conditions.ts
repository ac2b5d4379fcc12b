/**
 * Refuses headers of writes that the gateway does not implement. A client that sends a precondition counts on
 * it: a gateway that passed over it would do a write that the client has forbidden (RFC 9110 13.1). It would
 * also take a part of a body for all of it (14.5).
 */
import { refuse } from './problems.ts'

const preconditions = ['If-Match', 'If-None-Match', 'If-Unmodified-Since'] as const

/** Throws `invalid` for a write with a precondition, or with a part of a body. */
export function requireWholeWrite({ headers }: Request): void {
  const given = preconditions.find((name) => headers.has(name))
  if (given !== undefined) {
    refuse(
      `the header ${given} is not possible here: writes have no preconditions. A PUT of a cell writes it if it is absent, and never changes one that is there`,
    )
  }
  if (headers.has('content-range')) {
    refuse('the header Content-Range is not possible here: a body is sent whole')
  }
}
