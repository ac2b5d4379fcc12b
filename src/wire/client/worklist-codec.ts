/** Questions to a node's agenda and their answers ⇄ positional arrays. */
import { topicBytesMax } from '../../group/worklist-key.ts'
import { listedGroupsMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import {
  markCharsMax,
  memberCharsMax,
  membersMax,
  topicsMax,
  type AgendaAnswer,
  type AgendaOperation,
  type TopicSum,
} from '../../worklist/worklist-operation.ts'
import type { ListedGroup } from '../../group/replica-port.ts'
import * as part from './client-fields.ts'
import * as field from '../fields.ts'

/** Groups in one answer of what changed. */
const changesMax = 10_000

/** Numbers on the wire: never reused, never renumbered. */
export const agendaOperationKinds: Readonly<Record<AgendaOperation['kind'], number>> = {
  'list-agenda': 12,
  'watch-agenda': 13,
  'sum-agenda': 14,
}

export const agendaAnswerKinds: Readonly<Record<AgendaOperation['kind'], number>> = {
  'list-agenda': 13,
  'watch-agenda': 14,
  'sum-agenda': 15,
}

export function packAgendaOperation(operation: AgendaOperation): Packable[] {
  switch (operation.kind) {
    case 'list-agenda':
      return [
        ...[operation.topic, operation.after, operation.limit],
        ...[operation.isOfSet === true, operation.isPartial === true],
      ]
    case 'watch-agenda':
      return [
        ...[operation.topic, operation.member, operation.mark, operation.waitMs],
        operation.isLeaving,
      ]
    case 'sum-agenda':
      return [operation.prefix, operation.isOfSet === true]
  }
}

/** Undefined for a number that is of no such operation. */
export function readAgendaOperation(
  number: unknown,
  fields: readonly unknown[],
): AgendaOperation | undefined {
  switch (number) {
    case agendaOperationKinds['list-agenda']: {
      const [topic, after, limit, isOfSet, isPartial] = field.list(fields, 'list-agenda', 5)
      const asked = {
        topic: readTopic(topic),
        limit: field.count(limit, 'limit', 1),
        ...(field.flag(isOfSet, 'of its set') && { isOfSet: true as const }),
        ...(field.flag(isPartial, 'partial') && { isPartial: true as const }),
      }
      if (field.isAbsent(after)) return { kind: 'list-agenda', ...asked }
      return { kind: 'list-agenda', ...asked, after: field.group(after) }
    }
    case agendaOperationKinds['watch-agenda']: {
      const [topic, member, mark, waitMs, isLeaving] = field.list(fields, 'watch-agenda', 5)
      return {
        kind: 'watch-agenda',
        topic: readTopic(topic),
        member: field.text(member, 'member', memberCharsMax),
        ...(!field.isAbsent(mark) && { mark: field.text(mark, 'mark', markCharsMax) }),
        waitMs: field.count(waitMs, 'wait'),
        isLeaving: field.flag(isLeaving, 'leaving'),
      }
    }
    case agendaOperationKinds['sum-agenda']: {
      const [prefix, isOfSet] = field.list(fields, 'sum-agenda', 2)
      const isSet = field.flag(isOfSet, 'of its set')
      return { kind: 'sum-agenda', prefix: readTopic(prefix), ...(isSet && { isOfSet: true }) }
    }
    default:
      return undefined
  }
}

export function packAgendaAnswer(answer: Exclude<AgendaAnswer, { kind: 'problem' }>): Packable[] {
  switch (answer.kind) {
    case 'list-agenda':
      return [answer.groups.map(packListed)]
    case 'watch-agenda':
      return [answer.groups.map(packListed), answer.mark, answer.isGap, answer.members]
    case 'sum-agenda':
      return [answer.node, answer.topics.map(packSum)]
  }
}

/** Undefined for a number that is of no such answer. */
export function readAgendaAnswer(
  number: unknown,
  fields: readonly unknown[],
): AgendaAnswer | undefined {
  switch (number) {
    case agendaAnswerKinds['list-agenda']: {
      const [groups] = field.list(fields, 'list-agenda', 1)
      const listed = part.some(groups, 'groups', listedGroupsMax).map(readListed)
      return { kind: 'list-agenda', groups: listed }
    }
    case agendaAnswerKinds['watch-agenda']: {
      const [groups, mark, isGap, members] = field.list(fields, 'watch-agenda', 4)
      return {
        kind: 'watch-agenda',
        groups: part.some(groups, 'groups', changesMax).map(readListed),
        mark: field.text(mark, 'mark', markCharsMax),
        isGap: field.flag(isGap, 'gap'),
        members: part
          .some(members, 'members', membersMax)
          .map((one) => field.text(one, 'member', memberCharsMax)),
      }
    }
    case agendaAnswerKinds['sum-agenda']: {
      const [node, topics] = field.list(fields, 'sum-agenda', 2)
      const sums = part.some(topics, 'topics', topicsMax).map(readSum)
      return { kind: 'sum-agenda', node: field.node(node), topics: sums }
    }
    default:
      return undefined
  }
}

function readTopic(value: unknown): string {
  return field.text(value, 'topic', topicBytesMax)
}

function packListed({ group, position }: ListedGroup): Packable {
  return [group, position]
}

function readListed(value: unknown): ListedGroup {
  const [group, position] = field.list(value, 'listed group', 2)
  return { group: field.group(group), position: field.count(position, 'position') }
}

function packSum({ topic, groups, rows, isWhole, oldest }: TopicSum): Packable {
  return [topic, groups, rows, isWhole, oldest]
}

function readSum(value: unknown): TopicSum {
  const [topic, groups, rows, isWhole, oldest] = field.list(value, 'sum', 5)
  return {
    topic: readTopic(topic),
    groups: field.count(groups, 'groups'),
    rows: field.count(rows, 'rows'),
    isWhole: field.flag(isWhole, 'whole'),
    ...(!field.isAbsent(oldest) && { oldest: field.count(oldest, 'oldest') }),
  }
}
