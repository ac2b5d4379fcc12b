/**
 * The requests by which an operator sees the builds of a replica set, and puts the next cluster version in force: `/upgrade`. GET tells,
 * and is open as all figures are. POST raises the version of this node's set, and takes the cluster's secret.
 */
import type { Context, Hono } from 'hono'
import { present } from '../base/assert.ts'
import { isVersion, type Versions } from '../base/cluster-version.ts'
import { StoreError } from '../base/errors.ts'
import type { MembersPort } from '../members/report.ts'
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

/** The node, and where others are. */
export interface UpgradeSelf {
  readonly node: string
  readonly set: string
  /** The version of the program. */
  readonly build: string
  /** All nodes of the configuration, with the names of their sets. */
  readonly nodes: readonly { readonly id: string; readonly url: string; readonly set: string }[]
  /** Where the members of now are, by their ids. */
  readonly urls: ReadonlyMap<string, string>
}

export interface UpgradeAccess extends OperationAccess<MembersPort> {
  self(): UpgradeSelf
}

/** One member of a set as another one sees it. */
export interface UpgradeMember {
  readonly node: string
  /** Absent: it is not known. */
  readonly url?: string
  readonly isAlive: boolean
  readonly supports?: Versions
  /** The cluster version that is in force at it; absent: it has not told. */
  readonly version?: number
}

/** Of builds that know of cluster versions. */
const since = 2

export const upgradeAnswers: readonly OperationAnswer[] = [
  {
    path: '/upgrade',
    operationId: 'getUpgrade',
    summary: 'The cluster version in force at this node, and the builds of its replica set',
    since,
    answers: { 200: { what: 'The versions, as this node sees them.', type: json }, ...refusals },
  },
  {
    path: '/upgrade/finalize',
    method: 'POST',
    operationId: 'finalizeUpgrade',
    summary: "Puts that cluster version in force in this node's replica set",
    since,
    texts: { to: 'the cluster version that follows the one in force' },
    answers: {
      200: { what: 'The cluster version in force.', type: json },
      ...refusalsOfTrust,
      400: {
        what: 'This build does not support that version, or one before it is not in force; or the request has a body.',
        type: problemContentType,
      },
      ...refusals,
      503: {
        what: 'A member is down or supports less, no majority answers, or the stores are being opened, or closed.',
        type: problemContentType,
      },
    },
  },
]

export function addUpgradeRoutes(app: Hono, access: UpgradeAccess | undefined): void {
  app.get('/upgrade', (context) => {
    const members = findPart(access, context)
    if (members instanceof Response) return members
    const self = present(access, 'upgrade: a part without access').self()
    return context.json(describe(members, self))
  })
  app.post('/upgrade/finalize', (context) => finalize(access, context))
}

function describe({ report }: MembersPort, self: UpgradeSelf): object {
  const { node, set, build, nodes, urls } = self
  const { epoch, version } = report
  const members = report.members.map((one): UpgradeMember => {
    const { node: id, isAlive, supports, version: at } = one
    const url = urls.get(id)
    return {
      ...{ node: id, ...(url !== undefined && url !== '' && { url }), isAlive },
      ...(supports && { supports }),
      ...(at !== undefined && { version: at }),
    }
  })
  const supports = members.find((one) => one.node === node)?.supports
  return { node, set, build, supports, version, epoch, members, nodes }
}

async function finalize(access: UpgradeAccess | undefined, context: Context): Promise<Response> {
  const members = findTrusted(access, context)
  if (members instanceof Response) return members
  try {
    return context.json(await members.raise(readVersion(context)))
  } catch (error) {
    return refusalPage(context, error)
  }
}

function readVersion(context: Context): number {
  const { to = '' } = context.req.query()
  const version = /^[0-9]+$/.test(to) ? Number(to) : undefined
  if (isVersion(version)) return version
  throw new StoreError('invalid', `to: ${quoted(to)} is no cluster version`)
}
