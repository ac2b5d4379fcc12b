/** Questions to a node's worklist and their answers ⇄ positional arrays. */
import { topicBytesMax } from '../../group/worklist-key.ts'
import { listedGroupsMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import {
  markCharsMax,
  memberCharsMax,
  membersMax,
  topicsMax,
  type WorklistAnswer,
  type WorklistOperation,
  type TopicSum,
} from '../../worklist/worklist-operation.ts'
import type { ListedGroup } from '../../group/replica-port.ts'
import * as part from './client-fields.ts'
import * as field from '../fields.ts'

/** Groups in one answer of what changed. */
const changesMax = 10_000

/** Numbers on the wire: never reused, never renumbered. */
export const worklistOperationKinds: Readonly<Record<WorklistOperation['kind'], number>> = {
  'list-worklist': 12,
  'watch-worklist': 13,
  'sum-worklist': 14,
}

export const worklistAnswerKinds: Readonly<Record<WorklistOperation['kind'], number>> = {
  'list-worklist': 13,
  'watch-worklist': 14,
  'sum-worklist': 15,
}

export function packWorklistOperation(operation: WorklistOperation): Packable[] {
  switch (operation.kind) {
    case 'list-worklist':
      return [
        ...[operation.topic, operation.after, operation.limit],
        ...[operation.isOfSet === true, operation.isPartial === true],
      ]
    case 'watch-worklist':
      return [
        ...[operation.topic, operation.member, operation.mark, operation.waitMs],
        operation.isLeaving,
      ]
    case 'sum-worklist':
      return [operation.prefix, operation.isOfSet === true]
  }
}

/** Undefined for a number that is of no such operation. */
export function readWorklistOperation(
  number: unknown,
  fields: readonly unknown[],
): WorklistOperation | undefined {
  switch (number) {
    case worklistOperationKinds['list-worklist']: {
      const [topic, after, limit, isOfSet, isPartial] = field.list(fields, 'list-worklist', 5)
      const asked = {
        topic: readTopic(topic),
        limit: field.count(limit, 'limit', 1),
        ...(field.flag(isOfSet, 'of its set') && { isOfSet: true as const }),
        ...(field.flag(isPartial, 'partial') && { isPartial: true as const }),
      }
      if (field.isAbsent(after)) return { kind: 'list-worklist', ...asked }
      return { kind: 'list-worklist', ...asked, after: field.group(after) }
    }
    case worklistOperationKinds['watch-worklist']: {
      const [topic, member, mark, waitMs, isLeaving] = field.list(fields, 'watch-worklist', 5)
      return {
        kind: 'watch-worklist',
        topic: readTopic(topic),
        member: field.text(member, 'member', memberCharsMax),
        ...(!field.isAbsent(mark) && { mark: field.text(mark, 'mark', markCharsMax) }),
        waitMs: field.count(waitMs, 'wait'),
        isLeaving: field.flag(isLeaving, 'leaving'),
      }
    }
    case worklistOperationKinds['sum-worklist']: {
      const [prefix, isOfSet] = field.list(fields, 'sum-worklist', 2)
      const isSet = field.flag(isOfSet, 'of its set')
      return { kind: 'sum-worklist', prefix: readTopic(prefix), ...(isSet && { isOfSet: true }) }
    }
    default:
      return undefined
  }
}

export function packWorklistAnswer(
  answer: Exclude<WorklistAnswer, { kind: 'problem' }>,
): Packable[] {
  switch (answer.kind) {
    case 'list-worklist':
      return [answer.groups.map(packListed)]
    case 'watch-worklist':
      return [answer.groups.map(packListed), answer.mark, answer.isGap, answer.members]
    case 'sum-worklist':
      return [answer.node, answer.topics.map(packSum)]
  }
}

/** Undefined for a number that is of no such answer. */
export function readWorklistAnswer(
  number: unknown,
  fields: readonly unknown[],
): WorklistAnswer | undefined {
  switch (number) {
    case worklistAnswerKinds['list-worklist']: {
      const [groups] = field.list(fields, 'list-worklist', 1)
      const listed = part.some(groups, 'groups', listedGroupsMax).map(readListed)
      return { kind: 'list-worklist', groups: listed }
    }
    case worklistAnswerKinds['watch-worklist']: {
      const [groups, mark, isGap, members] = field.list(fields, 'watch-worklist', 4)
      return {
        kind: 'watch-worklist',
        groups: part.some(groups, 'groups', changesMax).map(readListed),
        mark: field.text(mark, 'mark', markCharsMax),
        isGap: field.flag(isGap, 'gap'),
        members: part
          .some(members, 'members', membersMax)
          .map((one) => field.text(one, 'member', memberCharsMax)),
      }
    }
    case worklistAnswerKinds['sum-worklist']: {
      const [node, topics] = field.list(fields, 'sum-worklist', 2)
      const sums = part.some(topics, 'topics', topicsMax).map(readSum)
      return { kind: 'sum-worklist', node: field.node(node), topics: sums }
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
