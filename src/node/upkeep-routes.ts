/**
 * The requests by which an operator has a node compare its groups, or scrub its stores, now: `/compare`, `/scrub`. GET
 * says how far that is, and is open as all figures are. POST begins it, and takes the cluster's secret. So do names of
 * groups, which are keys of rows.
 */
import type { Context, Hono } from 'hono'
import { StoreError } from '../base/errors.ts'
import { groupOfBytes, isNodeId, type GroupId } from '../base/ids.ts'
import type { Begun, Upkeep as UpkeepOfNode } from '../replica/upkeep.ts'
import type { OperationAnswer } from './operation-answer.ts'
import { problemContentType, problemPage, unauthorized } from './refusals.ts'

type Upkeep = Pick<UpkeepOfNode, keyof UpkeepOfNode>

export interface UpkeepAccess {
  /** Whether the request may begin something, and be told names of groups. */
  mayUse(request: Request): boolean
  /** Undefined while the node serves nothing. */
  find(): Upkeep | undefined
}

const json = 'application/json'
const refusals = {
  404: { what: 'A gateway has no stores.', type: problemContentType },
  503: { what: 'The stores are being opened, or closed.', type: problemContentType },
}
const begun = {
  202: { what: 'The round that is under way now.', type: json },
  400: { what: 'The request has a body.', type: problemContentType },
  401: { what: 'The secret is missing.', type: problemContentType },
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
  const upkeep = findUpkeep(access, context)
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

const statusByRefusal: Readonly<Record<string, 400 | 404 | 503>> = {
  ...{ invalid: 400, 'not-found': 404, unavailable: 503 },
}

async function resolve(access: UpkeepAccess | undefined, context: Context): Promise<Response> {
  const upkeep = findTrusted(access, context)
  if (upkeep instanceof Response) return upkeep
  const { group: name = '', from = '' } = context.req.query()
  try {
    if (!isNodeId(from)) throw new StoreError('invalid', `from: ${quoted(from)} names no node`)
    await upkeep.resolve(parseGroup(name), from)
    return context.json({ group: name, from }, 202)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    const status = statusByRefusal[error.code]
    if (status === undefined) throw error
    return problem(context, status, error.code, error.message)
  }
}

const groupDigitsMax = 2 * 1_024

function parseGroup(text: string): GroupId {
  const isName = /^(?:[0-9a-f]{2})+$/.test(text) && text.length <= groupDigitsMax
  if (isName) return groupOfBytes(Buffer.from(text, 'hex'))
  const what = 'is no name of a group in hexadecimal: trilithon compare status lists names'
  throw new StoreError('invalid', `group: ${quoted(text)} ${what}`)
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 80))
}

function findTrusted(access: UpkeepAccess | undefined, context: Context): Upkeep | Response {
  const request = context.req.raw
  if (access !== undefined && !access.mayUse(request)) return unauthorized()
  const hasBody = (request.headers.get('content-length') ?? '0') !== '0'
  if (hasBody || request.headers.has('transfer-encoding')) {
    return problem(context, 400, 'invalid', 'this request takes no body')
  }
  return findUpkeep(access, context)
}

function findUpkeep(access: UpkeepAccess | undefined, context: Context): Upkeep | Response {
  if (access === undefined) {
    return problem(context, 404, 'not-found', 'a gateway has no stores: ask a node')
  }
  const text = 'the stores are being opened, or closed: ask again'
  return access.find() ?? problem(context, 503, 'unavailable', text)
}

function problem(
  context: Context,
  status: 400 | 404 | 503,
  code: StoreError['code'],
  text: string,
): Response {
  const type = { 'content-type': problemContentType }
  return context.body(problemPage(status, code, text), status, type)
}
