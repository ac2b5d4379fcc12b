/** The facts about each register: the writer of each version, and the reads of it. */
import type { Anomalies } from './anomaly.ts'
import type { Element, History, MicroOperation, Outcome, SeenVersion } from './operation.ts'
import { quoted } from './words.ts'

export interface RegisterView {
  readonly operation: number
  /**
   * The highest version seen; -1 when there was none, undefined when the read asked for one
   * version.
   */
  readonly latest: number | undefined
  /** The one version that the read asked for. */
  readonly asked: { readonly version: number; readonly isPresent: boolean } | undefined
}

export interface RegisterFacts {
  readonly key: string
  /**
   * The operation that wrote each version; undefined when several may have, and none was
   * acknowledged.
   */
  readonly writers: Map<number, number | undefined>
  readonly views: RegisterView[]
  readonly values: Map<number, { readonly value: Element; readonly operation: number }>
}

export function readRegisters(
  history: History,
  anomalies: Anomalies,
): ReadonlyMap<string, RegisterFacts> {
  const registers = new Map<string, RegisterFacts>()
  const ranges: RangeView[] = []
  const writes = new Map<RegisterFacts, Map<number, Write[]>>()
  const ensureRegister = (key: string): RegisterFacts => {
    const facts = registers.get(key) ?? { key, writers: new Map(), views: [], values: new Map() }
    if (!registers.has(key)) writes.set(facts, new Map())
    registers.set(key, facts)
    return facts
  }
  for (const [operation, { micro, outcome }] of history.entries()) {
    for (const one of micro) {
      if (one.kind === 'append' || one.kind === 'read') continue
      const facts = ensureRegister(one.key)
      if (one.kind === 'write') {
        const byVersion = writes.get(facts)
        const all = byVersion?.get(one.version) ?? []
        byVersion?.set(one.version, [...all, { operation, outcome, value: one.value }])
      }
      if (outcome !== 'ok') continue
      ranges.push(...readRange(facts, operation, one))
      if (one.kind === 'range') continue
      noteView(facts, operation, one)
      noteValue(facts, operation, one, anomalies)
    }
  }
  for (const range of ranges) noteValues(range, anomalies)
  for (const [facts, byVersion] of writes) {
    for (const [version, all] of byVersion) settleWriter(facts, version, all, anomalies)
  }
  for (const range of ranges) noteRange(range)
  return registers
}

interface RangeView {
  readonly facts: RegisterFacts
  readonly operation: number
  readonly from: number
  readonly to: number
  readonly versions: readonly SeenVersion[]
}

function readRange(facts: RegisterFacts, operation: number, micro: MicroOperation): RangeView[] {
  if (micro.kind !== 'range' || micro.versions === undefined) return []
  const { from, to = Infinity, versions } = micro
  return [{ facts, operation, from, to, versions }]
}

function noteValues({ facts, operation, versions }: RangeView, anomalies: Anomalies): void {
  for (const seen of versions) noteValue(facts, operation, seen, anomalies)
}

/** As if the reader had asked for each version that exists or that an operation wrote. */
function noteRange({ facts, operation, from, to, versions }: RangeView): void {
  const { views, writers } = facts
  const seen = new Set(versions.map(({ version }) => version))
  for (const version of new Set([...seen, ...writers.keys()])) {
    if (version < from || version > to) continue
    const isPresent = seen.has(version)
    views.push({ operation, latest: undefined, asked: { version, isPresent } })
  }
}

interface Write {
  readonly operation: number
  readonly outcome: Outcome
  readonly value: Element | undefined
}

/**
 * The writer of a version: the acknowledged one, or else the only candidate that fits the value
 * seen. A guess among several would give edges between operations that never met.
 */
function settleWriter(
  { key, writers, values }: RegisterFacts,
  version: number,
  writes: readonly Write[],
  anomalies: Anomalies,
): void {
  const told = writes.filter(({ outcome }) => outcome === 'ok')
  const [first, second] = told
  if (first !== undefined && second !== undefined) {
    anomalies.add({
      name: 'duplicate-elements',
      operations: [first.operation, second.operation],
      sentences: [
        `T1 and T2 were both told that they wrote version ${version} of ${key}, which only one can have done.`,
      ],
    })
  }
  const seen = values.get(version)?.value
  const isPossible = ({ value }: Write): boolean =>
    seen === undefined || value === undefined || value === seen
  const unsure = writes.filter((one) => one.outcome === 'unknown' && isPossible(one))
  const [maybe] = unsure
  const failed = writes.find(({ outcome }) => outcome === 'fail')
  if (first !== undefined) writers.set(version, first.operation)
  else if (unsure.length > 1) writers.set(version, undefined)
  else {
    const writer = maybe ?? failed
    if (writer !== undefined) writers.set(version, writer.operation)
  }
}

function noteView({ views }: RegisterFacts, operation: number, micro: MicroOperation): void {
  if (micro.kind === 'latest') {
    views.push({ operation, latest: micro.version ?? -1, asked: undefined })
  } else if (micro.kind === 'get') {
    const { version, isPresent } = micro
    views.push({ operation, latest: undefined, asked: { version, isPresent } })
  }
}

/** A version never changes. */
function noteValue(
  { values, key }: RegisterFacts,
  operation: number,
  { version, value }: Partial<SeenVersion>,
  anomalies: Anomalies,
): void {
  if (version === undefined || value === undefined) return
  const known = values.get(version)
  if (known === undefined) values.set(version, { value, operation })
  else if (known.value !== value) {
    anomalies.add({
      name: 'changed-value',
      operations: [known.operation, operation],
      sentences: [
        `Version ${version} of ${key} was ${quoted(known.value)} for T1 and ${quoted(value)} for T2; a version never changes.`,
      ],
    })
  }
}
