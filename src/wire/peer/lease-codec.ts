/**
 * Messages about read leases ⇄ the fields that follow their kind or, for those of a group, their
 * envelope. Kinds and the number of fields are `peer-codec.ts`'s.
 */
import type { GroupId } from '../../base/ids.ts'
import type { Packable } from '../../base/pack.ts'
import type { Asked, LeaseMessage } from '../../lease/message.ts'
import type { GroupLeaseMessage } from '../../replication/message.ts'
import * as field from '../fields.ts'
import * as part from './peer-fields.ts'

export function packLeaseMessage(message: LeaseMessage): Packable[] {
  switch (message.kind) {
    case 'renew': {
      const { asked, grantor, serial, term } = message
      return [packAsked(asked), grantor, serial, term && part.packTerm(term)]
    }
    case 'renewed': {
      const { asked, leaseMs, term, serial, revoked } = message
      return [packAsked(asked), leaseMs, part.packTerm(term), serial, revoked]
    }
    case 'hand-back':
      return [part.packTerm(message.term)]
    case 'slow':
      return [message.holder]
  }
}

export function readLeaseMessage(
  kind: LeaseMessage['kind'],
  fields: readonly unknown[],
): LeaseMessage {
  switch (kind) {
    case 'renew':
      return readRenew(fields)
    case 'renewed': {
      const [asked, leaseMs, term, serial, revoked] = fields
      return {
        kind,
        asked: readAsked(asked),
        leaseMs: field.count(leaseMs, 'lease'),
        term: part.term(term),
        serial: field.count(serial, 'serial'),
        revoked: field.list(revoked, 'revoked').map(field.group),
      }
    }
    case 'hand-back':
      return { kind, term: part.term(fields[0]) }
    case 'slow':
      return { kind, holder: field.node(fields[0]) }
  }
}

function readRenew(fields: readonly unknown[]): LeaseMessage & { kind: 'renew' } {
  const [asked, grantor, serial, term] = fields
  return {
    kind: 'renew',
    asked: readAsked(asked),
    grantor: field.count(grantor, 'grantor'),
    serial: field.count(serial, 'serial'),
    ...(!field.isAbsent(term) && { term: part.term(term) }),
  }
}

function packAsked({ incarnation, sentAt, sentWall }: Asked): Packable {
  return [incarnation, sentAt, sentWall]
}

function readAsked(value: unknown): Asked {
  const [incarnation, sentAt, sentWall] = field.list(value, 'asked', 3)
  return {
    incarnation: field.count(incarnation, 'incarnation', 1),
    sentAt: field.count(sentAt, 'sent at'),
    sentWall: field.count(sentWall, 'sent wall'),
  }
}

export function packGroupLease(message: GroupLeaseMessage): Packable[] {
  switch (message.kind) {
    case 'invalidate':
      return [message.position]
    case 'invalidated':
      return [message.position, message.incarnation]
    case 'revoke':
    case 'revoked':
      return [message.position, message.holder]
    case 'release':
      return [message.attempt]
  }
}

export function readGroupLease(
  kind: GroupLeaseMessage['kind'],
  group: GroupId,
  epoch: number,
  fields: readonly unknown[],
): GroupLeaseMessage {
  switch (kind) {
    case 'invalidate':
      return { kind, group, epoch, position: field.position(fields[0]) }
    case 'invalidated': {
      const position = field.position(fields[0])
      return { kind, group, epoch, position, incarnation: field.count(fields[1], 'incarnation', 1) }
    }
    case 'revoke':
    case 'revoked': {
      const position = field.position(fields[0])
      return { kind, group, epoch, position, holder: field.node(fields[1]) }
    }
    case 'release':
      return { kind, group, epoch, attempt: field.count(fields[0], 'attempt') }
  }
}
