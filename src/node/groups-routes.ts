/** The request by which an operator sees where a group is: `/groups/where`. It takes the cluster's secret, as all that names groups. */
import type { Context, Hono } from 'hono'
import { StoreError } from '../base/errors.ts'
import { groupOfBytes, type GroupId } from '../base/ids.ts'
import type { GroupWhere } from './group-where.ts'
import {
  findTrusted,
  jsonType as json,
  quoted,
  refusalPage,
  refusals,
  refusalsOfTrust,
  type OperationAccess,
} from './operation-access.ts'
import type { SetsPort } from './sets-routes.ts'
import type { OperationAnswer } from './operation-answer.ts'
import { problemContentType } from './refusals.ts'

export interface GroupsPort {
  where(group: GroupId): Promise<GroupWhere>
  readonly sets: SetsPort
}

export type GroupsAccess = OperationAccess<GroupsPort>

export const groupsAnswers: readonly OperationAnswer[] = [
  {
    path: '/groups/where',
    operationId: 'findGroup',
    summary: 'The replica set of a group, its nodes, and its leader where this node knows it',
    texts: { group: "the group's name in hexadecimal digits" },
    answers: {
      200: { what: 'Where the group is.', type: json },
      ...refusalsOfTrust,
      400: { what: 'That is no name of a group.', type: problemContentType },
      ...refusals,
    },
  },
]

export function addGroupsRoutes(app: Hono, access: GroupsAccess | undefined): void {
  app.get('/groups/where', (context) => tellWhere(access, context))
}

async function tellWhere(access: GroupsAccess | undefined, context: Context): Promise<Response> {
  const groups = findTrusted(access, context)
  if (groups instanceof Response) return groups
  const { group: name = '' } = context.req.query()
  try {
    return context.json({ group: name, ...(await groups.where(parseGroupName(name))) })
  } catch (error) {
    return refusalPage(context, error)
  }
}

const groupDigitsMax = 2 * 1_024

/** Throws `invalid` for a text that is not the name of a group in hexadecimal digits. */
export function parseGroupName(text: string): GroupId {
  const isName = /^(?:[0-9a-f]{2})+$/.test(text) && text.length <= groupDigitsMax
  if (isName) return groupOfBytes(Buffer.from(text, 'hex'))
  const what = 'is no name of a group in hexadecimal: trilithon compare status lists names'
  throw new StoreError('invalid', `group: ${quoted(text)} ${what}`)
}
