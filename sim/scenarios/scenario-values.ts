/**
 * Values that have the right type and still mean nothing: a way with one end, a list that there is
 * not, a delay below zero. Each check returns the first thing wrong, by its place in the plan.
 */
import { ownVersions, supportsVersion } from '../../src/base/cluster-version.ts'
import { isUuid } from '../../src/base/ids.ts'
import { bucketCount } from '../../src/base/limits.ts'
import type { Fault } from '../faults/fault.ts'
import { brokenKinds } from '../faults/nemesis.ts'
import { prioritiesMax, type PriorityOptions } from '../world/priorities.ts'
import type { Operation } from './scenario-operation.ts'
import { isRecord } from './scenario-shape.ts'
import { allLists } from '../workloads/append-rows.ts'
import { storeNames } from '../workloads/table-workload.ts'
import { always } from '../world/random.ts'
import type { SwarmOptions } from '../swarm.ts'
import { costFactorMax, type TimeOptions } from '../world/turn-costs.ts'

/** Clients that a scenario may name; more than that would be another kind of test. */
const clientsMax = 1_000

const disksByKind: Readonly<Partial<Record<Fault['kind'], readonly string[]>>> = {
  'slow-read': ['log', 'data'],
  'fsync-error': ['log', 'data'],
  'no-space': ['log', 'data'],
  'bit-rot': ['log', 'data'],
  'misdirected-write': ['log', 'data'],
  'stale-disk': ['both', 'data'],
  'empty-disk': ['both', 'data'],
}

/** Times are moments or lengths; only how far a clock jumps may be below zero. */
const signed: readonly string[] = ['wallMicros', 'monotonicMicros', 'offsetMicros', 'driftPpm']

export function misfitOfFault(fault: Fault): string | undefined {
  const disks = disksByKind[fault.kind]
  if (disks !== undefined && 'disk' in fault && !disks.includes(fault.disk)) {
    return `disk: expected one of ${disks.join(', ')}`
  }
  if (fault.kind === 'change-build' && !supportsVersion(ownVersions, fault.build)) {
    return buildsText('build')
  }
  for (const [index, [...ends]] of listPairs(fault).entries()) {
    const [from, to, ...others] = ends
    const isPair = from !== undefined && to !== undefined && others.length === 0
    if (!isPair || from === to) return `pair ${index + 1}: expected two different names`
  }
  return misfitOfNumbers(fault, '')
}

function buildsText(name: string): string {
  return `${name}: expected ${ownVersions.min} to ${ownVersions.max}`
}

function listPairs(fault: Fault): readonly (readonly string[])[] {
  if ('ways' in fault) return fault.ways
  if ('between' in fault) return [fault.between]
  return 'nodes' in fault ? [fault.nodes] : []
}

export function misfitOfOperation(operation: Operation): string | undefined {
  const negative = misfitOfNumbers({ ...operation, body: undefined }, '')
  if (negative !== undefined) return negative
  switch (operation.kind) {
    case 'blind':
      return checkOneOf(operation.group, ['x', 'y'], 'group')
    case 'lists':
      return checkOneOf(operation.group, ['p', 'q'], 'group') ?? misfitOfMicro(operation.micro)
    case 'log':
    case 'since':
    case 'purge':
      return operation.shard < bucketCount ? undefined : `shard: expected below ${bucketCount}`
    case 'logs': {
      const isKnown = operation.shards.every((shard) => shard < bucketCount)
      return isKnown ? undefined : `shards: expected below ${bucketCount}`
    }
    case 'gets':
      return operation.rows.every(isUuid) ? undefined : 'rows: expected UUIDs'
    default:
      return isUuid(operation.row) ? undefined : 'row: expected a UUID'
  }
}

function misfitOfMicro(
  micro: Extract<Operation, { readonly kind: 'lists' }>['micro'],
): string | undefined {
  for (const [index, one] of micro.entries()) {
    const element: unknown = one.kind === 'append' ? one.element : ''
    const misfit =
      checkOneOf(one.kind, ['append', 'read'], 'kind') ??
      checkOneOf(one.list, allLists, 'list') ??
      (element === undefined ? 'element: is missing' : undefined)
    if (misfit !== undefined) return `micro[${index}].${misfit}`
  }
  return undefined
}

function checkOneOf(value: string, names: readonly string[], path: string): string | undefined {
  return names.includes(value) ? undefined : `${path}: expected one of ${names.join(', ')}`
}

export function misfitOfOptions(
  options: SwarmOptions,
  nodes: ReadonlySet<string>,
): string | undefined {
  const { healing, workload, priorities, times } = options
  if (workload.clientCount > clientsMax)
    return `workload.clientCount: expected at most ${clientsMax}`
  const { firstBuild = ownVersions.max } = options.faultRates
  if (!supportsVersion(ownVersions, firstBuild)) return buildsText('firstBuild')
  const { tableStoreCount } = workload
  if (tableStoreCount < 1 || tableStoreCount > storeNames.length)
    return `workload.tableStoreCount: expected 1 to ${storeNames.length}`
  const stranger = healing.coreOrder.find((name) => !nodes.has(name))
  if (stranger !== undefined) return `healing.coreOrder: there is no ${stranger}`
  return (
    checkOneOf(healing.rest, brokenKinds, 'healing.rest') ??
    (times && misfitOfTimes(times)) ??
    (priorities && misfitOfPriorities(priorities)) ??
    misfitOfNumbers(options, '')
  )
}

function misfitOfPriorities({ base, changesAtMicros }: PriorityOptions): string | undefined {
  const most = prioritiesMax
  if (base < 1 || base > most.base) return `priorities.base: expected 1 to ${most.base}`
  return changesAtMicros.length > most.changes
    ? `priorities.changesAtMicros: expected at most ${most.changes}`
    : undefined
}

function misfitOfTimes({ costFactor, waits }: TimeOptions): string | undefined {
  if (costFactor > costFactorMax) return `times.costFactor: expected at most ${costFactorMax}`
  return waits > always ? `times.waits: expected at most ${always}` : undefined
}

/** The first number below zero, but for those that may be. */
function misfitOfNumbers(value: unknown, path: string): string | undefined {
  if (typeof value === 'number') return value < 0 ? `${path}: is below zero` : undefined
  const members = Array.isArray(value)
    ? [...value.entries()]
    : isRecord(value)
      ? Object.entries(value)
      : []
  for (const [name, inner] of members) {
    if (signed.includes(String(name))) continue
    const misfit = misfitOfNumbers(inner, path === '' ? String(name) : `${path}.${name}`)
    if (misfit !== undefined) return misfit
  }
  return undefined
}
