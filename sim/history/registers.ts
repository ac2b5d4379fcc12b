/** What is known of each register: who wrote which version, and who saw what. */
import type { Anomalies } from './anomaly.ts'
import type { Element, History, MicroOperation, Outcome } from './operation.ts'
import { quoted } from './words.ts'

export interface RegisterView {
  readonly operation: number
  /** The highest version seen; -1 when there was none, undefined when one version was asked for. */
  readonly latest: number | undefined
  /** The one version that was asked for. */
  readonly asked: { readonly version: number; readonly isPresent: boolean } | undefined
}

export interface RegisterFacts {
  readonly key: string
  /** The operation that wrote each version; undefined when several may have, and none was told. */
  readonly writers: Map<number, number | undefined>
  readonly views: RegisterView[]
  readonly values: Map<number, { readonly value: Element; readonly operation: number }>
}

export function registersOf(
  history: History,
  anomalies: Anomalies,
): ReadonlyMap<string, RegisterFacts> {
  const registers = new Map<string, RegisterFacts>()
  const writes = new Map<RegisterFacts, Map<number, Write[]>>()
  const registerOf = (key: string): RegisterFacts => {
    const known = registers.get(key)
    if (known !== undefined) return known
    const facts = { key, writers: new Map(), views: [], values: new Map() }
    registers.set(key, facts)
    writes.set(facts, new Map())
    return facts
  }
  for (const [operation, { micro, outcome }] of history.entries()) {
    for (const one of micro) {
      if (one.kind === 'append' || one.kind === 'read') continue
      const facts = registerOf(one.key)
      if (one.kind === 'write') {
        const byVersion = writes.get(facts)
        const write = { operation, outcome, value: one.value }
        byVersion?.set(one.version, [...(byVersion.get(one.version) ?? []), write])
      }
      if (outcome !== 'ok') continue
      noteView(facts, operation, one)
      noteValue(facts, operation, one, anomalies)
    }
  }
  for (const [facts, byVersion] of writes) {
    for (const [version, all] of byVersion) settleWriter(facts, version, all, anomalies)
  }
  return registers
}

interface Write {
  readonly operation: number
  readonly outcome: Outcome
  readonly value: Element | undefined
}

/**
 * Who wrote a version: the one who was told so; else whoever may have, if the value that was seen
 * leaves only one. A guess among several would give edges between operations that never met.
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
  micro: MicroOperation,
  anomalies: Anomalies,
): void {
  if (micro.kind === 'append' || micro.kind === 'read') return
  const { version, value } = micro
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
