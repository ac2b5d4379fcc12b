/**
 * The requests by which an operator has a node compare its groups, or scrub its stores, now: `/compare`, `/scrub`. GET
 * says how far that is, and is open as all figures are. POST begins it, and takes the cluster's secret. So do names of
 * groups, which are keys of rows.
 */
import type { Context, Hono } from 'hono'
import { StoreError } from '../base/errors.ts'
import { isNodeId } from '../base/ids.ts'
import { parseGroupName } from './groups-routes.ts'
import type { Begun, Upkeep as UpkeepOfNode } from '../replica/upkeep.ts'
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

type Upkeep = Pick<UpkeepOfNode, keyof UpkeepOfNode>

export type UpkeepAccess = OperationAccess<Upkeep>

const begun = {
  202: { what: 'The round that is under way now.', type: json },
  ...refusalsOfTrust,
  ...refusals,
}

export const upkeepAnswers: readonly OperationAnswer[] = [
  {
    path: '/compare',
    operationId: 'getComparison',
    summary: "How far the comparison of this node's groups with the others' is, and what it found",
    answers: { 200: { what: 'The figures.', type: json }, ...refusals },
  },
  {
    path: '/compare',
    method: 'POST',
    operationId: 'compare',
    summary: 'Begins a comparison now, or joins the one under way',
    answers: begun,
  },
  {
    path: '/compare/resolve',
    method: 'POST',
    operationId: 'resolve',
    summary: 'Has this node take the rows that another one has of a group without a majority',
    texts: {
      group: 'the name of the group in hexadecimal, as GET /compare lists it',
      from: 'the node whose rows are taken',
    },
    answers: {
      ...begun,
      202: { what: 'The group is put aside until those rows have come.', type: json },
      400: {
        what: 'The group has a majority, or there is no such node.',
        type: problemContentType,
      },
      404: { what: 'The other node does not have the group.', type: problemContentType },
    },
  },
  {
    path: '/scrub',
    operationId: 'getScrub',
    summary: "How far the check of this node's files and rows is, and what it found",
    answers: { 200: { what: 'The figures.', type: json }, ...refusals },
  },
  {
    path: '/scrub',
    method: 'POST',
    operationId: 'scrub',
    summary: 'Begins a check of all files and rows now, or joins the one under way',
    answers: begun,
  },
]

export function addUpkeepRoutes(app: Hono, access: UpkeepAccess | undefined): void {
  const compared = (upkeep: Upkeep, isTrusted: boolean): object => ({
    ...upkeep.compareReport,
    ...(isTrusted && upkeep.groupLists),
  })
  app.get('/compare', (context) => tell(access, context, compared))
  app.post('/compare', (context) => begin(access, context, (upkeep) => upkeep.compare(), compared))
  app.post('/compare/resolve', (context) => resolve(access, context))
  const scrubbed = (upkeep: Upkeep): object => upkeep.scrubReport
  app.get('/scrub', (context) => tell(access, context, scrubbed))
  app.post('/scrub', (context) => begin(access, context, (upkeep) => upkeep.scrub(), scrubbed))
}

type Report = (upkeep: Upkeep, isTrusted: boolean) => object

function tell(access: UpkeepAccess | undefined, context: Context, report: Report): Response {
  const upkeep = findPart(access, context)
  if (upkeep instanceof Response) return upkeep
  return context.json(report(upkeep, access?.mayUse(context.req.raw) === true))
}

function begin(
  access: UpkeepAccess | undefined,
  context: Context,
  start: (upkeep: Upkeep) => Begun,
  report: Report,
): Response {
  const upkeep = findTrusted(access, context)
  if (upkeep instanceof Response) return upkeep
  return context.json({ ...start(upkeep), ...report(upkeep, true) }, 202)
}

async function resolve(access: UpkeepAccess | undefined, context: Context): Promise<Response> {
  const upkeep = findTrusted(access, context)
  if (upkeep instanceof Response) return upkeep
  const { group: name = '', from = '' } = context.req.query()
  try {
    if (!isNodeId(from)) throw new StoreError('invalid', `from: ${quoted(from)} names no node`)
    await upkeep.resolve(parseGroupName(name), from)
    return context.json({ group: name, from }, 202)
  } catch (error) {
    return refusalPage(context, error)
  }
}
