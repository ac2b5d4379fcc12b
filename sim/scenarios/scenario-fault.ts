/**
 * Faults as a file holds them: the shape of each kind, the endpoints it names, simpler ones of it.
 */
import type { Fault, FaultKind, Way } from '../faults/fault.ts'
import { optional } from './scenario-shape.ts'

const way: Way = ['n1', 'n2']
const moment = { kind: '', atMicros: 0, name: optional('') }
const lasting = { ...moment, lengthMicros: 0 }
const downing = { ...moment, node: '', downMicros: 0 }
const onDisk = { node: '', disk: '' }

/** A sample of each kind, for `findMisfit`. */
export const faultShapes: Readonly<Record<FaultKind, unknown>> = {
  crash: { ...downing, inWriteMicros: optional(0), inSwitch: optional(0) },
  stop: downing,
  'crash-in-recovery': { ...downing, ...lasting, writesBefore: [0] },
  pause: { ...lasting, node: '' },
  stall: { ...lasting, node: '' },
  'stall-in-read': { ...lasting, node: '' },
  suspend: { ...lasting, node: '' },
  cut: { ...lasting, ways: [way], resets: false },
  'isolate-leader': lasting,
  reset: { ...moment, between: way },
  'lose-reply': { ...moment, node: '' },
  echo: { ...moment, node: '', framesMax: 0 },
  clog: { ...lasting, ways: [way] },
  'slow-node': { ...lasting, node: '', extraMicros: 0 },
  'slow-disk': { ...lasting, node: '', extraMicros: 0 },
  'slow-read': { ...lasting, ...onDisk, extraMicros: 0 },
  'fsync-error': { ...downing, disk: '' },
  'no-space': { ...lasting, ...onDisk },
  'torn-write': { ...downing, kept: 0 },
  'bit-rot': {
    ...{ ...moment, ...onDisk, place: 0, bit: 0 },
    ...{ isInValues: optional(true), inRows: optional('') },
  },
  'journal-rot': {
    ...{ ...downing, place: 0, bit: 0, passedOver: 0 },
    ...{ isIllegible: optional(true), diesMending: optional(true) },
  },
  'misdirected-write': { ...moment, ...onDisk, from: 0, to: 0 },
  'stale-disk': { ...downing, disk: '', imageAtMicros: 0 },
  'empty-disk': { ...downing, disk: '' },
  'swapped-disks': { ...lasting, nodes: way },
  'clock-jump': { ...moment, node: '', wallMicros: 0, monotonicMicros: 0 },
  'clock-strobe': { ...lasting, node: '', wallMicros: 0, everyMicros: 0 },
  renew: { ...moment, node: '' },
  replace: { ...downing, backMicros: optional(0) },
  'mistaken-replace': { ...lasting, node: '' },
  add: { ...downing, readerMicros: optional(0) },
  demote: { ...lasting, node: '' },
  remove: { ...moment, node: '' },
  'change-build': { ...downing, build: 0 },
  finalize: { ...moment, node: '', looksFirst: false },
  storm: lasting,
  idle: lasting,
  huge: lasting,
  'client-death': { ...moment, client: '', downMicros: 0 },
  'client-pause': { ...lasting, client: '' },
}

/** Every node and client that a fault names. */
export function listEndpoints(fault: Fault): readonly string[] {
  if ('ways' in fault) return fault.ways.flat()
  if ('between' in fault) return fault.between
  if ('nodes' in fault) return fault.nodes
  if ('node' in fault) return [fault.node]
  return 'client' in fault ? [fault.client] : []
}

/** The fault as far as it concerns these endpoints; undefined when nothing of it is left. */
export function amongEndpoints(fault: Fault, names: ReadonlySet<string>): Fault | undefined {
  if (!('ways' in fault)) {
    return listEndpoints(fault).every((name) => names.has(name)) ? fault : undefined
  }
  const ways = fault.ways.filter((one) => one.every((name) => names.has(name)))
  return ways.length === 0 ? undefined : { ...fault, ways }
}

/** Ways to tell one fault more simply, those that change most first. */
export function simplerFaults(fault: Fault): readonly Fault[] {
  return [...simplerKinds(fault), ...fewerWays(fault), ...shorterFaults(fault)]
}

function simplerKinds(fault: Fault): readonly Fault[] {
  const isTimed = 'inWriteMicros' in fault || 'inSwitch' in fault
  if (fault.kind === 'crash' && isTimed) {
    const { kind, atMicros, node, downMicros } = fault
    return [{ kind, atMicros, node, downMicros }]
  }
  if (fault.kind === 'crash-in-recovery' && fault.writesBefore.length > 0) {
    const { writesBefore } = fault
    return writesBefore.map((_, index) => {
      return { ...fault, writesBefore: writesBefore.toSpliced(index, 1) }
    })
  }
  return fault.kind === 'cut' && fault.resets ? [{ ...fault, resets: false }] : []
}

/** Clients are cut off along with the nodes, and mostly need not be. */
function fewerWays(fault: Fault): readonly Fault[] {
  if (!('ways' in fault)) return []
  const { ways } = fault
  const amongNodes = ways.filter((one) => one.every((name) => name.startsWith('n')))
  const withoutOne = ways.map((_, index) => ways.toSpliced(index, 1))
  const fewer = [amongNodes, ...withoutOne].filter((one) => one.length > 0)
  return fewer.filter((one) => one.length < ways.length).map((one) => ({ ...fault, ways: one }))
}

function shorterFaults(fault: Fault): readonly Fault[] {
  if ('lengthMicros' in fault) {
    return shorter(fault.lengthMicros).map((lengthMicros) => ({ ...fault, lengthMicros }))
  }
  if ('downMicros' in fault) {
    return shorter(fault.downMicros).map((downMicros) => ({ ...fault, downMicros }))
  }
  return []
}

/** Shorter, or at least rounder. */
function shorter(micros: number): readonly number[] {
  const rounded = Math.ceil(micros / 1_000) * 1_000
  const round = [1_000, 10_000, 100_000, 1_000_000].filter((one) => one < micros)
  return rounded === micros ? round : [...round, rounded]
}
