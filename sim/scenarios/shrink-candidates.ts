/** Smaller plans made from a plan: pure functions, which say nothing of whether a failure stays. */
import { aroundNodes, clientName, nodeName } from '../cluster/endpoints.ts'
import type { Fault } from '../faults/fault.ts'
import type { RunPlan } from '../run.ts'
import { calmed } from './scenario-calm.ts'
import { amongEndpoints } from './scenario-fault.ts'
import type { Operation } from './scenario-operation.ts'
import { noFaultRates } from '../faults/swarm-faults.ts'
import type { SwarmOptions } from '../swarm.ts'

/** Only what begins before `untilMicros` can have to do with what happened by then. */
export function until(plan: RunPlan, untilMicros: number): RunPlan {
  const { operations } = plan
  return {
    ...withLength(plan, untilMicros),
    faults: plan.faults.filter((fault) => fault.atMicros <= untilMicros),
    ...(operations && { operations: operations.filter((one) => one.atMicros <= untilMicros) }),
  }
}

/** The phase of faults lasts this long; the former rates no longer matter. */
export function withLength(plan: RunPlan, lengthMicros: number): RunPlan {
  return withOptions(plan, { faultRates: noFaultRates(lengthMicros) })
}

export function withOptions(plan: RunPlan, options: Partial<SwarmOptions>): RunPlan {
  return { ...plan, options: { ...plan.options, ...options } }
}

export function withCalm(plan: RunPlan, paths: readonly string[]): RunPlan {
  const options = calmed(plan.options, paths)
  const { nodeCount, workload } = options
  // Without gateways nothing befalls them.
  return { ...plan, options, faults: amongFaults(plan.faults, listNames(nodeCount, workload)) }
}

/** The first `nodeCount` nodes, and of the faults what concerns no other. */
export function withNodes(plan: RunPlan, nodeCount: number): RunPlan {
  const { options } = plan
  const { skews, workload } = options
  const names = listNames(nodeCount, workload)
  const coreOrder = options.healing.coreOrder.filter((name) => names.has(name))
  const healing = { ...options.healing, coreOrder }
  const smaller = { nodeCount, setCount: 1, skews: skews.slice(0, nodeCount), healing }
  const faults = amongFaults(plan.faults, names)
  const { nodesByClient = {} } = plan
  // A client whose nodes are all gone draws its nodes again.
  const known = Object.entries(nodesByClient)
    .map(([client, nodes]) => [client, nodes.filter((node) => names.has(node))] as const)
    .filter(([, nodes]) => nodes.length > 0)
  return { ...withOptions(plan, smaller), faults, nodesByClient: Object.fromEntries(known) }
}

/** As many clients as have something to do; the others' links are no longer cut. */
export function withClientsAtWork(plan: RunPlan): RunPlan {
  const { options, faults, operations = [] } = plan
  const { workload, nodeCount } = options
  const used = new Set(operations.map((one) => one.client))
  const all = Array.from({ length: workload.clientCount }, (_, i) => clientName(i))
  const clientCount = Math.max(1, all.findLastIndex((name) => used.has(name)) + 1)
  const smaller = { ...workload, clientCount }
  const among = amongFaults(faults, listNames(nodeCount, smaller))
  return { ...withOptions(plan, { workload: smaller }), faults: among }
}

function listNames(nodeCount: number, workload: SwarmOptions['workload']): ReadonlySet<string> {
  const nodes = Array.from({ length: nodeCount }, (_, i): string => nodeName(i))
  return new Set([...nodes, ...aroundNodes(workload)])
}

function amongFaults(faults: readonly Fault[], names: ReadonlySet<string>): readonly Fault[] {
  return faults.flatMap((fault) => amongEndpoints(fault, names) ?? [])
}

/** The operations of some clients only. */
export function filterOperations(
  operations: readonly Operation[],
  clients: readonly string[],
): readonly Operation[] {
  return operations.filter((one) => clients.includes(one.client))
}

/** Priorities change at these moments alone. */
export function withChanges(plan: RunPlan, changesAtMicros: readonly number[]): RunPlan {
  const { priorities } = plan.options
  if (priorities === undefined) return plan
  return withOptions(plan, { priorities: { ...priorities, changesAtMicros } })
}

/** Everything begins as soon after what came before it as `gapMicros` allows. */
export function compressed(plan: RunPlan, gapMicros: number): RunPlan {
  const { faults, operations = [] } = plan
  const { priorities } = plan.options
  const begun = [...faults, ...operations].map((one) => one.atMicros)
  const moments = [...begun, ...(priorities?.changesAtMicros ?? [])]
  const movedByMoment = new Map<number, number>()
  let before = 0
  let moved = 0
  for (const moment of [...new Set(moments)].sort((a, b) => a - b)) {
    moved += Math.min(moment - before, gapMicros)
    movedByMoment.set(moment, moved)
    before = moment
  }
  const movedTo = (atMicros: number): number => movedByMoment.get(atMicros) ?? atMicros
  const move = <T extends { readonly atMicros: number }>(one: T): T => ({
    ...one,
    atMicros: movedTo(one.atMicros),
  })
  const changesAtMicros = priorities?.changesAtMicros.map(movedTo)
  return {
    ...(changesAtMicros === undefined ? plan : withChanges(plan, changesAtMicros)),
    faults: faults.map(move),
    ...(plan.operations && { operations: operations.map(move) }),
  }
}
