/** The checker of triggers, on handlers that are at work in one shard. */
import { expect, test } from 'vitest'
import { LogModel } from '../../sim/checkers/log-model.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { TriggerChecker, type Caller } from '../../sim/checkers/trigger-checker.ts'

const names = { datastore: 'd', service: 's', trigger: 't', column: 'BASE' }

function court(): { readonly checker: TriggerChecker; readonly rules: () => readonly string[] } {
  const referee = new Referee(() => 0)
  const model = new LogModel({ referee })
  const checker = new TriggerChecker({ referee, model, ...names })
  return { checker, rules: () => referee.violations.map(({ rule }) => rule) }
}

function caller(worker: string, generation: number, isAlive = true): Caller {
  return { worker, generation, isAlive: () => isAlive, isOver: false }
}

test('TRIG-8: a shard that is given on while its handler is at work is found', () => {
  const { checker, rules } = court()
  const first = checker.onCalled(1, 1, caller('a', 1))
  first.end()
  checker.onCalled(1, 1, caller('b', 2))
  checker.onCalled(2, 1, caller('a', 1))
  expect(rules()).toEqual([])
  checker.onCalled(1, 1, caller('a', 3))
  expect(rules()).toEqual(['TRIG-8'])
})

test('TRIG-8: a call by a process that is gone counts as ended', () => {
  const { checker, rules } = court()
  checker.onCalled(1, 1, caller('a', 1, false))
  checker.onCalled(1, 1, caller('b', 2))
  expect(rules()).toEqual([])
})
