/** Declaring datastores over HTTP, and finding those that were declared. */
import { formatIso } from '../base/datetime.ts'
import type { Json } from '../cells/body.ts'
import { shardCountMax } from '../cells/datastore-form.ts'
import { requestBytesMax } from '../cells/limits.ts'
import type {
  Datastores,
  DatastoreOptions,
  DatastorePlacement,
  DeclaredDatastore,
} from '../client/datastores.ts'
import { readMembers, readNumber, readText } from './batch-body.ts'
import { json, segment, type Exchange } from './exchange.ts'
import { HttpProblem, refuse } from './problems.ts'
import { problem } from '../base/problem.ts'
import { readJson, requireJson } from './request-body.ts'

const limit = { name: 'requestBytesMax', bytesMax: requestBytesMax }

/** 201 when it is new; sent again, 200. */
export async function declareDatastore(exchange: Exchange): Promise<Response> {
  requireJson(exchange.context.req.raw)
  const { shards, placement } = readForm(await readJson(exchange, limit))
  const given = { ...(shards !== undefined && { shards }), ...(placement && { placement }) }
  const base = segment(exchange, 'datastore')
  const { kind, declared } = await listed(exchange).create(base, { ...given, ...callOf(exchange) })
  return json(plain(declared), kind === 'new' ? 201 : 200, {})
}

export async function getDatastore(exchange: Exchange): Promise<Response> {
  const base = segment(exchange, 'datastore')
  const found = await listed(exchange).find(base, callOf(exchange))
  if (found !== undefined) return json(plain(found), 200, {})
  const message = `datastore ${base} was not declared: used by this name it has ${shardCountMax} shards on all sets`
  throw new HttpProblem(problem('not-found', message))
}

export async function listDatastores(exchange: Exchange): Promise<Response> {
  const found = await listed(exchange).list(callOf(exchange))
  return json({ items: found.map(plain) }, 200, {})
}

function listed({ datastores }: Exchange): Datastores {
  return datastores ?? refuse('this server knows no list of datastores')
}

function callOf({ timeoutMs }: Exchange): DatastoreOptions {
  return { timeoutMs: Math.max(1, Math.floor(timeoutMs)) }
}

/** `{shards?, placement?}`; a placement is `{region}` or `{set}`. */
function readForm(body: Json): {
  readonly shards?: number
  readonly placement?: DatastorePlacement
} {
  const members = readMembers(body, 'the body', ['shards', 'placement'])
  const placement = members.get('placement')
  return {
    ...(members.has('shards') && { shards: readNumber(members, 'shards', 'the body') }),
    ...(placement !== undefined && { placement: readPlacement(placement) }),
  }
}

function readPlacement(given: Json): DatastorePlacement {
  const members = readMembers(given, 'placement', ['region', 'set'])
  if (members.size !== 1) return refuse('placement has a region or a set')
  if (members.has('region')) return { region: readText(members, 'region', 'placement') }
  return { set: readText(members, 'set', 'placement') }
}

function plain({ declaredAt, ...one }: DeclaredDatastore): object {
  return { ...one, declaredAt: formatIso(declaredAt) }
}
