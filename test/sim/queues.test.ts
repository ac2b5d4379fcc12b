/** The workload of messages from group to group reaches what it is for, and its checker finds each fault. */
import { expect, test } from 'vitest'
import { worklistPrefix } from '../../src/group/worklist-key.ts'
import type { Mutation, Transaction } from '../../src/group/transaction.ts'
import { LogModel } from '../../sim/checkers/log-model.ts'
import { QueueChecker, type SentMessage } from '../../sim/checkers/queue-checker.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { Coverage } from '../../sim/coverage.ts'
import { runPlan } from '../../sim/run.ts'
import { calmOptions } from '../../sim/scenarios/scenario-calm.ts'
import { drawSwarm } from '../../sim/swarm.ts'

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))

/** A story told to the checker, transaction by transaction. */
class Story {
  readonly referee: Referee = new Referee(() => 0)
  readonly checker: QueueChecker = new QueueChecker(this.referee, new Coverage(), 2)
  #position = 0

  constructor() {
    this.checker.onGroup('a')
    this.checker.onGroup('r')
  }

  effect(group: string, rows: Readonly<Record<string, string>>): void {
    const mutations = Object.entries(rows).map(([key, value]): Mutation => ({
      key: key.startsWith('dead/') ? Buffer.concat([worklistPrefix(key), bytes('1')]) : bytes(key),
      value: bytes(value),
    }))
    const intent = { session: 's', sequence: 1, attempt: 1, floor: 1, expiresAt: 1 }
    const transaction: Transaction = { ...intent, allocations: [], mutations }
    const position = (this.#position += 1)
    this.checker.onEffect({ group, position, timestamp: position, transaction })
  }

  /** Sends these, from group a to group r. */
  sends(operation: string, count: number): readonly string[] {
    const messages = Array.from({ length: count }, (_, i): SentMessage => ({
      ...{ name: `m:${operation}.1/${i}:plain`, receiver: 'r', queue: 'red', delayMs: 0 },
    }))
    this.checker.onRun(operation, 1, messages)
    this.effect('a', { [`sent/${operation}`]: '1' })
    return messages.map(({ name }) => name)
  }

  handles(...names: readonly string[]): void {
    this.effect('r', { 'handled/red/1': names.join(' ') })
  }

  dies(name: string): void {
    this.effect('r', { 'dead/red': `x${name}y` })
  }

  get rules(): readonly string[] {
    return this.referee.violations.map(({ rule }) => rule)
  }
}

test('QUE-1, QUE-2, QUE-3, QUE-4, QUE-6: a good story is clean', () => {
  const story = new Story()
  const [one = '', two = '', three = ''] = story.sends('s.1', 3)
  story.handles(one)
  story.checker.onThrown(two)
  story.checker.onThrown(two)
  story.dies(two)
  story.handles(three)
  story.handles(two)
  story.checker.onDrained(new LogModel({ referee: story.referee }))
  expect(story.rules).toEqual([])
})

test.each([
  ['QUE-1', 'handled without being sent', (story: Story) => story.handles('m:s.9.1/0:plain')],
  [
    'QUE-1',
    'handled elsewhere',
    (story: Story) => {
      const [one = ''] = story.sends('s.1', 1)
      story.effect('a', { 'handled/red/1': one })
    },
  ],
  [
    'QUE-2',
    'handled twice',
    (story: Story) => {
      const [one = ''] = story.sends('s.1', 1)
      story.handles(one)
      story.handles(one)
    },
  ],
  [
    'QUE-2',
    'added up wrong',
    (story: Story) => {
      const [one = ''] = story.sends('s.1', 1)
      story.effect('r', { 'handled/red/1': one, total: '2' })
    },
  ],
  [
    'QUE-2',
    'dead though handled',
    (story: Story) => {
      const [one = ''] = story.sends('s.1', 1)
      story.handles(one)
      story.checker.onThrown(one)
      story.checker.onThrown(one)
      story.dies(one)
    },
  ],
  [
    'QUE-3',
    'handled out of order',
    (story: Story) => story.handles(story.sends('s.1', 2)[1] ?? ''),
  ],
  [
    'QUE-4',
    'lost',
    (story: Story) => {
      story.sends('s.1', 1)
      story.checker.onDrained(new LogModel({ referee: story.referee }))
    },
  ],
  [
    'QUE-6',
    'given up too soon',
    (story: Story) => {
      const [one = ''] = story.sends('s.1', 1)
      story.checker.onThrown(one)
      story.dies(one)
    },
  ],
  ['TXN-4', 'sent by nobody', (story: Story) => story.effect('a', { 'sent/s.7': '1' })],
] as const)('%s: a message that is %s is found', (rule, _what, tell) => {
  const story = new Story()
  tell(story)
  expect(story.rules).toEqual([rule])
})

test('a calm run of senders and handlers is clean, and reaches every kind of thing', async () => {
  const calm = calmOptions(5)
  const { queues } = calm.workload
  const busy = { ...queues, sessionCount: 3, operations: 20, groupCount: 3, handlerCount: 2 }
  const own = { ...busy, hasPoison: true, lifeMeanMicros: 1_000_000 }
  const options = { ...calm, workload: { ...calm.workload, queues: own } }
  const { outcome, violations, coverage } = await runPlan({ options, faults: [] })
  expect(violations).toEqual([])
  expect(outcome).toBe('clean')
  const kinds = ['sent', 'sent to itself', 'delayed', 'handled', 'batch', 'dead', 'redriven']
  for (const kind of [...kinds, 'handled after failures', 'handler died', 'committed']) {
    expect(coverage[`queues: ${kind}`] ?? 0, kind).toBeGreaterThan(0)
  }
})

test('queues are off in some seeds', () => {
  const counts = Array.from({ length: 40 }, (_, i) => drawSwarm(i + 1).workload.queues.sessionCount)
  expect(new Set(counts)).toEqual(new Set([0, 1, 2, 3]))
})
