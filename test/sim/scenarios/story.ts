/**
 * Runs a directed scenario and keeps its story, so that a test can show that the race it is named for
 * came about. In these worlds every way takes one millisecond and every write of a disk a tenth of one,
 * unless the scenario says otherwise: each step of a race is at a known moment.
 *
 * All checkers judge the run; it runs exactly the scenario's file.
 */
import { expect } from 'vitest'
import { present } from '../../../src/base/assert.ts'
import { shardGroup } from '../../../src/cells/shard.ts'
import { describeBallot } from '../../../src/paxos/ballot.ts'
import { decodeEntry, type Entry } from '../../../src/replication/entry.ts'
import { datastore } from '../../../sim/workloads/datastore.ts'
import { asBallot } from '../../../sim/checkers/trace-fields.ts'
import type { Way } from '../../../sim/faults/fault.ts'
import type { StoryLine, Verb } from '../../../sim/cluster/narrator.ts'
import type { RunResult } from '../../../sim/result.ts'
import type { ScenarioBuilder } from '../../../sim/scenarios/scenario-builder.ts'
import { scenario, shardAt } from '../../../sim/scenarios/scenario-builder.ts'
import { decodeScenario, encodeScenario, runScenario } from '../../../sim/scenarios/scenario.ts'

/** A line's parts to look for; an absent part may be anything. */
export interface Match {
  readonly who?: string
  readonly verb?: Verb
  readonly kind?: string
  readonly peer?: string
  readonly position?: number
  readonly ballot?: string
  /** Milliseconds from the start. */
  readonly after?: number
  readonly before?: number
}

export class Story {
  readonly result: RunResult
  readonly #lines: readonly StoryLine[]

  constructor(result: RunResult, lines: readonly StoryLine[]) {
    this.result = result
    this.#lines = lines
  }

  all(match: Match): readonly StoryLine[] {
    return this.#lines.filter((line) => fits(line, match))
  }

  first(match: Match): StoryLine {
    return present(this.all(match)[0], `no line of the story is ${JSON.stringify(match)}`)
  }

  has(match: Match): boolean {
    return this.all(match).length > 0
  }

  /** When the first such line was, in milliseconds. */
  when(match: Match): number {
    return this.first(match).timeMicros / 1_000
  }

  /** When the story first notes that a client got or was shown something, by a part of the words. */
  whenNoted(who: string, part: string, after = 0): number {
    const line = this.all({ who, verb: 'note', after }).find(({ kind }) => kind.includes(part))
    return present(line, `${who} was never told: ${part}`).timeMicros / 1_000
  }

  /** The entry that the replica applied there. */
  entryAt(who: string, position: number): Entry {
    const bytes = Buffer.from(this.valueAt(who, position), 'hex')
    return present(decodeEntry(bytes), 'an entry is well-formed')
  }

  valueAt(who: string, position: number): string {
    return valueOf(this.first({ who, verb: 'does', kind: 'apply', position }))
  }
}

/** The value that a line tells of, as hexadecimal text. */
export function valueOf({ fields }: StoryLine): string {
  const value = fields['value']
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  throw new TypeError('this line has no value')
}

/** The group that all these scenarios write to: node n1 leads its first position. */
const group: string = shardGroup(datastore, shardAt(0))

function fits({ timeMicros, who, verb, kind, peer, fields }: StoryLine, match: Match): boolean {
  const ballot = asBallot(fields['ballot'])
  const own = { who, verb, kind, peer, position: fields['position'] }
  if (match.after !== undefined && timeMicros < match.after * 1_000) return false
  if (match.before !== undefined && timeMicros >= match.before * 1_000) return false
  if (match.position !== undefined && fields['group'] !== group) return false
  if (match.ballot !== undefined && match.ballot !== (ballot && describeBallot(ballot)))
    return false
  return (['who', 'verb', 'kind', 'peer', 'position'] as const).every(
    (name) => match[name] === undefined || match[name] === own[name],
  )
}

/** From one node to others, in this direction alone. */
export function ways(from: string, ...to: readonly string[]): readonly Way[] {
  return to.map((one): Way => [from, one])
}

/** Three nodes, a client at each: c1 at n1, c2 at n2, c3 at n3. */
export function threeNodes(name: string): ScenarioBuilder {
  return scenario(name).client('c1', 'n1').client('c2', 'n2').client('c3', 'n3').lasting(3_000)
}

/** The same with position 1 done: n1 leads position 2, and all have applied what is before it. */
export function ledByFirst(name: string): ScenarioBuilder {
  return threeNodes(name).at(100).put('c1', { refKey: 0 })
}

/** Runs it; whatever else the test asks, nothing may be wrong in the end. */
export async function run(builder: ScenarioBuilder): Promise<Story> {
  const read = decodeScenario(encodeScenario(builder.build()))
  if (!read.ok) throw new Error(read.reason)
  const lines: StoryLine[] = []
  const result = await runScenario(read.scenario, { story: (line) => lines.push(line) })
  expect(result.violations).toEqual([])
  expect(result.outcome).toBe('clean')
  return new Story(result, lines)
}
