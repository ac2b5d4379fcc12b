/**
 * The requests by which an operator sees and changes the voters of a node's replica set: `/members`. GET tells them, and is
 * open as all figures are. POST begins a change, or gives it up, and takes the cluster's secret. A change goes on by itself
 * after the answer: GET tells how far it is.
 */
import type { Context, Hono } from 'hono'
import type { NodePlace } from '../config/node-place.ts'
import { scalarText } from '../config/source.ts'
import { isWildcard, readCalledUrl } from '../config/values.ts'
import { formatIso } from '../base/datetime.ts'
import { StoreError } from '../base/errors.ts'
import { isNodeId, type NodeId } from '../base/ids.ts'
import type { Change } from '../members/change.ts'
import type { MembersPort, MembersReport } from '../members/report.ts'
import {
  findPart,
  findTrusted,
  jsonType as json,
  quoted,
  refusalPage,
  refusals,
  refusalsOfTrust,
  type OperationAccess,
} from './operation-access.ts'
import type { OperationAnswer } from './operation-answer.ts'
import { problemContentType } from './refusals.ts'

export interface MembersAccess extends OperationAccess<MembersPort> {
  /** Absent: no region and no zone is known of a node. */
  placeOf?(node: string): NodePlace
}

const changed = {
  202: { what: 'The change that is under way now.', type: json },
  ...refusalsOfTrust,
  400: {
    what: 'Another change is under way, there is no such node, or the request has a body.',
    type: problemContentType,
  },
  ...refusals,
  503: {
    what: 'No majority answers, or the stores are being opened, or closed.',
    type: problemContentType,
  },
}

export const membersAnswers: readonly OperationAnswer[] = [
  {
    path: '/members',
    operationId: 'getMembers',
    summary: "The voters of this node's replica set, and the last change of them",
    answers: { 200: { what: 'The voters, as this node sees them.', type: json }, ...refusals },
  },
  {
    path: '/members/replace',
    method: 'POST',
    operationId: 'replaceMember',
    summary: "Begins to replace another node's store by an empty one, or joins that change",
    texts: { node: 'the node whose store is replaced' },
    answers: changed,
  },
  {
    path: '/members/add',
    method: 'POST',
    operationId: 'addMember',
    summary: 'Begins to make a node with an empty store a member, or joins that change',
    texts: { node: 'the node that joins', url: 'where the others reach it: scheme, host and port' },
    answers: changed,
  },
  {
    path: '/members/add-reader',
    method: 'POST',
    operationId: 'addReader',
    summary: 'Begins to make a node with an empty store a read-only member, or joins that change',
    texts: { node: 'the node that joins', url: 'where the others reach it: scheme, host and port' },
    answers: changed,
  },
  {
    path: '/members/promote',
    method: 'POST',
    operationId: 'promoteMember',
    summary: 'Begins to give a read-only member a vote, or joins that change',
    texts: { node: 'the read-only member' },
    answers: changed,
  },
  {
    path: '/members/demote',
    method: 'POST',
    operationId: 'demoteMember',
    summary: 'Begins to make another voter a read-only member, or joins that change',
    texts: { node: 'the voter' },
    answers: changed,
  },
  {
    path: '/members/remove',
    method: 'POST',
    operationId: 'removeMember',
    summary: 'Begins to take another node out for good, or joins that change',
    texts: { node: 'the node that leaves' },
    answers: changed,
  },
  {
    path: '/members/renew',
    method: 'POST',
    operationId: 'renewMembers',
    summary: 'Begins a new epoch with the same stores',
    answers: changed,
  },
  {
    path: '/members/cancel',
    method: 'POST',
    operationId: 'cancelChange',
    summary: 'Gives up the change under way, where its epoch has not begun',
    optional: {
      number: { what: 'the number of that change: no other one is given up', since: 2 },
    },
    answers: {
      ...changed,
      202: { what: 'The change, given up.', type: json },
      400: {
        what: 'No change is under way, it can only go on, or the request has a body.',
        type: problemContentType,
      },
    },
  },
]

export function addMembersRoutes(app: Hono, access: MembersAccess | undefined): void {
  app.get('/members', (context) => {
    const members = findPart(access, context)
    if (members instanceof Response) return members
    return context.json(describeReport(members.report, access))
  })
  app.post('/members/replace', (context) =>
    change(access, context, (members) => members.replace(readNode(context))),
  )
  app.post('/members/add', (context) =>
    change(access, context, (members) => members.add(readNode(context), readAddress(context))),
  )
  app.post('/members/add-reader', (context) =>
    change(access, context, (members) =>
      members.addReader(readNode(context), readAddress(context)),
    ),
  )
  app.post('/members/promote', (context) =>
    change(access, context, (members) => members.promote(readNode(context))),
  )
  app.post('/members/demote', (context) =>
    change(access, context, (members) => members.demote(readNode(context))),
  )
  app.post('/members/remove', (context) =>
    change(access, context, (members) => members.remove(readNode(context))),
  )
  app.post('/members/renew', (context) => change(access, context, (members) => members.renew()))
  app.post('/members/cancel', (context) =>
    change(access, context, (members) => members.cancel(readNumber(context))),
  )
}

async function change(
  access: MembersAccess | undefined,
  context: Context,
  ask: (members: MembersPort) => ReturnType<MembersPort['renew']>,
): Promise<Response> {
  const members = findTrusted(access, context)
  if (members instanceof Response) return members
  try {
    const { change: asked } = await ask(members)
    return context.json({ change: describeChange(asked) }, 202)
  } catch (error) {
    return refusalPage(context, error)
  }
}

function readNode(context: Context): NodeId {
  const { node = '' } = context.req.query()
  if (isNodeId(node)) return node
  throw new StoreError('invalid', `node: ${quoted(node)} names no node`)
}

/** Undefined: the request names none. */
function readNumber(context: Context): number | undefined {
  const { number } = context.req.query()
  if (number === undefined) return undefined
  const read = /^[0-9]+$/.test(number) ? Number(number) : 0
  if (Number.isSafeInteger(read) && read > 0) return read
  throw new StoreError('invalid', `number: ${quoted(number)} is no number of a change`)
}

/** As in a configuration, whose rules hold here. */
function readAddress(context: Context): string {
  const { url = '' } = context.req.query()
  const read = readCalledUrl(scalarText(url, { kind: 'default' }))
  if (read.ok && !isWildcard(read.value)) return read.value
  const why = read.ok
    ? `${quoted(url)} is an address to listen on: the others would reach themselves by it`
    : read.problems.map(({ reason }) => reason).join('; ')
  throw new StoreError('invalid', `url: ${why}`)
}

function describeReport(
  { change: last, members, ...report }: MembersReport,
  access: MembersAccess | undefined,
): object {
  const placed = members.map((one) => ({ ...one, ...access?.placeOf?.(one.node) }))
  const change = last === undefined ? {} : { change: describeChange(last) }
  return { ...report, members: placed, ...change }
}

/** With its moment in words too, since readers of JSON are people at times. */
function describeChange(one: Change): object {
  return { ...one, since: formatIso(one.sinceMicros) }
}
