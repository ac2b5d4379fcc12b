/** The messages about a change of a replica set's voters, without the number of their kind. */
import { isVersion } from '../../base/cluster-version.ts'
import type { Position } from '../../base/ids.ts'
import { entryBytesMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import { epochMax } from '../../paxos/ballot.ts'
import type { EpochMessage, OpenAcceptance, SealedGroup } from '../../replication/message.ts'
import * as field from '../fields.ts'
import * as part from './peer-fields.ts'

/** The first epoch follows none: a seal ends one before the epoch that it names. */
const sealedEpochMin = 2

const kinds = ['standing', 'seal-request', 'seal-page', 'version'] as const

export function isEpochKind(kind: string): kind is EpochMessage['kind'] {
  return kinds.some((one) => one === kind)
}

export function isOfEpoch(message: { readonly kind: string }): message is EpochMessage {
  return isEpochKind(message.kind)
}

export function packEpoch(message: EpochMessage): Packable[] {
  switch (message.kind) {
    case 'standing':
      return [message.epoch, message.gated, message.isRestored]
    case 'seal-request':
      return [message.epoch, message.after]
    case 'version':
      return [message.inForce]
    case 'seal-page': {
      const { epoch, through, after, next, groups } = message
      return [epoch, through, after, next, groups.map(packSealed)]
    }
  }
}

function packSealed({ group, applied, open }: SealedGroup): Packable {
  return [group, applied, open?.map(packOpen)]
}

function packOpen({ position, ballot, value }: OpenAcceptance): Packable {
  return [position, part.packBallot(ballot), value]
}

/** `fields`: as many as `packEpoch` makes of such a message. */
export function readEpoch(kind: EpochMessage['kind'], fields: readonly unknown[]): EpochMessage {
  switch (kind) {
    case 'standing':
      return readStanding(fields)
    case 'seal-request': {
      const epoch = epochFrom(fields[0], sealedEpochMin)
      return field.isAbsent(fields[1])
        ? { kind, epoch }
        : { kind, epoch, after: field.group(fields[1]) }
    }
    case 'seal-page':
      return readSealPage(fields)
    case 'version':
      return readVersion(fields)
  }
}

function readVersion([inForce]: readonly unknown[]): EpochMessage {
  if (!isVersion(inForce)) throw new field.MalformedError('in force is no cluster version')
  return { kind: 'version', inForce }
}

function readStanding(fields: readonly unknown[]): EpochMessage {
  const epoch = epochFrom(fields[0], 1)
  const gated = field.count(fields[1], 'gated')
  if (gated > epoch) throw new field.MalformedError('gated is above the epoch')
  return { kind: 'standing', epoch, gated, isRestored: field.flag(fields[2], 'is restored') }
}

/** No record has room for a ballot of a higher epoch than the highest. */
function epochFrom(value: unknown, min: number): number {
  const epoch = field.count(value, 'epoch', min)
  if (epoch > epochMax) throw new field.MalformedError('epoch is too high')
  return epoch
}

function readSealPage(fields: readonly unknown[]): EpochMessage {
  const epoch = epochFrom(fields[0], sealedEpochMin)
  return {
    kind: 'seal-page',
    epoch,
    through: field.count(fields[1], 'through'),
    ...(!field.isAbsent(fields[2]) && { after: field.group(fields[2]) }),
    ...(!field.isAbsent(fields[3]) && { next: field.group(fields[3]) }),
    groups: field.list(fields[4], 'groups').map((one) => readSealed(one, epoch)),
  }
}

function readSealed(value: unknown, epoch: number): SealedGroup {
  const [group, applied, open] = field.list(value, 'sealed group', 3)
  const above = field.count(applied, 'applied')
  return {
    group: field.group(group),
    applied: above,
    open: field.isAbsent(open)
      ? undefined
      : field.list(open, 'open').map((one) => readOpen(one, above, epoch)),
  }
}

/** The sealing voter accepted it above the position that it has applied, in an epoch before the one that it names. */
function readOpen(value: unknown, applied: Position, epoch: number): OpenAcceptance {
  const [at, of, content] = field.list(value, 'open acceptance', 3)
  const position = field.position(at)
  if (position <= applied) throw new field.MalformedError('position is not above applied')
  const ballot = part.ballot(of)
  if (ballot.epoch >= epoch) throw new field.MalformedError('ballot is not of an earlier epoch')
  return { position, ballot, value: field.bytes(content, 'value', entryBytesMax) }
}
