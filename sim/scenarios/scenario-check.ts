/**
 * Checks what a scenario file holds before anything is run: shapes by samples, then that the nodes
 * and clients named exist and that the bounds do not contradict one another.
 */
import { checkLimits } from '../../src/base/limits.ts'
import { defaultSliceLimits } from '../../src/ports/turn-budget.ts'
import { aroundNodes, clientName, nodeName } from '../cluster/endpoints.ts'
import type { LostData } from '../faults/swarm-faults.ts'
import type { HeavyOptions } from '../workloads/heavy-draw.ts'
import type { RunPlan } from '../run.ts'
import { calmOptions } from './scenario-calm.ts'
import { listEndpoints, faultShapes } from './scenario-fault.ts'
import type { Operation } from './scenario-operation.ts'
import { isRecord, findMisfit, optional } from './scenario-shape.ts'
import { misfitOfFault, misfitOfOperation, misfitOfOptions } from './scenario-values.ts'
import { noTimes } from '../world/turn-costs.ts'

/** Marks a member whose shape is anything. */
const anything = (): undefined => undefined

const reads = { client: '', atMicros: 0, isCurrent: false }

const listMicro = { kind: '', list: '', element: optional('') }

const operationShapes: Readonly<Record<Operation['kind'], unknown>> = {
  put: { kind: 'put', client: '', atMicros: 0, row: '', column: '', refKey: 0, body: anything },
  get: { kind: 'get', ...reads, row: '', column: '', refKey: 0 },
  latest: { kind: 'latest', ...reads, row: '', column: '' },
  row: { kind: 'row', ...reads, row: '', limit: optional(0) },
  versions: {
    kind: 'versions',
    ...{ ...reads, row: '', column: '', from: 0, limit: 0, reverse: false },
    isWhole: optional(false),
  },
  log: { kind: 'log', ...reads, shard: 0, after: 0, limit: 0, isWhole: optional(false) },
  since: { kind: 'since', ...reads, shard: 0, time: 0, limit: 0 },
  gets: { kind: 'gets', ...reads, rows: [''], column: '' },
  logs: { kind: 'logs', ...reads, shards: [0], after: [0], limit: 0 },
  purge: {
    kind: 'purge',
    client: '',
    atMicros: 0,
    shard: 0,
    upTo: 0,
    column: optional(''),
    keepsLatest: false,
  },
  blind: { kind: 'blind', client: '', atMicros: 0, group: '', sequence: 0 },
  lists: { kind: 'lists', ...reads, group: '', micro: [listMicro] },
}

/** The first thing wrong with a plan, or undefined. */
export function misfitOfPlan(value: unknown): string | undefined {
  if (!isRecord(value)) return 'plan: expected an object'
  const shape = {
    options: optionsShape(),
    faults: [anything],
    operations: optional([anything]),
    nodesByClient: optional(anything),
  }
  const misfit =
    findMisfit(value, shape, 'plan') ??
    misfitOfKinds(value['faults'], faultShapes, 'plan.faults') ??
    misfitOfKinds(value['operations'] ?? [], operationShapes, 'plan.operations')
  return misfit ?? misfitOfMembers(value['nodesByClient'] ?? {}, [''], 'plan.nodesByClient')
}

/** An object whose members, whatever they are called, all have one shape. */
function misfitOfMembers(value: unknown, shape: unknown, path: string): string | undefined {
  if (!isRecord(value)) return `${path}: expected an object`
  const misfits = Object.entries(value).map(([name, one]) =>
    findMisfit(one, shape, `${path}.${name}`),
  )
  return misfits.find((misfit) => misfit !== undefined)
}

const gatewayShape = {
  count: 0,
  webClientCount: 0,
  batchCallerCount: 0,
  askTimeoutMs: 0,
  triesMax: 0,
  tryTimeoutMs: 0,
  failuresMax: 0,
  openMs: 0,
}

const heavyShape: HeavyOptions = {
  bursts: 0,
  polls: 0,
  places: 0,
  batchItems: 0,
  waitMs: 0,
  slices: defaultSliceLimits,
}

const lostDataShape: LostData = {
  node: '',
  behind: [''],
  ahead: [''],
  atMicros: 0,
  lostAtMicros: 0,
  untilMicros: 0,
}

function optionsShape(): unknown {
  const calm = calmOptions(1)
  return {
    ...calm,
    setCount: optional(1),
    spares: optional(1),
    laterNodes: optional(3),
    workload: {
      ...calm.workload,
      boundedSessionCount: optional(0),
      purges: optional(0),
      cellTtl: optional(1),
      erases: optional(true),
      readBack: optional(0),
      gateways: optional(gatewayShape),
      heavy: optional(heavyShape),
      lone: optional({ node: '', atMicros: 0, untilMicros: 0 }),
      openLoad: optional({ times: 0, clients: 0 }),
      queues: { ...calm.workload.queues, redriveMeanMicros: optional(0) },
    },
    link: { ...calm.link, far: optional(0), farFactor: optional(0) },
    segmentBytes: optional(0),
    times: optional(noTimes),
    priorities: optional({ base: 0, changesAtMicros: [0] }),
    relay: optional({ lookMs: 0, patienceMs: 0 }),
    faultRates: {
      ...calm.faultRates,
      meanMicros: anything,
      firstBuild: optional(1),
      lostData: optional(lostDataShape),
    },
    healing: { ...calm.healing, coreOrder: [''] },
  }
}

function misfitOfKinds(
  list: unknown,
  shapes: Readonly<Record<string, unknown>>,
  path: string,
): string | undefined {
  if (!Array.isArray(list)) return `${path}: expected a list`
  for (const [index, element] of list.entries()) {
    const at = `${path}[${index}]`
    const kind: unknown = isRecord(element) ? element['kind'] : undefined
    if (typeof kind !== 'string' || !Object.hasOwn(shapes, kind)) {
      return `${at}.kind: expected one of ${Object.keys(shapes).join(', ')}`
    }
    const misfit = findMisfit(element, shapes[kind], at)
    if (misfit !== undefined) return misfit
  }
  return undefined
}

/** Of nodes and sets. */
function findMiscount(options: RunPlan['options']): string | undefined {
  const { nodeCount, setCount = 1, spares = 0, laterNodes = 0 } = options
  if (nodeCount < 1 || nodeCount > nodesMax) {
    return `plan.options.nodeCount: expected 1 to ${nodesMax}`
  }
  if (setCount < 1 || setCount > nodeCount) return 'plan.options.setCount: expected 1 to nodeCount'
  if (spares < 0 || nodeCount + spares > nodesMax) return 'plan.options.spares: too many nodes'
  const isMany = laterNodes > laterNodesMax
  return laterNodes < 0 || isMany ? 'plan.options.laterNodes: too many nodes' : undefined
}

/** Whether a value of the right shape is a plan that can be run. */
export function findContradiction(plan: RunPlan): string | undefined {
  const { nodeCount, spares = 0, laterNodes = 0, skews, workload } = plan.options
  const miscount = findMiscount(plan.options)
  if (miscount !== undefined) return miscount
  const all = nodeCount + spares + laterNodes
  if (skews.length !== nodeCount) return 'plan.options.skews: expected one a node'
  const names: Names = {
    nodes: new Set(Array.from({ length: all }, (_, i): string => nodeName(i))),
    clients: new Set(Array.from({ length: workload.clientCount }, (_, i) => clientName(i))),
    around: new Set(aroundNodes(workload)),
  }
  const misfit = misfitOfOptions(plan.options, names.nodes)
  if (misfit !== undefined) return `plan.options.${misfit}`
  return (
    contradictionOfFaults(plan, names) ??
    contradictionOfOperations(plan, names) ??
    contradictionOfLimits(plan)
  )
}

const nodesMax = 9
/** Of a set that comes later, beside those. */
const laterNodesMax = 3

interface Names {
  readonly nodes: ReadonlySet<string>
  readonly clients: ReadonlySet<string>
  /** Clients of cells, and gateways. */
  readonly around: ReadonlySet<string>
}

function contradictionOfFaults({ faults }: RunPlan, { nodes, around }: Names): string | undefined {
  for (const [index, fault] of faults.entries()) {
    const stranger = listEndpoints(fault).find((name) => !nodes.has(name) && !around.has(name))
    if (stranger !== undefined) return `plan.faults[${index}]: there is no ${stranger}`
    if ('node' in fault && !nodes.has(fault.node)) return `plan.faults[${index}]: not a node`
    const misfit = misfitOfFault(fault)
    if (misfit !== undefined) return `plan.faults[${index}].${misfit}`
  }
  return undefined
}

/** Sessions that are no clients of the cells. */
const sessionNames: Readonly<Partial<Record<Operation['kind'], RegExp>>> = {
  blind: /^blind-\d+$/,
  lists: /^list-\d+$/,
}

function contradictionOfOperations(plan: RunPlan, { nodes, clients }: Names): string | undefined {
  const { operations = [], nodesByClient = {} } = plan
  for (const [index, operation] of operations.entries()) {
    const { kind, client } = operation
    const isKnown = sessionNames[kind]?.test(client) ?? clients.has(client)
    if (!isKnown) return `plan.operations[${index}]: there is no ${client}`
    const misfit = misfitOfOperation(operation)
    if (misfit !== undefined) return `plan.operations[${index}].${misfit}`
  }
  const known = Object.values(nodesByClient)
  const isKnown = known.every((names) => names.length > 0 && names.every((name) => nodes.has(name)))
  return isKnown
    ? undefined
    : 'plan.nodesByClient: a client knows one node or more of those that there are'
}

function contradictionOfLimits({ options }: RunPlan): string | undefined {
  try {
    checkLimits(options.limits)
    return undefined
  } catch (error) {
    // The assertion's own sentence says which bounds contradict one another.
    return `plan.options.${error instanceof Error ? error.message : 'limits: contradict one another'}`
  }
}
